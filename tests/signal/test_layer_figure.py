import numpy as np
import pytest

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


def test_nothing_cannot_be_drawn() -> None:
    with pytest.raises(UsageError, match="signals must hold"):
        plot_layers({})
