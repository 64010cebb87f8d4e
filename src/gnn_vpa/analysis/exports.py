"""The table and the folds as plain text: Markdown, LaTeX and CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..escape import csv_cell, latex, markdown
from .format import MISSING, mean_std, noted, p_value, signed
from .settings import KEYS, MORE_KEYS, require_columns
from .tables import Cell, Row, ScoreTable

if TYPE_CHECKING:
    import pandas as pd


def to_markdown(table: ScoreTable, paper: bool = True) -> str:
    """The table in Markdown, the best of each group in bold.

    Where a mean stands for fewer folds than were asked for, or for a data set of one class, that
    is in brackets behind it.

    Args:
        table: from `score_table`.
        paper: put the published number and our difference to it in brackets behind ours, where
            there is one, and “≠” behind those that chance does not explain (`compare_with_paper`).

    Example:
        >>> from gnn_vpa.analysis import ScoreTable, Cell, Row, Setting
        >>> row = Row("GIN", "vpa", {"MUTAG": Cell(86.2, 4.1, 10)}, None, None, None)
        >>> table = ScoreTable(Setting("released", "auto"), ("MUTAG",), ((row,),))
        >>> print(to_markdown(table), end="")
        | method | MUTAG |
        |---|---:|
        | GIN+vpa | 86.2 ± 4.1 |
    """
    header = [markdown(name) for name in _header(table)]
    lines = [header, ["---", *["---:"] * (len(header) - 1)]]
    for row in table.rows:
        values = [_markdown_cell(cell, paper) for cell in _cells(table, row)]
        published = f" ({p_value(row.p_paper)})" if paper and row.p_paper is not None else ""
        p = [noted(p_value(row.p), row.p_note) + published] if _has_p(table) else []
        lines.append([markdown(row.label), *values, *p])
    texts = ["| " + " | ".join(line) + " |" for line in lines]
    texts[1] = texts[1].replace(" ", "")
    return "\n".join(texts) + "\n"


def to_latex(table: ScoreTable) -> str:
    r"""The table in LaTeX, as the paper sets it; needs `\usepackage{booktabs}`.

    Example:
        >>> from gnn_vpa.analysis import ScoreTable, Cell, Row, Setting
        >>> row = Row("GIN", "vpa", {"my_set": Cell(86.2, 4.1, 10)}, None, None, None)
        >>> table = ScoreTable(Setting("released", "auto"), ("my_set",), ((row,),))
        >>> print(to_latex(table), end="")
        \begin{tabular}{lc}
        \toprule
        method & my\_set \\
        \midrule
        GIN+vpa & 86.2 $\pm$ 4.1 \\
        \bottomrule
        \end{tabular}
    """
    header = _header(table)
    lines = [r"\begin{tabular}{l" + "c" * (len(header) - 1) + "}", r"\toprule", _latex_line(header)]
    for group in table.groups:
        lines.append(r"\midrule")
        for row in group:
            values = [_latex_cell(cell) for cell in _cells(table, row)]
            p = [latex(noted(p_value(row.p), row.p_note))] if _has_p(table) else []
            lines.append(" & ".join([latex(row.label), *values, *p]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines) + "\n"


def to_csv(folds: pd.DataFrame) -> str:
    """All folds as CSV, a row each, in a fixed order.

    Text that a spreadsheet would take for a formula gets an apostrophe in front, see
    `gnn_vpa.escape.csv_cell`. A run's folds say how many were asked for (`num_folds`) and how many
    classes the data set has.

    Example:
        >>> import pandas as pd
        >>> folds = pd.DataFrame([["MUTAG", "GIN", "vpa", "released", "auto", 0, 0]], columns=KEYS)
        >>> print(to_csv(folds), end="")
        dataset,model,aggregation,variant,features,fold,seed
        MUTAG,GIN,vpa,released,auto,0,0
    """
    require_columns(folds, KEYS)
    more = [name for name in (*MORE_KEYS, "metric", "repeat") if name in folds.columns]
    return csv_of(folds.sort_values([*KEYS, *more]))


def csv_of(frame: pd.DataFrame) -> str:
    """A frame as CSV, its text as `csv_cell` writes it."""
    safe = {
        name: column.map(csv_cell, na_action="ignore")
        for name, column in frame.items()
        if column.map(lambda value: isinstance(value, str)).any()
    }
    return str(frame.assign(**safe).to_csv(index=False, lineterminator="\n"))


def _has_p(table: ScoreTable) -> bool:
    return any(row.p is not None for row in table.rows)


def _header(table: ScoreTable) -> list[str]:
    average = ["Avg"] if table.has_average else []
    return ["method", *table.datasets, *average, *(["p"] if _has_p(table) else [])]


def _cells(table: ScoreTable, row: Row) -> list[Cell | None]:
    return [*row.cells.values(), *([row.average] if table.has_average else [])]


def _markdown_cell(cell: Cell | None, paper: bool) -> str:
    if cell is None:
        return MISSING
    ours = cell.text
    bold = noted(f"**{ours}**" if cell.best else ours, cell.note)
    if not (paper and cell.paper):
        return bold
    theirs = mean_std(cell.paper.mean, cell.paper.std)
    mark = " ≠" if cell.paper.within is False else ""
    return f"{bold} ({theirs}; {signed(cell.paper.difference)}){mark}"


def _latex_line(values: list[str]) -> str:
    return " & ".join(map(latex, values)) + r" \\"


def _latex_cell(cell: Cell | None) -> str:
    if cell is None:
        return "--"
    text = latex(cell.text)
    return noted(rf"\textbf{{{text}}}" if cell.best else text, latex(cell.note))
