"""The record of the paper's experiments: what came out, and a page to put it beside the paper."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..escape import markdown
from ..files import write_whole
from ..paper import published
from .claims import judge_claims
from .comparison import AVERAGE, compare_with_paper
from .exports import csv_of
from .figures import curves_by_dataset
from .format import count
from .markdown import entries, sections
from .origin import origin
from .report import Part, Pictures
from .report.sections.cells import CLOSE, cell_rows, close_cells
from .settings import RELEASED, Setting, split_by_setting
from .style import BASELINES

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = (
    *("table", "dataset", "model", "aggregation", "variant", "fold", "seed"),
    *("best_epoch", "val_score", "test_score", "status"),
)
_TABLES = {"table1": "main", "table_a1": "appendix"}


def write_record(
    folds: pd.DataFrame,
    curves: pd.DataFrame,
    provenance: Mapping[str, Any],
    root: str | os.PathLike[str] = ".",
) -> Path:
    """Write the record of a reproduction into a repository.

    * `results/paper/folds.csv`: a row for each training of the paper's two tables;
    * `results/paper/provenance.json`: what it was made with;
    * `docs/reproduction.md`: every cell of the paper with ours beside it, its claims one by one,
      and the learning curves, in `docs/img`.

    What is written by hand in `results/paper/reasons.md`, of where we differ and why, becomes a
    section of the page.

    Args:
        folds: a row for each finished training.
        curves: their learning curves; may be empty.
        provenance: as `gnn_vpa.experiments.read_provenance` returns it.
        root: the repository.

    Returns:
        The page.

    Example:
        >>> import pandas as pd, tempfile
        >>> columns = ["dataset", "model", "aggregation", "variant", "features", "fold", "seed",
        ...            "test_score", "status", "best_epoch", "val_score", "seconds"]
        >>> rows = [["MUTAG", "GIN", "vpa", "released", "auto", fold, 0, 0.8 + fold / 10, "done",
        ...          5, 0.8, 1.0] for fold in range(2)]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = write_record(pd.DataFrame(rows, columns=columns), pd.DataFrame(), {}, folder)
        ...     "1 of 1 cell has |z| ≤ 2 (100 %)" in made.read_text()
        True
    """
    root = Path(root)
    kept, page = root / "results" / "paper", root / "docs" / "reproduction.md"
    figures = page.parent / "img"
    made_with = origin(provenance, folds)
    write_whole(kept / "folds.csv", csv_of(_folds(folds)))
    write_whole(
        kept / "provenance.json", json.dumps(made_with, indent=2, ensure_ascii=False) + "\n"
    )
    reasons = kept / "reasons.md"
    written = reasons.read_text(encoding="utf-8") if reasons.exists() else ""
    text = "\n".join(_page(folds, curves, made_with, written, Pictures(page))) + "\n"
    write_whole(page, text)
    for old in figures.glob(f"{page.stem}-*.svg"):
        if old.name not in text:
            old.unlink()
    return page


def _folds(folds: pd.DataFrame) -> pd.DataFrame:
    """The trainings that belong to a table of the paper, the main one first, in a fixed order."""
    import pandas as pd

    parts = [folds.iloc[:0].assign(table="")]
    for setting, part in split_by_setting(folds):
        if setting.published_table is not None:
            own = part.sort_values(["dataset", "model", "aggregation", "seed", "fold"])
            models = own["variant"].where(own["model"].isin(BASELINES), setting.models)
            parts.append(own.assign(table=_TABLES[setting.published_table], variant=models))
    found = pd.concat([part for part in parts if not part.empty] or parts)
    ordered = found.sort_values("table", ascending=False, kind="stable")
    return ordered[[*_COLUMNS]].round({"val_score": 6, "test_score": 6})


def _page(
    folds: pd.DataFrame,
    curves: pd.DataFrame,
    made_with: Mapping[str, object],
    reasons: str,
    pictures: Pictures,
) -> Iterator[str]:
    parts = {s: part for s, part in split_by_setting(folds) if s.published_table is not None}
    compared = {setting: compare_with_paper(part) for setting, part in parts.items()}
    yield from ("# The paper's experiments, run again", "")
    yield "Made by `gnn-vpa report --record`; all trainings are in"
    yield "[folds.csv](../results/paper/folds.csv), what they were made with is in"
    yield "[provenance.json](../results/paper/provenance.json). z is the difference of two means in"
    yield "standard errors: by chance alone one in twenty is beyond ±2."
    yield ""
    for setting, of_setting in compared.items():
        yield f"- {_title(setting)}: {close_cells(of_setting)}."
        if setting.models == RELEASED and (gaps := _gaps(setting, parts[setting])):
            yield f"  **Not run yet:** {gaps}. Averages, p and claims are of what was run."
    yield from ("", "## The paper's claims, one by one", "")
    yield from _claims(folds, curves)
    for setting, part in parts.items():
        yield from (f"## {_title(setting)}", "")
        # The curves of all data sets are in one figure below, as in the paper.
        shown = Part(setting, part, curves[:0], None, alone=False)
        yield sections(shown, pictures).removesuffix("\n")
    yield from _figure(curves, pictures)
    yield from _differences(compared, reasons)
    yield from ("## What it was made with", "", *entries(made_with))


def _gaps(setting: Setting, part: pd.DataFrame) -> str:
    """What the paper's table has and this run has not: data sets, and models of others."""
    there = published(setting.published_table or "")
    wanted = there[["dataset", "model"]].drop_duplicates()
    got = {(row.dataset, row.model.casefold()) for row in part.itertuples()}
    gaps = []
    for dataset, rows in wanted.groupby("dataset", sort=False):
        missing = [m for m in rows["model"] if (dataset, m.casefold()) not in got]
        if len(missing) == len(rows):
            gaps.append(str(dataset))
        elif missing:
            gaps.append(f"{', '.join(missing)} on {dataset}")
    return "; ".join(gaps)


