from pathlib import Path

import numpy as np
import pytest

from gnn_vpa import UsageError
from gnn_vpa.aggregations import AGGREGATIONS
from gnn_vpa.signal import Separation, plot_expressivity

ROWS = [
    Separation(dataset, 10, aggr, precision, depth, seed, 45, told, 1e-7)
    for dataset in ("one", "two")
    for depth in (1, 2)
    for aggr in ("sum", "vpa")
    for precision in ("float64", "bfloat16")
    for seed, told in ((0, 45), (1, 36), (None, 45))
]


def test_a_panel_for_each_data_set_and_precision() -> None:
    figure = plot_expressivity(ROWS)
    assert [axes.get_title(loc="right") for axes in figure.axes] == ["float64", "bfloat16", "", ""]
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["one", "", "two", ""]


def test_lines_are_the_means_over_the_seeds_in_the_colours_of_the_aggregations() -> None:
    first, *_ = plot_expressivity(ROWS).axes
    lines = {line.get_label(): line for line in first.lines}
    assert {aggr: line.get_color() for aggr, line in lines.items()} == {
        aggr: AGGREGATIONS[aggr].colour for aggr in ("sum", "vpa")
    }
    assert np.asarray(lines["vpa"].get_ydata()) == pytest.approx([0.1, 0.1])


def test_nothing_missed_is_at_the_bottom_not_off_the_axis() -> None:
    (axes,) = plot_expressivity([row for row in ROWS if row[0] == "one" and row.seed == 0][:1]).axes
    (value,) = np.asarray(axes.lines[0].get_ydata())
    ticks = dict(
        zip(axes.get_yticks(), (t.get_text() for t in axes.get_yticklabels()), strict=True)
    )
    assert ticks[value] == "none"
    assert axes.get_ylim()[0] < value


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_it_can_be_saved(ending: str, tmp_path: Path) -> None:
    picture = tmp_path / f"expressivity.{ending}"
    plot_expressivity(ROWS).savefig(picture)
    assert picture.stat().st_size > 1000


def test_no_rows_are_refused() -> None:
    with pytest.raises(UsageError, match="rows"):
        plot_expressivity([])
