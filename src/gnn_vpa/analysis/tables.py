"""The paper's table: a row a method, a column a data set, the average and p."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..aggregations import ordered
from .comparison import AVERAGE, compare_with_paper
from .format import mean_std
from .measure import Measure, measure, measure_of
from .once import once
from .settings import Setting
from .significance import missing_pairs, overall_tests
from .style import BASELINES, DATASETS, MODELS, in_order, method_label
from .summary import CELL, average_note, fold_scores, only_setting, summarise

if TYPE_CHECKING:
    import pandas as pd

_ALL = "\0"  # in the place of a data set's name: a data set of someone's own may be called Avg


@dataclass(frozen=True)
class Published:
    """The paper's counterpart of a cell, and how ours relates to it (`compare_with_paper`).

    Example:
        >>> Published(mean=86.7, std=4.4, difference=-0.5, z=-0.25, within=True).within
        True
    """

    mean: float
    std: float
    difference: float
    z: float
    within: bool | None


@dataclass(frozen=True)
class Cell:
    """A method on a data set, or its average: in percent where the metric is a share.

    Args:
        mean: over folds; NaN where no fold has finished.
        std: over folds; NaN for one fold, and for the average.
        folds: finished folds.
        diverged: trainings that diverged.
        best: whether no other row of the group prints a better mean; none is, where the rows are
            over different folds.
        paper: the published counterpart.
        note: what must be said beside the number, see `summarise`.
        digits: how many decimals to print.
        repeats_std: over repeats of the folds, of each one's mean; NaN for one repeat.

    Example:
        >>> Cell(mean=86.2, std=4.1, folds=10).best, Cell(mean=86.2, std=4.1, folds=10).text
        (False, '86.2 ± 4.1')
    """

    mean: float
    std: float
    folds: int
    diverged: int = 0
    best: bool = False
    paper: Published | None = None
    note: str = ""
    digits: int = 1
    repeats_std: float = math.nan

    @property
    def text(self) -> str:
        """Mean and standard deviations, as printed."""
        return mean_std(self.mean, self.std, self.digits, self.repeats_std)


@dataclass(frozen=True)
class Row:
    """A method: its cell for each data set (None where it was not run), average and p.

    Args:
        model: as in the results.
        aggregation: as in the results.
        cells: by data set.
        average: over the data sets; None where one of the table's is missing, and for errors in
            the data's own unit.
        p: of the paper's Wilcoxon test against vpa; None where there is nothing to test.
        p_paper: the published one.
        p_note: what must be said beside p: over how many pairs it is, where some are
            missing or stand for fewer trainings.

    Example:
        >>> Row("GIN", "vpa", {}, None, None, None).label
        'GIN+vpa'
    """

    model: str
    aggregation: str
    cells: dict[str, Cell | None]
    average: Cell | None
    p: float | None
    p_paper: float | None
    p_note: str = ""

    @property
    def label(self) -> str:
        """The method's name."""
        return method_label(self.model, self.aggregation)


@dataclass(frozen=True)
class ScoreTable:
    """The table that `score_table` builds: rows in groups of one model each.

    Example:
        >>> ScoreTable(Setting("released", "auto"), ("MUTAG",), ()).datasets
        ('MUTAG',)
    """

    setting: Setting
    datasets: tuple[str, ...]
    groups: tuple[tuple[Row, ...], ...]

    @property
    def measure(self) -> Measure:
        """The metric of its numbers."""
        return measure(self.setting.metric)

    @property
    def has_average(self) -> bool:
        """Whether there is a column for the average over data sets: not for errors with a unit."""
        return len(self.datasets) > 1 and not self.measure.has_unit

    @property
    def rows(self) -> Iterator[Row]:
        """All rows, group after group."""
        return (row for group in self.groups for row in group)


