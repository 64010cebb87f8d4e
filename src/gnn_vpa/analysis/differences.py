"""Published numbers that do not come out: cell by cell, with what is known of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..escape import markdown
from .comparison import AVERAGE, compare_with_paper
from .format import mean_std, number, signed
from .settings import Setting
from .style import method_label

if TYPE_CHECKING:
    import pandas as pd

TABLES = {"table1": "main", "table_a1": "appendix"}
CLOSE = 2.0
"""|z| up to which a number comes out as printed, as far as chance can tell."""
LEAST = 0.3
"""Points that a standard error is taken for at least: where all folds are alike it would be that of
the print's rounding alone, and any other seed would be far away."""

Cell = tuple[str, str, str, str]  # table, data set, model, aggregation


def far_cells(folds: pd.DataFrame) -> pd.DataFrame:
    """The cells of one setting that do not come out as printed, the farthest first.

    Their z is beside a standard error of at least 0.3 points.

    Example:
        >>> import pandas as pd
        >>> columns = ["dataset", "model", "aggregation", "variant", "features", "fold", "seed",
        ...            "test_score", "status"]
        >>> rows = [["MUTAG", "GIN", "vpa", "released", "auto", fold, 0, 0.5 + fold / 100, "done"]
        ...         for fold in range(3)]
        >>> far_cells(pd.DataFrame(rows, columns=columns))["difference"].round(1).tolist()
        [-35.7]
    """
    compared = compare_with_paper(folds)
    cells = compared[compared["dataset"] != AVERAGE].dropna(subset="z")
    error = (cells["difference"] / cells["z"].where(cells["z"] != 0)).clip(lower=LEAST)
    cells = cells.assign(z=(cells["difference"] / error).fillna(0.0))
    return cells[cells["z"].abs() > CLOSE].sort_values("z", key=abs, ascending=False)


def between_seeds(folds: pd.DataFrame) -> float:
    """By how much two seeds' means of a cell differ: their standard deviation over cells."""
    scores = folds[folds["status"] != "diverged"]
    means = 100 * scores.pivot_table(
        index=["features", "options", "dataset", "model", "aggregation"]
        if "options" in folds.columns
        else ["features", "dataset", "model", "aggregation"],
        columns="seed",
        values="test_score",
    )
    first, second, *_ = (means[seed] for seed in means)
    return float((first - second).std())


def read_evidence(path: Path) -> dict[Cell, tuple[str, str]]:
    """What is known of cells beside our trainings: the released code run again, learning rates.

    Returns:
        By table, data set, model and aggregation; empty where there is no such file.
    """
    import pandas as pd

    if not path.exists():
        return {}
    rows = pd.read_csv(path, dtype=str, keep_default_na=False).itertuples()
    return {
        (row.table, row.dataset, row.model, row.aggregation): (row.released_code, row.learning_rate)
        for row in rows
    }


def difference_rows(
    setting: Setting, folds: pd.DataFrame, evidence: Mapping[Cell, tuple[str, str]]
) -> Iterator[str]:
    """A line for each cell that does not come out: print, each seed of ours, and what is known."""
    seeds = sorted(folds["seed"].unique())
    by_seed = {
        (row.dataset, row.model, row.aggregation, seed): row.ours
        for seed in seeds
        for row in compare_with_paper(folds[folds["seed"] == seed]).itertuples()
    }
    names = [f"ours, seed {seed}" for seed in seeds]
    known = bool(evidence)
    more = ["released code, run again", "another learning rate"] if known else []
    header = ["data set", "method", "print", *names, "difference", "z", *more]
    yield f"| {' | '.join(header)} |"
    yield "|" + "|".join(["---", "---", *["---:"] * (len(names) + 3), *["---"] * len(more)]) + "|"
    table = TABLES[setting.published_table or ""]
    for row in far_cells(folds).itertuples():
        cell = (row.dataset, row.model, row.aggregation)
        ours = [number(by_seed.get((*cell, seed))) for seed in seeds]
        found = list(evidence.get((table, *cell), ("", ""))) if known else []
        texts = [
            *(markdown(row.dataset), markdown(method_label(row.model, row.aggregation))),
            *(mean_std(row.paper, row.paper_std), *ours),
            *(signed(row.difference), signed(row.z, 2), *map(markdown, found)),
        ]
        yield f"| {' | '.join(texts)} |"
