import math
from collections.abc import Callable

import pandas as pd
import pytest

from gnn_vpa.analysis import compare_with_paper, standard_error
from gnn_vpa.analysis.comparison import LIMIT
from gnn_vpa.paper import published

CELL = ("MUTAG", "GIN", "vpa")  # published: 86.7 ± 4.4


def test_standard_error_by_hand() -> None:
    expected = math.sqrt(5.0**2 / 10 + 4.4**2 / 10 + 0.01 / 12)
    assert standard_error(5.0, 10, 4.4) == pytest.approx(expected)


def test_rounding_is_all_that_constants_may_differ_by() -> None:
    error = standard_error(0.0, 10, 0.0)
    assert 0.05 / error < LIMIT < 0.1 / error


def test_rounding_is_negligible_elsewhere() -> None:
    assert standard_error(4.0, 10, 4.0) == pytest.approx(4 / math.sqrt(5), rel=1e-3)


def test_z_is_the_difference_in_standard_errors(make_folds: Callable[..., pd.DataFrame]) -> None:
    row = compare_with_paper(make_folds({CELL: [0.86, 0.9]})).iloc[0]
    assert row["difference"] == pytest.approx(88 - 86.7)
    assert row["z"] == pytest.approx(1.3 / standard_error(math.sqrt(8), 2, 4.4))
    assert row["within"] is True


def test_what_is_too_far_is_said_to_be(make_folds: Callable[..., pd.DataFrame]) -> None:
    row = compare_with_paper(make_folds({CELL: [0.60, 0.61] * 5})).iloc[0]
    assert row["z"] < -LIMIT
    assert row["within"] is False


def test_one_fold_is_not_judged(make_folds: Callable[..., pd.DataFrame]) -> None:
    row = compare_with_paper(make_folds({CELL: [0.5]})).iloc[0]
    assert row["difference"] == pytest.approx(-36.7)
    assert math.isnan(row["z"])
    assert row["within"] is None


def test_a_constant_classifier_agrees_with_its_printed_accuracy(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    """A third of the graphs is 33.333 %, and the paper prints 33.3 ± 0.0."""
    row = compare_with_paper(make_folds({("IMDB-M", "GIN", "mean"): [1 / 3] * 10})).iloc[0]
    assert row["within"] is True


def test_exactly_the_published_means_have_no_difference(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    table = published("table1")
    folds = make_folds(
        {
            (row.dataset, row.model, row.aggregation): [(row.mean - 1) / 100, (row.mean + 1) / 100]
            for row in table.itertuples()
        }
    )
    compared = compare_with_paper(folds)
    cells = compared[compared["dataset"] != "Avg"]
    averages = compared[compared["dataset"] == "Avg"]
    assert len(cells) == 108
    assert cells["difference"].abs().max() < 1e-9
    # The printed averages are rounded, and that of GCN+max is not quite the mean of its row.
    assert len(averages) == 12
    assert averages["difference"].abs().max() < 0.11
    assert averages["within"].all()


def test_fewer_sets_are_averaged_over_the_same_of_the_paper(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    folds = make_folds({(name, "GIN", "vpa"): [0.8, 0.9] for name in ("MUTAG", "PTC")})
    average = compare_with_paper(folds).set_index("dataset").loc["Avg"]
    assert average["paper"] == pytest.approx((86.7 + 60.1) / 2)
    parts = [standard_error(math.sqrt(50), 2, std) for std in (4.4, 5.8)]
    assert average["z"] == pytest.approx(average["difference"] / (math.hypot(*parts) / 2))


def test_degree_features_are_compared_with_the_appendix(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    folds = make_folds({("IMDB-B", "GIN", "vpa"): [0.7, 0.8]}, features="degree")
    assert compare_with_paper(folds)["paper"].tolist() == [73.7]


@pytest.mark.parametrize(
    "cell", [("mine", "GIN", "vpa"), ("PTC_MR", "GIN", "vpa"), ("MUTAG", "WL", "")]
)
def test_what_the_paper_does_not_have_is_left_out(
    make_folds: Callable[..., pd.DataFrame], cell: tuple[str, str, str]
) -> None:
    assert compare_with_paper(make_folds({cell: [0.7, 0.8]})).empty


def test_an_average_with_a_set_of_ones_own_has_no_counterpart(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    folds = make_folds({(name, "GIN", "vpa"): [0.8, 0.9] for name in ("MUTAG", "mine")})
    assert compare_with_paper(folds)["dataset"].tolist() == ["MUTAG"]


def test_a_cell_that_only_diverged_is_left_out(make_folds: Callable[..., pd.DataFrame]) -> None:
    assert compare_with_paper(make_folds({CELL: [math.nan]})).empty
