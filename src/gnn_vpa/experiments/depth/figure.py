"""The picture of depth: the signal at the start, the loss and the accuracy, by aggregation."""

from typing import TYPE_CHECKING, Any

from ...aggregations import aggregation, ordered
from ...errors import UsageError
from ...escape import figure_text
from ...signal.figure import STYLE

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FINITE = 1e38  # what a float32 can hold
_TITLES = {
    ("default", False): "PyTorch's weights",
    ("default", True): "PyTorch's weights, residuals",
    ("init", False): "init_",
    ("init", True): "init_, residuals",
    ("calibrated", False): "init_ and calibrate",
    ("calibrated", True): "init_ and calibrate, residuals",
}


def plot_depth(results: "pd.DataFrame", signals: "pd.DataFrame", dataset: str) -> "Figure":
    """Draw one data set: a column for each kind of weights and residuals, three rows.

    Above, the variance of every layer at the start, of the deepest network that has at most 64
    layers (or the deepest). Below, the training loss of the last epoch and the test accuracy by
    depth, means over folds; crosses at the top are losses beyond the axis or not finite.

    Args:
        results: ``Records.results()``.
        signals: ``Records.signals()``.
        dataset: A data set that is in them.

    Example:
        >>> from gnn_vpa.experiments.depth import Records
        >>> nothing = Records("runs/none")
        >>> plot_depth(nothing.results(), nothing.signals(), "MUTAG")
        Traceback (most recent call last):
            ...
        gnn_vpa.errors.UsageError: there are no results of MUTAG to draw: ...
    """
    results, signals = (frame[frame["dataset"] == dataset] for frame in (results, signals))
    if results.empty:
        raise UsageError(f"there are no results of {dataset} to draw: run it first.")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    there = set(zip(results["weights"], results["residual"], strict=True))
    kinds = [kind for kind in _TITLES if kind in there]
    depths = sorted(results["depth"].unique())
    looked_at = max([depth for depth in depths if depth <= 64], default=depths[0])
    with rc_context(STYLE):
        figure = Figure(figsize=(1.2 + 2.9 * len(kinds), 8.0))
        rows = figure.subplots(3, len(kinds), sharey="row", squeeze=False)
        edge = 0.9 / figure.get_figwidth()
        figure.subplots_adjust(edge, 0.07, 1 - edge / 4, 0.89, wspace=0.1, hspace=0.33)
        for column, (weights, residual) in enumerate(kinds):
            start, loss, accuracy = rows[:, column]
            for aggr in ordered(results["aggr"]):
                own, layers = (
                    frame[
                        (frame["weights"] == weights)
                        & (frame["residual"] == residual)
                        & (frame["aggr"] == aggr)
                    ]
                    for frame in (results, signals)
                )
                if not own.empty:
                    _start(layers[layers["depth"] == looked_at], aggr, start)
                    _trained(own, aggr, loss, accuracy)
            start.set_title(_TITLES[weights, residual], loc="left", fontsize=10.5)
        _label(figure, rows, dataset, looked_at, depths, float(results["majority"].mean()))
    return figure


def _start(signals: "pd.DataFrame", aggr: str, axes: "Axes") -> None:
    mean = signals.groupby("layer")["variance"].mean()
    shown = mean.where(mean < _FINITE)
    axes.plot(shown.index, shown, color=aggregation(aggr).colour, linewidth=2.0, label=aggr)


def _trained(results: "pd.DataFrame", aggr: str, loss: "Axes", accuracy: "Axes") -> None:
    means = results.groupby("depth")[["last_loss", "test_accuracy"]].mean()
    style: dict[str, Any] = {
        "color": aggregation(aggr).colour,
        "marker": aggregation(aggr).marker,
        "markersize": 5,
    }
    highest = 1.0
    within = means["last_loss"].where(means["last_loss"] <= highest)
    loss.plot(means.index, within, **style)
    beyond = means.index[within.isna()]
    loss.plot(
        beyond,
        [highest] * len(beyond),
        "x",
        color=aggregation(aggr).colour,
        clip_on=False,
        zorder=3,
    )
    accuracy.plot(means.index, 100 * means["test_accuracy"], **style)


def _label(
    figure: "Figure", rows: Any, dataset: str, looked_at: int, depths: list[int], majority: float
) -> None:
    figure.suptitle(
        f"{figure_text(dataset)}: networks without normalisation",
        x=0.01,
        horizontalalignment="left",
        fontsize=13,
        fontweight="bold",
    )
    for start, loss, accuracy in zip(*rows, strict=True):
        start.set(yscale="log", xlabel="layer")
        start.axhline(1.0, color="#999999", linewidth=1.0, zorder=1)
        for axes in (loss, accuracy):
            axes.set_xscale("log", base=2)
            axes.set_xticks(depths, [str(depth) for depth in depths])
            axes.minorticks_off()
        accuracy.set_xlabel("number of layers")
        accuracy.axhline(100 * majority, color="#999999", linestyle=":", linewidth=1.2, zorder=1)
    first = [row[0] for row in rows]
    first[0].set_ylabel(f"variance at the start\n({looked_at} layers)")
    first[1].set(ylabel="training loss, last epoch", ylim=(None, 1.03))
    first[2].set_ylabel("test accuracy, %\n(dotted: majority class)")
    handles, labels = first[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper right", ncols=len(labels), frameon=False)
