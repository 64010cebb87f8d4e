"""The fair comparison as a page: ours among the published rows, on the same folds."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..aggregations import ordered
from ..escape import markdown
from ..files import write_whole
from ..paper import FairSet, fair_rows, fair_sets
from .exports import csv_of
from .format import listing, mean_std, noted, p_value, signed
from .lead import interval
from .markdown import entries
from .origin import origin
from .significance import dataset_tests
from .summary import summarise

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = (
    *("dataset", "features", "model", "aggregation", "fold", "seed", "chosen"),
    *("best_epoch", "val_score", "test_score", "status"),
)
_INTRODUCTION = """\
Made by `gnn-vpa report runs/fair --record .` from what `gnn-vpa reproduce fair` left; all outer
folds are in [folds.csv](../results/fair/folds.csv).

Errica, Podda, Bacciu and Micheli (ICLR 2020) compare graph networks on public splits, and nobody
chooses anything by test accuracy. Here GIN is trained on the same splits with sum, mean, max and
vpa. For each outer fold the learning rate (0.01, 0.001), width (32, 64), depth (2, 4) and dropout
(0, 0.5) are chosen on its inner validation part, at most 300 epochs with patience 50; the chosen
setting is trained three times anew, and the three test accuracies are averaged. The published GIN
had a larger grid, so that sum beside vpa, on the same folds with the same grid, says more than the
printed row.
"""
_FEATURES = {"own": "the data's own features", "ones": "no features", "degree": "node degrees"}


def fair_folds(folds: pd.DataFrame) -> pd.DataFrame:
    """Return the folds that were made on the very splits of the fair comparison.

    Example:
        >>> import pandas as pd
        >>> names = ["dataset", "division", "chosen"]
        >>> rows = [["NCI1", "splits ea4f74d7c4fe62bb", "{}"], ["NCI1", "", None]]
        >>> len(fair_folds(pd.DataFrame(rows, columns=names)))
        1
    """
    known = {its.division for its in fair_sets()}
    return folds[folds["division"].isin(known) & folds["chosen"].notna()]


def write_fair(
    folds: pd.DataFrame, provenance: Mapping[str, Any], root: str | os.PathLike[str] = "."
) -> Path:
    """Write the record of the fair comparison into a repository.

    * `results/fair/folds.csv`: a row for each outer fold, with what was chosen in it;
    * `results/fair/provenance.json`: what it was made with;
    * `docs/fair.md`: ours among the published rows, and tests on the same folds.

    Args:
        folds: of `fair_folds`.
        provenance: as `gnn_vpa.experiments.read_provenance` returns it.
        root: the repository.

    Returns:
        The page.

    Example:
        >>> import pandas as pd, tempfile
        >>> row = {"dataset": "NCI1", "division": "splits ea4f74d7c4fe62bb", "model": "GIN",
        ...        "aggregation": "vpa", "variant": "released", "features": "auto", "fold": 0,
        ...        "seed": 0, "chosen": "{}", "best_epoch": 1, "val_score": 0.8,
        ...        "test_score": 0.8, "status": "done", "seconds": 1.0}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     "| **GIN+vpa** | **80.0** | ours |" in write_fair(pd.DataFrame([row]), {},
        ...                                                       folder).read_text()
        True
    """
    root = Path(root)
    kept, page = root / "results" / "fair", root / "docs" / "fair.md"
    made_with = origin(provenance, folds)
    order = ["dataset", "features", "model", "aggregation", "seed", "fold"]
    table = folds.sort_values(order)[[*_COLUMNS]].round({"val_score": 6, "test_score": 6})
    write_whole(kept / "folds.csv", csv_of(table))
    text = json.dumps(made_with, indent=2, ensure_ascii=False) + "\n"
    write_whole(kept / "provenance.json", text)
    write_whole(page, "\n".join(_page(folds, made_with)) + "\n")
    return page


def _page(folds: pd.DataFrame, made_with: Mapping[str, object]) -> Iterator[str]:
    yield from ("# A place in the fair comparison", "")
    yield _INTRODUCTION
    parts = [(its, folds[folds["division"] == its.division]) for its in fair_sets()]
    done = [(its, part) for its, part in parts if not part.empty]
    missing = [its for its, part in parts if part.empty]
    if missing:
        names = listing([f"{its.dataset} with {_FEATURES[its.features]}" for its in missing])
        yield from (f"**Not run yet:** {names}.", "")
    yield from _summary(done)
    for its, part in done:
        yield from (f"## {its.dataset}, {_FEATURES[its.features]}", "")
        yield from _rows(its.dataset, its.division, part)
        yield from _tests(part)
        yield from _chosen(part)
    yield from ("## What it was made with", "", *entries(made_with))


def _summary(done: list[tuple[FairSet, pd.DataFrame]]) -> Iterator[str]:
    """All data sets at a glance: mean and standard deviation over the outer folds."""
    names = ordered({name for _, part in done for name in part["aggregation"]})
    yield f"| data set | {' | '.join(names)} | published GIN |"
    yield "|---|" + "---|" * (len(names) + 1)
    for its, part in done:
        cells = {row.aggregation: row for row in summarise(part).itertuples()}
        best = max(row.mean for row in cells.values())
        texts = []
        for name in names:
            row = cells.get(name)
            text = "" if row is None else noted(mean_std(row.mean, row.std), row.note)
            texts.append(f"**{text}**" if row is not None and row.mean == best else text)
        printed = [row for row in fair_rows(its.dataset, its.division) if row.method == "GIN"]
        theirs = mean_std(printed[0].mean, printed[0].std) if printed else ""
        yield f"| {its.dataset}, {_FEATURES[its.features]} | {' | '.join(texts)} | {theirs} |"
    yield ""


def _rows(dataset: str, division: str, part: pd.DataFrame) -> Iterator[str]:
    """Ours and the published rows, the best first."""
    published = fair_rows(dataset, division)
    rows = [(row.mean, row.method, mean_std(row.mean, row.std), "published") for row in published]
    for cell in summarise(part).itertuples():
        text = noted(mean_std(cell.mean, cell.std), cell.note)
        rows.append((cell.mean, f"**{cell.model}+{cell.aggregation}**", f"**{text}**", "ours"))
    yield from ("| method | test accuracy | |", "|---|---|---|")
    for _, method, text, whose in sorted(rows, key=lambda row: -row[0]):
        yield f"| {method} | {text} | {whose} |"
    if not published:
        yield from ("", "No published row is at hand for these splits.")
    yield ""


def _tests(part: pd.DataFrame) -> Iterator[str]:
    """Compare vpa with our other aggregations on the same folds."""
    yield "vpa against the others on the same folds (corrected paired test, 95 % interval):"
    yield from ("", "| against | difference | interval | p | p, Holm |", "|---|---|---|---|---|")
    for row in dataset_tests(part).itertuples():
        values = (signed(row.difference), interval(row.low, row.high), p_value(row.p_corrected))
        yield f"| {row.aggregation} | {' | '.join(values)} | {p_value(row.p_corrected_holm)} |"
    yield ""


def _chosen(part: pd.DataFrame) -> Iterator[str]:
    """What was chosen in each outer fold."""
    folds = sorted(part["fold"].unique())
    yield from ("<details><summary>What was chosen in each fold</summary>", "")
    yield f"| aggregation | {' | '.join(f'fold {fold}' for fold in folds)} |"
    yield "|---|" + "---|" * len(folds)
    for name in ordered(part["aggregation"]):
        own = part[part["aggregation"] == name].set_index("fold")["chosen"]
        texts = [markdown(_setting(own[fold])) if fold in own.index else "" for fold in folds]
        yield f"| {name} | {' | '.join(texts)} |"
    yield from ("", "</details>", "")


def _setting(chosen: str) -> str:
    values = {name.replace("learning_rate", "lr"): v for name, v in json.loads(chosen).items()}
    return ", ".join(f"{name} {value}" for name, value in values.items())