@once
def score_table(folds: pd.DataFrame) -> ScoreTable:
    """Lay the results of one setting out as the paper does.

    Rows are grouped by model, the baselines after them; in each group the best mean of a column is
    marked, both where two print the same. Means over different folds are not compared.

    Example:
        >>> import pandas as pd
        >>> columns = ["dataset", "model", "aggregation", "variant", "features", "fold", "seed",
        ...            "test_score", "status"]
        >>> rows = [["MUTAG", "GIN", aggr, "released", "auto", fold, 0, accuracy, "done"]
        ...         for aggr, accuracy in (("sum", 0.7), ("vpa", 0.8)) for fold in range(2)]
        >>> table = score_table(pd.DataFrame(rows, columns=columns))
        >>> [(row.label, row.cells["MUTAG"].best) for row in table.rows]
        [('GIN+sum', False), ('GIN+vpa', True)]
    """
    cells = _cells(folds)
    methods = {(model, aggregation) for _, model, aggregation in cells}
    datasets = tuple(in_order((key[0] for key in cells if key[0] != _ALL), DATASETS))
    columns = (*datasets, _ALL)
    tests = overall_tests(folds).set_index(["model", "aggregation"])
    groups: dict[str, list[Row]] = {}
    for model in in_order((model for model, _ in methods), MODELS):
        for aggregation in ordered(a for m, a in methods if m == model):
            by_column = {name: cells.get((name, model, aggregation)) for name in columns}
            average = by_column.pop(_ALL, None)
            test = tests.loc[model, aggregation] if (model, aggregation) in tests.index else None
            row = Row(
                *(model, aggregation, by_column, average),
                p=None if test is None else float(test["p_wilcoxon"]),
                p_paper=None if test is None or test.isna()["p_paper"] else float(test["p_paper"]),
                p_note=""
                if test is None
                else missing_pairs(int(test["pairs"]), int(test["asked"]), int(test["missing"])),
            )
            groups.setdefault("" if model in BASELINES else model, []).append(row)
    return ScoreTable(only_setting(folds), datasets, tuple(map(tuple, groups.values())))


def _cells(folds: pd.DataFrame) -> dict[tuple[str, str, str], Cell]:
    """All cells by data set, model and aggregation, with the averages of complete methods."""
    summary = summarise(folds).assign(stands_for=_folds_of_cells(folds))
    datasets = summary["dataset"].nunique()
    metric = measure_of(folds)
    finished = summary[summary["folds"] > 0].groupby(["model", "aggregation"], as_index=False)
    averages = finished.agg(
        mean=("mean", "mean"),
        sets=("mean", "size"),
        folds=("folds", "sum"),
        note=("note", average_note),
        digits=("digits", "max"),
        stands_for=("stands_for", tuple),
    )
    has_average = datasets > 1 and not metric.has_unit  # units differ between data sets
    averages = averages[averages["sets"] == (datasets if has_average else -1)].assign(
        dataset=_ALL, std=float("nan"), repeats_std=float("nan"), diverged=0
    )
    published = {
        (_ALL if row.dataset == AVERAGE else row.dataset, row.model, row.aggregation): Published(
            row.paper, row.paper_std, row.difference, row.z, row.within
        )
        for row in compare_with_paper(folds).itertuples()
    }
    rows = [*summary.itertuples(), *averages.itertuples()]
    printed: dict[tuple[str, str], list[float]] = {}
    stand_for: dict[tuple[str, str], set[object]] = {}
    for row in rows:
        if row.folds:
            better = metric.sign * round(row.mean, row.digits)
            printed.setdefault((row.dataset, row.model), []).append(better)
            stand_for.setdefault((row.dataset, row.model), set()).add(row.stands_for)
    cells = {}
    for row in rows:
        rivals = printed.get((row.dataset, row.model), [])
        alike = len(stand_for.get((row.dataset, row.model), ())) == 1
        key = (row.dataset, row.model, row.aggregation)
        cells[key] = Cell(
            *(row.mean, row.std, int(row.folds), int(row.diverged)),
            best=alike
            and len(rivals) > 1
            and metric.sign * round(row.mean, row.digits) == max(rivals),
            paper=published.get(key),
            note=row.note,
            digits=int(row.digits),
            repeats_std=float(row.repeats_std),
        )
    return cells


def _folds_of_cells(folds: pd.DataFrame) -> list[frozenset[tuple[int, int]]]:
    """The folds, of each repeat, that each mean of `summarise` is over, in its order."""
    scores = fold_scores(folds)
    return [
        frozenset((row.repeat, row.fold) for row in part.dropna(subset="score").itertuples())
        for _, part in scores.groupby(CELL)
    ]