def _claims(folds: pd.DataFrame, curves: pd.DataFrame) -> Iterator[str]:
    yield "A claim holds where at least seven of eight cases are as it says, and in part where half"
    yield "of them are. Where the paper's tables allow it, they are counted by the same rule."
    yield from ("", "| the paper says | where | verdict | what we saw |", "|---|---|---|---|")
    for claim in judge_claims(folds, curves):
        text, where, seen = map(markdown, (claim.text, claim.where, claim.seen))
        yield f"| {text} | {where} | **{claim.verdict}** | {seen} |"
    yield ""


def _figure(curves: pd.DataFrame, pictures: Pictures) -> Iterator[str]:
    of_setting = {} if curves.empty else dict(split_by_setting(curves))
    main = of_setting.get(Setting(RELEASED, "auto"))
    if main is None or (main := main[main["model"] == "GIN"]).empty:
        return
    yield from ("## Learning curves", "")
    yield "The paper's figure: training loss of GIN, mean over folds and a band of one standard"
    yield "deviation."
    described = "Training loss of GIN with each aggregation"
    yield from ("", pictures.put(curves_by_dataset(main), described, "curves"), "")


def _differences(compared: Mapping[Setting, pd.DataFrame], reasons: str) -> Iterator[str]:
    yield from ("## Where we differ", "")
    for setting, of_setting in compared.items():
        cells = of_setting[of_setting["dataset"] != AVERAGE].dropna(subset="z")
        far = cells[cells["z"].abs() > CLOSE].sort_values("z", key=abs, ascending=False)
        expected = f"by chance one would expect about {0.046 * len(cells):.0f}"
        yield f"{_title(setting)}: {count(len(far), 'cell')} with |z| > {CLOSE:g}; {expected}."
        yield from ("", *([*cell_rows(far), ""] if len(far) else ()))
    if reasons:
        yield from ("### Reasons", "", reasons.strip(), "")


def _title(setting: Setting) -> str:
    table = {"table1": "Table 1", "table_a1": "The appendix's table"}
    unusual = f" with {markdown(setting.unusual)}" if setting.unusual else ""
    return table[setting.published_table or ""] + unusual
