"""``gnn-vpa depth``: which aggregation bears many layers?"""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ..aggregations import AGGREGATIONS, names
from ..errors import UsageError
from ..files import save_figure
from ._console import complain, print_table, say
from ._options import DataDirOption, DeviceOption, check_out, listed

if TYPE_CHECKING:
    import pandas as pd

    from ..graphs import FeatureKind

_Features = StrEnum("_Features", ["auto", "ones", "degree", "labels"])


def depth(
    datasets: Annotated[
        list[str] | None,
        typer.Argument(metavar="DATASET...", help="Data sets.", show_default="MUTAG IMDB-BINARY"),
    ] = None,
    depths: Annotated[str, typer.Option(help="Numbers of layers.")] = "4,8,16,32,64,128",
    aggr: Annotated[str, typer.Option(help=f"Of {names('operators')}.")] = "sum,mean,max,vpa",
    weights: Annotated[
        str,
        typer.Option(
            help="Initial weights, of default (PyTorch's), init (those of gnn_vpa.init_) and "
            "calibrated (these, after gnn_vpa.calibrate)."
        ),
    ] = "default,calibrated",
    residuals: Annotated[
        str, typer.Option(help="With variance-preserving residuals: yes, no or both.")
    ] = "both",
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of each training.")] = 20,
    folds: Annotated[int, typer.Option(min=1, max=10, help="How many of the ten folds.")] = 1,
    width: Annotated[int, typer.Option(min=1, help="Width of the layers.")] = 32,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the weights and the batches.")] = 0,
    features: Annotated[
        _Features, typer.Option(help="Node features; auto: the data's own, else ones.")
    ] = _Features.auto,
    device: DeviceOption = "auto",
    out: Annotated[Path, typer.Option(metavar="DIR", help="For the results.")] = Path("runs/depth"),
    data_dir: DataDirOption = None,
) -> None:
    """Train networks of 4 to 128 layers without any normalisation, and see which ones learn.

    The paper's GCN, with each aggregation, with and without calibrated weights, with and without
    residuals that preserve the variance, on the paper's splits. Gives the signal at the start, the
    training loss and the accuracy: two CSV files and a figure for each data set. What is finished
    is kept: the same command goes on where it was.

    Examples:

      gnn-vpa depth

      gnn-vpa depth IMDB-BINARY --depths 4,64 --aggr sum,vpa --epochs 50

      gnn-vpa depth MUTAG IMDB-BINARY COLLAB --folds 10 --epochs 100 --device cuda
    """
    from ..experiments import resolve_device
    from ..experiments.depth import Records, Training, jobs, run_jobs, variants
    from ..graphs import load
    from ._depth_progress import watching

    chosen = variants(tuple(listed(aggr)), tuple(listed(weights)), _residuals(residuals))
    names = datasets or ["MUTAG", "IMDB-BINARY"]
    training = Training(epochs=epochs, width=width, seed=seed)
    where = resolve_device(device)
    asked = jobs(
        names,
        _numbers(depths),
        chosen,
        training,
        folds=folds,
        features=cast("FeatureKind", features.value),
        data_dir=None if data_dir is None else str(data_dir),
    )
    check_out(out)
    records = Records(out)
    configuration = {
        "datasets": names, "depths": depths, "aggr": aggr, "weights": weights,
        "residuals": residuals, "epochs": epochs, "folds": folds, "width": width, "seed": seed,
        "features": features.value,
    }  # fmt: skip
    contents = {name: load(name, data_dir).checksum() for name in names}
    records.note(where, configuration, contents)
    try:
        with watching() as watcher:
            run_jobs(asked, records, device=where, watcher=watcher)
    except KeyboardInterrupt:
        text = "Interrupted. What is finished is kept; type the same command again to go on."
        complain(text)
        raise typer.Exit(130) from None
    results, signals = records.results(training), records.signals(training)
    for name in names:
        _print(results, name)
    say("res.: with residuals; inf: the loss was not finite; (1 of 2): in so many folds it was.")
    _write_figures(results, signals, names, out)
    say(f"Results: {out / 'depth.csv'}, {out / 'signal.csv'}")


def _numbers(text: str) -> list[int]:
    try:
        numbers = sorted({int(number) for number in listed(text)})
    except ValueError:
        numbers = []
    if not numbers or numbers[0] < 2:
        raise UsageError(f"--depths: {text!r} must be whole numbers from 2 on, like 4,16,64")
    return numbers


def _residuals(text: str) -> tuple[bool, ...]:
    known = {"yes": (True,), "no": (False,), "both": (False, True)}
    if text not in known:
        raise UsageError(f"--residuals: {text!r} is unknown, expected yes, no or both")
    return known[text]


def _print(results: "pd.DataFrame", dataset: str) -> None:
    """Print a line for each network, a column for each depth."""
    own = results[results["dataset"] == dataset]
    depths = sorted(own["depth"].unique())
    order = {name: place for place, name in enumerate(AGGREGATIONS)}
    groups = list(own.groupby(["weights", "residual", "aggr"]))
    groups.sort(key=lambda group: (group[0][0] != "default", *group[0][:2], order[group[0][2]]))
    chance = 100 * own["majority"].mean()
    print_table(
        f"{dataset}: test accuracy by number of layers, in percent ({chance:.1f} by chance)",
        ["data set", "weights", "aggr", *map(str, depths)],
        [
            [dataset, f"{weights}{', res.' if residual else ''}", aggr]
            + [_accuracy(group[group["depth"] == layers]) for layers in depths]
            for (weights, residual, aggr), group in groups
        ],
    )


def _accuracy(group: "pd.DataFrame") -> str:
    """Return the mean over folds whose loss was finite, and how many they are, if not all."""
    finite = group["test_accuracy"].dropna()
    if finite.empty:
        return "inf" if len(group) else ""
    lost = f" ({len(finite)} of {len(group)})" if len(finite) < len(group) else ""
    return f"{100 * finite.mean():.1f}{lost}"


def _write_figures(
    results: "pd.DataFrame", signals: "pd.DataFrame", datasets: list[str], out: Path
) -> None:
    from ..experiments.depth import plot_depth

    for name in datasets:
        picture = out / f"depth-{Path(name).stem.lower().replace(':', '-')}.png"
        save_figure(plot_depth(results, signals, name), picture)
        say(f"Wrote {picture}")
