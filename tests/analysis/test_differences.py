"""Published numbers that do not come out, cell by cell."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from gnn_vpa.analysis import Setting
from gnn_vpa.analysis.differences import between_seeds, difference_rows, far_cells, read_evidence

Make = Callable[..., pd.DataFrame]
VPA, MEAN = ("MUTAG", "GCN", "vpa"), ("COLLAB", "GIN", "mean")  # printed 76.1 ± 9.6, 32.5 ± 0.1


def twice(make_folds: Make, cell: tuple[str, str, str], *means: float) -> pd.DataFrame:
    return pd.concat(
        make_folds({cell: [mean - 0.01, mean, mean + 0.01]}, seed=seed)
        for seed, mean in enumerate(means)
    )


def test_a_cell_is_far_in_the_mean_of_both_seeds(make_folds: Make) -> None:
    assert far_cells(twice(make_folds, VPA, 0.76, 0.77)).empty
    (row,) = far_cells(twice(make_folds, VPA, 0.90, 0.92)).itertuples()
    assert row.difference == pytest.approx(91.0 - 76.1)


def test_a_standard_error_of_next_to_nothing_is_not_believed(make_folds: Make) -> None:
    """All folds are alike in print and here: 0.5 points are no matter, 19.5 are."""
    near = make_folds({MEAN: [0.33] * 10})
    assert far_cells(near).empty
    (row,) = far_cells(make_folds({MEAN: [0.52] * 10})).itertuples()
    assert row.z == pytest.approx(19.5 / 0.3)


def test_each_seed_stands_beside_the_print_and_what_is_known(
    make_folds: Make, tmp_path: Path
) -> None:
    folds = twice(make_folds, VPA, 0.90, 0.92)
    path = tmp_path / "evidence.csv"
    assert read_evidence(path) == {}
    head, _, line = difference_rows(Setting("released", "auto"), folds, {})
    assert head == ("| data set | method | print | ours, seed 0 | ours, seed 1 | difference | z |")
    assert line.startswith("| MUTAG | GCN+vpa | 76.1 ± 9.6 | 90.0 | 92.0 | +14.9 | +")
    path.write_text(
        "table,dataset,model,aggregation,released_code,learning_rate\n"
        "main,MUTAG,GCN,vpa,83.5 (ten folds),\n"
    )
    *_, line = difference_rows(Setting("released", "auto"), folds, read_evidence(path))
    assert line.endswith(r"| 83\.5 (ten folds) |  |")


def test_by_how_much_seeds_differ(make_folds: Make) -> None:
    cells = [twice(make_folds, VPA, 0.80, 0.81), twice(make_folds, MEAN, 0.5, 0.49)]
    assert between_seeds(pd.concat(cells)) == pytest.approx(2**0.5)
