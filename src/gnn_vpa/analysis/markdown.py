"""A run in Markdown: every number of the paper with ours beside it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..escape import markdown
from ..files import write_whole
from ._format import count, mean_std, noted, number, p_value, signed
from .comparison import AVERAGE, compare_with_paper
from .exports import to_markdown
from .figures import learning_curves
from .findings import findings
from .settings import Setting, split_by_setting
from .significance import overall_tests
from .style import DATASETS, MODELS, in_order, method_label
from .tables import accuracy_table

if TYPE_CHECKING:
    import pandas as pd

CLOSE = 2.0
INK = "#6e7781"  # readable on a light and on a dark page: a picture does not know which it is on


def write_markdown(
    folds: pd.DataFrame,
    curves: pd.DataFrame,
    provenance: Mapping[str, object],
    path: str | os.PathLike[str],
) -> Path:
    """Write a run's results in Markdown, its figures in the folder `img` beside it.

    Of each setting: what came out in sentences, the paper's table with ours in front of it, the
    column p beside the paper's, every cell with its z, the share of cells with |z| ≤ 2, and the
    learning curves. Settings and provenance come last.

    Args:
        folds: a row for each finished training, of one setting or several.
        curves: their learning curves; may be empty.
        provenance: what the run was: versions, configuration, checksums and the like.
        path: the file to write.

    Returns:
        The path that was written.

    Example:
        >>> import pandas as pd, tempfile
        >>> columns = ["dataset", "model", "aggregation", "variant", "features", "fold", "seed"]
        >>> rows = [["MUTAG", "GIN", "vpa", "released", "auto", fold, 0, 0.8 + fold / 10, "done"]
        ...         for fold in range(2)]
        >>> folds = pd.DataFrame(rows, columns=[*columns, "test_acc", "status"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = write_markdown(folds, pd.DataFrame(), {}, f"{folder}/record.md")
        ...     "1 of 1 cell has |z| ≤ 2 (100 %)" in made.read_text()
        True
    """
    path = Path(path)
    of_setting = {} if curves.empty else dict(split_by_setting(curves))
    parts = list(split_by_setting(folds))
    lines = ["# Ours beside the paper's", ""]
    for setting, part in parts:
        if len(parts) > 1:
            lines += [f"## {markdown(_title(setting))}", ""]
        level = "##" if len(parts) == 1 else "###"
        lines += results(part, level)
        if setting in of_setting:
            lines += [f"{level} Learning curves", "", *_figures(setting, of_setting[setting], path)]
    lines += ["## Settings and provenance", "", *entries(provenance), ""]
    write_whole(path, "\n".join(lines))
    return path


def _title(setting: Setting) -> str:
    text = str(setting)
    return text[0].upper() + text[1:]


def results(folds: pd.DataFrame, level: str) -> Iterator[str]:
    """The results of one setting: in sentences, the table, the tests and every cell."""
    yield from (f"- {markdown(sentence)}" for sentence in findings(folds))
    yield from ("", f"{level} Accuracy", "")
    yield "Test accuracy in percent, mean ± standard deviation over folds; in brackets the paper's,"
    yield "and our difference to it. ≠ marks what chance does not explain (|z| > 1.96)."
    yield from ("", to_markdown(accuracy_table(folds)))
    tests = overall_tests(folds)
    if not tests.empty:
        yield from (f"{level} Against vpa", "", "p is of the paper's one-sided Wilcoxon test.", "")
        yield "| method | pairs | vpa's lead | 95 % interval | p | p, paper | p, corrected |"
        yield "|---|---:|---:|---:|---:|---:|---:|"
        for row in tests.itertuples():
            ps = (p_value(p) for p in (row.p_wilcoxon, row.p_paper, row.p_corrected))
            interval = f"{number(row.low)} to {number(row.high)}"
            label = markdown(method_label(row.model, row.aggregation))
            pairs = str(row.pairs) if row.pairs == row.asked else f"{row.pairs} of {row.asked}"
            yield (
                f"| {label} | {pairs} | {signed(row.difference)} | {interval} | {' | '.join(ps)} |"
            )
        yield ""
    compared = compare_with_paper(folds)
    if not compared.empty:
        yield from _cells(compared, level)


def close_cells(compared: pd.DataFrame) -> str:
    """How many cells of `compare_with_paper` are close to the paper's, in words."""
    judged = compared[compared["dataset"] != AVERAGE].dropna(subset="z")
    close = int((judged["z"].abs() <= CLOSE).sum())
    share = f" ({close / len(judged):.0%})".replace("%", " %") if len(judged) else ""
    verb = "has" if len(judged) == 1 else "have"
    return f"{close} of {count(len(judged), 'cell')} {verb} |z| ≤ {CLOSE:g}{share}"


def _cells(compared: pd.DataFrame, level: str) -> Iterator[str]:
    yield from (f"{level} Every cell", "", f"{close_cells(compared)}.")
    yield from ("", *cell_rows(compared), "")


def cell_rows(compared: pd.DataFrame) -> Iterator[str]:
    """Ours beside the paper's, a line a cell."""
    yield "| data set | method | ours | paper | difference | z |"
    yield "|---|---|---:|---:|---:|---:|"
    for row in compared.itertuples():
        ours = noted(mean_std(row.ours, row.ours_std), row.note)
        paper = mean_std(row.paper, row.paper_std)
        label = markdown(method_label(row.model, row.aggregation))
        yield (
            f"| {markdown(row.dataset)} | {label} | {ours} | {paper} | {signed(row.difference)} "
            f"| {signed(row.z, 2)} |"
        )


def _figures(setting: Setting, curves: pd.DataFrame, path: Path) -> Iterator[str]:
    yield from ("Training loss: mean over folds, and a band of one standard deviation.", "")
    folder = path.parent / "img"
    names: set[str] = set()
    for model in in_order(curves["model"], MODELS):
        of_model = curves[curves["model"] == model]
        for dataset in in_order(of_model["dataset"], DATASETS):
            asked = f"{path.stem}-{setting.variant}-{setting.features}-{model}-{dataset}".casefold()
            name = _unused(re.sub(r"[^a-z0-9]+", "-", asked), names)
            figure = learning_curves(of_model[of_model["dataset"] == dataset])
            figure = figure.replace("currentColor", INK)
            write_whole(folder / name, figure)
            yield f"![{markdown(f'Training loss of {model} on {dataset}')}](img/{name})"
    yield ""


def _unused(stem: str, names: set[str]) -> str:
    """A file's name that no other figure has: two data sets may differ in signs alone."""
    name, number = f"{stem}.svg", 1
    while name in names:
        number += 1
        name = f"{stem}-{number}.svg"
    names.add(name)
    return name


def entries(value: object, indent: str = "") -> Iterator[str]:
    """Nested values as a nested list."""
    if isinstance(value, Mapping):
        for name, entry in value.items():
            if isinstance(entry, Mapping):
                yield f"{indent}- {markdown(str(name))}:"
                yield from entries(entry, indent + "  ")
            else:
                listed = entry if isinstance(entry, list | tuple) else [entry]
                yield f"{indent}- {markdown(f'{name}: ' + ', '.join(map(str, listed)))}"
