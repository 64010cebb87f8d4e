from itertools import combinations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from gnn_vpa import UsageError
from gnn_vpa.signal import LayerSignal, average_signals, plot_layers


def _layer(name: str, variance: float, rho: float = 0.5) -> LayerSignal:
    return LayerSignal(name, variance, 2 * variance, 3 * variance, 4 * variance, rho)


def test_draws_are_averaged_by_their_logarithms() -> None:
    draws = [[_layer("convs.0", 1.0, 0.2)], [_layer("convs.0", 100.0, 0.4)]]
    (layer,) = average_signals(draws)
    assert layer.layer == "convs.0"
    assert layer[1:5] == pytest.approx((10, 20, 30, 40))
    assert layer.rho == pytest.approx(0.3)


def test_a_panel_for_each_data_set_with_dots_and_two_lines() -> None:
    layers = [_layer("convs.0", 1.0), _layer("convs.1", 2.0), _layer("head.lin1", 3.0)]
    figure = plot_layers({"A": {"sum": layers, "vpa": layers}, "B": {"vpa": layers}}, "GCN")
    first, second = figure.axes
    assert [len(axes.lines) for axes in (first, second)] == [6, 3]
    assert [label.get_text() for label in first.get_xticklabels()] == ["1", "2", "readout"]
    assert np.asarray(second.lines[2].get_ydata()).tolist() == [3, 6, 9]
    assert first.get_yscale() == "log"


@pytest.mark.parametrize("panels", [1, 2])
def test_words_are_inside_the_picture_and_beside_each_other(panels: int) -> None:
    layers = [_layer("convs.0", 1.0)]
    aggrs = {"sum": layers, "mean": layers, "max": layers, "vpa": layers}
    figure = plot_layers({f"DATA-{n}": aggrs for n in range(panels)}, "GIN at the start")
    FigureCanvasAgg(figure).draw()
    title = figure._suptitle  # type: ignore[attr-defined]
    words = [title, *figure.texts, *figure.legends, *(axes.title for axes in figure.axes)]
    boxes = [one.get_window_extent() for one in words if one.get_window_extent().width > 0]
    width, height = figure.get_size_inches() * figure.dpi
    for box in boxes:
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= width
        assert box.y1 <= height
    rows = list({box.bounds: box for box in boxes}.values())
    assert not any(a.overlaps(b) for a, b in combinations(rows, 2))


def test_nothing_cannot_be_drawn() -> None:
    with pytest.raises(UsageError, match="signals must hold"):
        plot_layers({})
