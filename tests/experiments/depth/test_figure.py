import math

import numpy as np
import pandas as pd
import pytest

from gnn_vpa import UsageError
from gnn_vpa.experiments.depth import plot_depth

KINDS = [(weights, residual) for weights in ("default", "calibrated") for residual in (False, True)]


def _frames() -> tuple[pd.DataFrame, pd.DataFrame]:
    results, signals = [], []
    for weights, residual in KINDS:
        for aggr in ("sum", "vpa"):
            for depth in (4, 64, 128):
                key = {"dataset": "D", "weights": weights, "residual": residual, "aggr": aggr}
                loss = math.inf if aggr == "sum" and depth == 128 else 0.5
                row = {"last_loss": loss, "test_accuracy": 0.75, "majority": 0.5}
                results.append({**key, "depth": depth, **row})
                signals += [
                    {**key, "depth": depth, "layer": layer, "variance": 1.0 + layer}
                    for layer in range(1, depth + 1)
                ]
    return pd.DataFrame(results), pd.DataFrame(signals)


def test_three_rows_and_a_column_for_each_kind() -> None:
    figure = plot_depth(*_frames(), "D")
    assert len(figure.axes) == 3 * len(KINDS)
    titles = [axes.get_title(loc="left") for axes in figure.axes[: len(KINDS)]]
    assert titles[0] == "PyTorch's weights"
    assert titles[-1] == "init_ and calibrate, residuals"


def test_the_signal_is_that_of_64_layers() -> None:
    start = plot_depth(*_frames(), "D").axes[0]
    assert len(np.asarray(start.lines[0].get_xdata())) == 64
    assert "64 layers" in start.get_ylabel()


def test_a_loss_that_is_not_finite_is_a_cross() -> None:
    loss = plot_depth(*_frames(), "D").axes[len(KINDS)]
    crosses = [line for line in loss.lines if line.get_marker() == "x"]
    assert [np.asarray(line.get_xdata()).tolist() for line in crosses] == [[128], []]


def test_a_data_set_without_results_is_wrong_use() -> None:
    with pytest.raises(UsageError, match="no results of MUTAG"):
        plot_depth(*_frames(), "MUTAG")
