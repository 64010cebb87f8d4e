import math

import pytest

from gnn_vpa.analysis import AccuracyTable, Cell, Published, Row, accuracy_table
from gnn_vpa.analysis.style import DATASETS


def rows(table: AccuracyTable) -> dict[str, Row]:
    return {row.label: row for row in table.rows}


def test_the_layout_is_the_papers(full_run) -> None:
    table = accuracy_table(full_run)
    assert table.datasets == DATASETS
    assert [[row.label for row in group] for group in table.groups] == [
        ["GIN+sum", "GIN+mean", "GIN+max", "GIN+vpa"],
        ["GCN+sum", "GCN+mean", "GCN+max", "GCN+vpa"],
        ["SGC", "SGC+vpa"],
        ["GAT", "GAT+vpa"],
        ["Majority class", "WL subtree kernel + SVM"],
    ]


def test_vpa_and_baselines_have_no_p(full_run) -> None:
    without = [label for label, row in rows(accuracy_table(full_run)).items() if row.p is None]
    assert without == [
        *("GIN+vpa", "GCN+vpa", "SGC+vpa", "GAT+vpa"),
        *("Majority class", "WL subtree kernel + SVM"),
    ]


def test_the_papers_p_stands_beside_ours(full_run) -> None:
    assert rows(accuracy_table(full_run))["GIN+sum"].p_paper == 2.0e-5


def test_the_best_of_a_group_is_marked_and_ties_share_it(make_folds) -> None:
    table = accuracy_table(
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


def test_average_is_over_all_sets_or_missing(make_folds) -> None:
    table = accuracy_table(
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


def test_one_data_set_needs_no_average(make_folds) -> None:
    table = accuracy_table(make_folds({("MUTAG", "GIN", "vpa"): [0.8, 0.8]}))
    assert rows(table)["GIN+vpa"].average is None


def test_a_cell_of_diverged_folds_only(make_folds) -> None:
    folds = make_folds(
        {("MUTAG", "GIN", "sum"): [math.nan] * 2, ("MUTAG", "GIN", "vpa"): [0.8] * 2}
    )
    cell = rows(accuracy_table(folds))["GIN+sum"].cells["MUTAG"]
    assert (cell.folds, cell.diverged, cell.best) == (0, 2, False)
    assert math.isnan(cell.mean)


def test_a_cell_knows_its_published_counterpart(make_folds) -> None:
    folds = make_folds({("MUTAG", "GIN", "vpa"): [0.86, 0.88]})
    cell = rows(accuracy_table(folds))["GIN+vpa"].cells["MUTAG"]
    assert isinstance(cell, Cell)
    assert isinstance(cell.paper, Published)
    assert (cell.paper.mean, cell.paper.std, cell.paper.within) == (86.7, 4.4, True)


def test_no_folds_make_an_empty_table(make_folds) -> None:
    table = accuracy_table(make_folds({("MUTAG", "GIN", "vpa"): [0.8]}).iloc[:0])
    assert (table.datasets, table.groups) == ((), ())
