"""``gnn-vpa probe``: the signal in a network, layer by layer."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ..aggregations import names
from ..errors import UsageError
from ..files import write_whole
from ._console import console, progress, say
from ._options import DataDirOption, DeviceOption, Variant, VariantOption, check_file, current

if TYPE_CHECKING:
    from ..graphs import FeatureKind
    from ..signal.internal import Subject
    from ..signal.probing import Report, Watch

_Features = StrEnum("_Features", ["auto", "ones", "degree", "labels"])
_PICTURES = (".png", ".svg", ".pdf")
_LIKE = {"--html": "html", "--plot": "png", "--csv": "csv"}


def probe(
    dataset: Annotated[
        str | None,
        typer.Argument(
            metavar="DATASET",
            help="A name, a TU archive, or module:function that returns PyG graphs. Not needed for "
            "a model that comes with inputs.",
        ),
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            help="Such as gin; gnn-vpa info lists all. Or your own as module:function: "
            "make(in_channels, out_channels) as for gnn-vpa run, or one without arguments that "
            "returns a model, (model, inputs) or (model, inputs, loss)."
        ),
    ] = "gin",
    aggr: Annotated[str, typer.Option(help=f"Of {names()}; for the paper's models.")] = "vpa",
    train: Annotated[
        int, typer.Option(min=0, metavar="N", help="Follow the signal through N epochs.")
    ] = 0,
    every: Annotated[
        int | None,
        typer.Option(
            min=1, help="With --train: measure one step in so many.", show_default="20 in all"
        ),
    ] = None,
    graphs: Annotated[int, typer.Option(min=1, help="Graphs in a batch.")] = 64,
    depth: Annotated[int | None, typer.Option(min=1, help="Number of layers.")] = None,
    width: Annotated[int | None, typer.Option(min=1, help="Width of the layers.")] = None,
    features: Annotated[
        _Features, typer.Option(help="Node features; auto: the data's own, else ones.")
    ] = _Features.auto,
    variant: VariantOption = Variant.released,
    seed: Annotated[int, typer.Option(min=0, help="Seed of weights and batches.")] = 0,
    device: DeviceOption = "auto",
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page.")] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw it: a .png, .svg or .pdf.")
    ] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the numbers.")] = None,
    data_dir: DataDirOption = None,
) -> None:
    """Show what becomes of the signal in a network: forward, backward, by degree, layer by layer.

    One of the paper's models on a batch of a data set, or a model of your own.

    The verdict names the layer, the cause, and a remedy that has been tried.

    Examples:

      gnn-vpa probe MUTAG --model gin --aggr sum

      gnn-vpa probe REDDIT-BINARY --model gcn --depth 16 --html signal.html

      gnn-vpa probe --model mymodule:make --plot signal.png

      gnn-vpa probe IMDB-BINARY --aggr sum --train 20 --csv signal.csv
    """
    for option, file in (("--html", html), ("--plot", plot), ("--csv", csv)):
        if file is not None:
            check_file(file, f"signal.{_LIKE[option]}", option)
    if plot is not None and plot.suffix not in _PICTURES:
        raise UsageError(f"--plot {plot} must end in {', '.join(_PICTURES)}")
    from ..experiments import resolve_device
    from ..random_state import seeded

    where = resolve_device(device)
    with seeded(seed), current(where):  # of dropout
        subject = _subject(
            dataset, model, aggr, data_dir, graphs, seed, features.value, where, variant.value,
            every_batch=train > 0,
            options={key: value for key, value in (("depth", depth), ("width", width)) if value},
        )  # fmt: skip
        report, watch = _measure(subject, train, every)
    _write(report, watch, html, plot, csv)


def _measure(subject: "Subject", train: int, every: int | None) -> tuple["Report", "Watch | None"]:
    """Probe and print; where it is to be trained, once more behind it."""
    report = _probed(subject)
    if not train:
        _print(report)
        return report, None
    say("Before training:")
    _print(report)
    watch = _follow(subject, train, every)
    report = _probed(subject)
    say(f"\nAfter {train} {'epoch' if train == 1 else 'epochs'}:")
    _print(report)
    return report, watch


def _probed(subject: "Subject") -> "Report":
    with progress(f"Probing {subject.name}"):
        report = _report(subject)
        report.verdict  # noqa: B018 - remedies are tried here
    return report


def _subject(
    dataset: str | None,
    model: str,
    aggr: str,
    data_dir: Path | None,
    size: int,
    seed: int,
    kind: str,
    device: str,
    variant: str,
    *,
    every_batch: bool,
    options: dict[str, Any],
) -> "Subject":
    from ..graphs import load
    from ..signal.internal import own_model, papers_model

    graphs = None if dataset is None else load(dataset, data_dir)
    if ":" in model:
        return own_model(model, graphs, size, seed)
    if graphs is None:
        raise UsageError(
            "name a data set, such as MUTAG, or a model that comes with its inputs: "
            "--model module:function"
        )
    return papers_model(
        graphs,
        model,
        aggr,
        variant=variant,
        kind=cast("FeatureKind", kind),
        size=size,
        batches=None if every_batch else 1,
        seed=seed,
        device=device,
        **options,
    )


def _report(subject: "Subject") -> "Report":
    from ..signal import probe as measure

    first = subject.lessons[0]
    return measure(subject.model, *first.args, **first.kwargs)


def _follow(subject: "Subject", epochs: int, every: int | None) -> "Watch":
    from ..signal import probe as measure

    steps = epochs * len(subject.lessons)
    with (
        progress(f"Training {subject.name}, {steps:,} steps"),
        measure.during(subject.model, every=every or max(1, steps // 20)) as watch,
    ):
        subject.train(epochs)
    return watch


def _print(report: "Report") -> None:
    screen = console()
    if screen.is_terminal:
        screen.print(report)
    else:
        say(str(report))


def _write(
    report: "Report",
    watch: "Watch | None",
    html: Path | None,
    plot: Path | None,
    csv: Path | None,
) -> None:
    from ..analysis.exports import csv_of

    if html is not None:
        report.to_html(html)
        say(f"Wrote {html}")
    if plot is not None:
        (watch or report).plot(plot)
        say(f"Wrote {plot}")
    if csv is not None:
        write_whole(csv, csv_of((watch or report).to_frame()))
        say(f"Wrote {csv}")
