import math
from collections.abc import Callable

import pandas as pd
import pytest

from gnn_vpa.analysis import Cell, Published, Row, ScoreTable, score_table
from gnn_vpa.analysis.style import DATASETS


def rows(table: ScoreTable) -> dict[str, Row]:
    return {row.label: row for row in table.rows}


def test_the_layout_is_the_papers(full_run: pd.DataFrame) -> None:
    table = score_table(full_run)
    assert table.datasets == DATASETS
    assert [[row.label for row in group] for group in table.groups] == [
        ["GIN+sum", "GIN+mean", "GIN+max", "GIN+vpa"],
        ["GCN+sum", "GCN+mean", "GCN+max", "GCN+vpa"],
        ["SGC", "SGC+vpa"],
        ["GAT", "GAT+vpa"],
        ["Majority class", "WL subtree kernel + SVM"],
    ]


def test_vpa_and_baselines_have_no_p(full_run: pd.DataFrame) -> None:
    without = [label for label, row in rows(score_table(full_run)).items() if row.p is None]
    assert without == [
        *("GIN+vpa", "GCN+vpa", "SGC+vpa", "GAT+vpa"),
        *("Majority class", "WL subtree kernel + SVM"),
    ]


def test_the_papers_p_stands_beside_ours(full_run: pd.DataFrame) -> None:
    assert rows(score_table(full_run))["GIN+sum"].p_paper == 2.0e-5


def test_the_best_of_a_group_is_marked_and_ties_share_it(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    table = score_table(
        make_folds(
            {
                ("MUTAG", "GIN", "sum"): [0.8001],
                ("MUTAG", "GIN", "mean"): [0.7],
                ("MUTAG", "GIN", "vpa"): [0.8002],
                ("MUTAG", "SGC", "default"): [0.9],
            }
        )
    )
    best = {label for label, row in rows(table).items() if row.cells["MUTAG"].best}
    assert best == {"GIN+sum", "GIN+vpa"}  # 80.0 both; SGC has no rival


def test_average_is_over_all_sets_or_missing(make_folds: Callable[..., pd.DataFrame]) -> None:
    table = score_table(
        make_folds(
            {
                ("MUTAG", "GIN", "sum"): [0.8, 0.8],
                ("PTC", "GIN", "sum"): [0.6, 0.6],
                ("MUTAG", "GIN", "vpa"): [0.8, 0.8],
            }
        )
    )
    by_label = rows(table)
    assert by_label["GIN+sum"].average.mean == pytest.approx(70)
    assert by_label["GIN+vpa"].average is None
    assert by_label["GIN+vpa"].cells["PTC"] is None


def test_one_data_set_needs_no_average(make_folds: Callable[..., pd.DataFrame]) -> None:
    table = score_table(make_folds({("MUTAG", "GIN", "vpa"): [0.8, 0.8]}))
    assert rows(table)["GIN+vpa"].average is None


def test_a_cell_of_diverged_folds_only(make_folds: Callable[..., pd.DataFrame]) -> None:
    folds = make_folds(
        {("MUTAG", "GIN", "sum"): [math.nan] * 2, ("MUTAG", "GIN", "vpa"): [0.8] * 2}
    )
    cell = rows(score_table(folds))["GIN+sum"].cells["MUTAG"]
    assert (cell.folds, cell.diverged, cell.best) == (0, 2, False)
    assert math.isnan(cell.mean)


def test_a_cell_knows_its_published_counterpart(make_folds: Callable[..., pd.DataFrame]) -> None:
    folds = make_folds({("MUTAG", "GIN", "vpa"): [0.86, 0.88]})
    cell = rows(score_table(folds))["GIN+vpa"].cells["MUTAG"]
    assert isinstance(cell, Cell)
    assert isinstance(cell.paper, Published)
    assert (cell.paper.mean, cell.paper.std, cell.paper.within) == (86.7, 4.4, True)


def test_no_folds_make_an_empty_table(make_folds: Callable[..., pd.DataFrame]) -> None:
    table = score_table(make_folds({("MUTAG", "GIN", "vpa"): [0.8]}).iloc[:0])
    assert (table.datasets, table.groups) == ((), ())


def test_a_data_set_called_avg_is_a_data_set(make_folds: Callable[..., pd.DataFrame]) -> None:
    folds = make_folds({("Avg", "GIN", "vpa"): [0.5] * 2, ("mine", "GIN", "vpa"): [0.9] * 2})
    table = score_table(folds)
    row = rows(table)["GIN+vpa"]
    assert table.datasets == ("Avg", "mine")
    assert row.cells["Avg"].mean == pytest.approx(50)
    assert row.average.mean == pytest.approx(70)


LOST = [math.nan] * 3 + [0.9] * 7


def test_means_over_different_folds_are_not_compared(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    folds = make_folds({("mine", "GIN", "sum"): LOST, ("mine", "GIN", "vpa"): [0.8] * 10})
    by_label = rows(score_table(folds))
    assert not any(row.cells["mine"].best for row in by_label.values())
    assert by_label["GIN+sum"].cells["mine"].note == "7 of 10 folds"
    assert by_label["GIN+vpa"].cells["mine"].note == ""
    assert by_label["GIN+sum"].p_note == "7 of 10 pairs"


def test_as_many_folds_but_other_ones_are_not_compared_either(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    folds = make_folds({("mine", "GIN", "sum"): LOST, ("mine", "GIN", "vpa"): LOST[::-1]})
    assert not any(row.cells["mine"].best for row in score_table(folds).rows)


def test_means_over_the_same_folds_are_compared_however_few_they_are(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    folds = make_folds({("mine", "GIN", name): LOST for name in ("sum", "vpa")})
    assert all(row.cells["mine"].best for row in score_table(folds).rows)


def test_an_average_says_what_its_parts_lack(make_folds: Callable[..., pd.DataFrame]) -> None:
    folds = make_folds({("a", "GIN", "vpa"): LOST, ("b", "GIN", "vpa"): [1.0] * 10})
    folds["classes"] = folds["dataset"].map({"a": 2, "b": 1})
    average = rows(score_table(folds))["GIN+vpa"].average
    assert average.note == "1 data set of one class, 1 incomplete"
