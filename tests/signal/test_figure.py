from pathlib import Path

import pytest

from gnn_vpa import UsageError
from gnn_vpa.aggregations import AGGREGATIONS
from gnn_vpa.signal import plot_variance, variance_by_neighbours

AGGRS = ("sum", "mean", "max", "vpa")


def test_each_aggregation_is_labelled_in_its_colour() -> None:
    variances, _ = plot_variance(variance_by_neighbours(AGGRS, [1, 10], trials=50)).axes
    labels = {text.get_text(): text.get_color() for text in variances.texts}
    assert labels == {aggr: AGGREGATIONS[aggr].colour for aggr in AGGRS}


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_one_point_is_enough_for_a_picture(ending: str, tmp_path: Path) -> None:
    picture = tmp_path / f"variance.{ending}"
    plot_variance(variance_by_neighbours(["vpa"], [1], trials=50)).savefig(picture)
    assert picture.stat().st_size > 1000


def test_no_points_are_refused() -> None:
    with pytest.raises(UsageError, match="points"):
        plot_variance([])
