"""``gnn-vpa theory``: the variance that theory predicts beside what is measured, layer by layer."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ..errors import UsageError
from ..files import save_figure
from ._console import print_table, progress, say
from ._options import DataDirOption, check_file, listed

if TYPE_CHECKING:
    from ..graphs import FeatureKind
    from ..signal import LayerSignal, Sample

_Features = StrEnum("_Features", ["auto", "ones", "degree", "labels"])
_PICTURES = (".png", ".svg", ".pdf")


def theory(
    datasets: Annotated[
        list[str] | None,
        typer.Argument(metavar="DATASET...", help="Data sets.", show_default="MUTAG IMDB-BINARY"),
    ] = None,
    model: Annotated[
        str, typer.Option(metavar="NAME", help="Such as gin; gnn-vpa info lists all.")
    ] = "gcn",
    aggr: Annotated[
        str | None, typer.Option(help="Aggregations.", show_default="all that the model has")
    ] = None,
    depth: Annotated[int | None, typer.Option(min=1, help="Number of layers.")] = None,
    graphs: Annotated[int, typer.Option(min=1, help="Graphs of each data set.")] = 200,
    draws: Annotated[int, typer.Option(min=1, help="Draws of initial weights.")] = 8,
    seed: Annotated[int, typer.Option(min=0, help="Seed of weights and choice of graphs.")] = 0,
    features: Annotated[
        _Features, typer.Option(help="Node features; auto: the data's own, else ones.")
    ] = _Features.auto,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw it: a .png, .svg or .pdf.")
    ] = None,
    data_dir: DataDirOption = None,
) -> None:
    """Show where messages are not independent: the variance by layer, predicted and measured.

    The lemmas predict it from the graphs' edges and the initial weights, for independent messages,
    and again with the correlation that is measured between the messages into a node.

    Examples:

      gnn-vpa theory

      gnn-vpa theory COLLAB IMDB-BINARY MUTAG --model gcn --out theory.png

      gnn-vpa theory REDDIT-BINARY --model gat --graphs 50
    """
    if out is not None and out.suffix not in _PICTURES:
        raise UsageError(f"--out {out} must end in {', '.join(_PICTURES)}")
    if out is not None:
        check_file(out, "theory.png")
    if ":" in model:
        raise UsageError(
            f"--model {model}: theory has formulas for the models of gnn-vpa alone; measure the "
            f"signal in your own with gnn-vpa probe --model {model}"
        )
    from ..experiments.methods import known
    from ..graphs import load
    from ..nn import MODELS
    from ..signal import average_signals, plot_layers, sample

    model = known("model", model, MODELS)
    aggrs = MODELS[model].aggregations() if aggr is None else listed(aggr)
    names = datasets or ["MUTAG", "IMDB-BINARY"]
    options = {} if depth is None else {"depth": depth}
    signals: dict[str, dict[str, list[LayerSignal]]] = {}
    for name in names:
        kind = cast("FeatureKind", features.value)
        sampled = sample(load(name, data_dir), graphs, kind, seed)
        with progress(f"Measuring {model} on {name}, {draws} draws"):
            signals[name] = {
                chosen: average_signals(
                    [_signals(model, chosen, sampled, seed + n, options) for n in range(draws)]
                )
                for chosen in aggrs
            }
    print_table(
        f"{model}: variance before activation, at the start",
        ["data set", "aggr", "layer", "independent", "correlated", "measured", "rho"],
        [
            [name, chosen, layer.layer, *(f"{v:.3g}" for v in layer[1:4]), f"{layer.rho:.3f}"]
            for name, of_aggr in signals.items()
            for chosen, layers in of_aggr.items()
            for layer in layers
        ],
    )
    if out is not None:
        save_figure(plot_layers(signals, f"{model.upper()} at the start"), out)
        say(f"Wrote {out}")


def _signals(
    model: str, aggr: str, sampled: "Sample", seed: int, options: dict[str, int]
) -> list["LayerSignal"]:
    from ..nn import build_model
    from ..random_state import seeded
    from ..signal import signal_by_layer

    with seeded(seed):
        built = build_model(model, sampled.x.shape[1], 2, aggr, **options)  # type: ignore[arg-type]
    return signal_by_layer(built, *sampled)
