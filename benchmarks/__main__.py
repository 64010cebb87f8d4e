"""Run the benchmarks and print them as Markdown, as ``benchmarks/RESULTS.md`` holds them.

``compare`` runs none: it says what became slower, by the history that earlier runs have left.
"""

import argparse
import platform
import sys
from collections.abc import Callable
from pathlib import Path

import torch
import torch_geometric

from . import (
    aggregation,
    audit,
    checks,
    epochs,
    estimators,
    full_batch,
    grid,
    history,
    imports,
    loop,
    own,
    peer,
    predict,
    probe,
    scale,
    scale_page,
    sharing,
    training,
)
from ._record import Record


def main() -> None:
    options = _options()
    if options.what == "compare":
        text, slower = history.compare(options.history or history.FILE)
        print(text)
        sys.exit(slower)
    machine = (
        torch.cuda.get_device_name()
        if options.device == "cuda"
        else f"{torch.get_num_threads()} CPU threads"
    )
    versions = (
        f"Python {platform.python_version()}, torch {torch.__version__}, "
        f"PyG {torch_geometric.__version__}, {machine}"
    )
    _measures()[options.what](options, versions)


def _measures() -> dict[str, Callable[[argparse.Namespace, str], None]]:
    """Return the benchmarks by name."""
    return {
        "aggregation": _aggregation,
        "training": _training,
        "epochs": _epochs,
        "probe": _probe,
        "grid": _grid,
        "checks": _checks,
        "loop": _loop,
        "audit": _audit,
        "own": _own,
        "estimators": _estimators,
        "predict": _predict,
        "scale": _scale,
        "sharing": _sharing,
        "ray": _ray,
    }


def _aggregation(options: argparse.Namespace, versions: str) -> None:
    ratios = history.Ratios()
    table = aggregation.report(options.device, options.seconds, ratios)
    _remember(ratios, options)
    parts = [versions, "## Aggregation", table]
    if options.device == "cuda":
        parts += ["## Bandwidth", aggregation.bandwidth()]
    else:
        parts += ["## Import", imports.report()]
    _write("\n\n".join(parts), options.out)


def _epochs(options: argparse.Namespace, versions: str) -> None:
    record = Record(options.out, machine=versions)
    record.text(f"{versions}\n\n## Epochs")
    epochs.report(
        options.device,
        options.datasets,
        options.epochs or 60,
        options.rounds,
        options.before,
        record,
    )


def _probe(options: argparse.Namespace, versions: str) -> None:
    table = probe.report(options.device, options.seconds)
    _write("\n\n".join([versions, "## Probe", table]), options.out)


def _grid(options: argparse.Namespace, versions: str) -> None:
    record = Record(options.out, machine=versions)
    record.text(f"{versions}\n\n## Large grids")
    grid.report(options.cells, options.memory, record)


def _checks(options: argparse.Namespace, versions: str) -> None:
    record = Record(options.out, machine=versions)
    record.text(f"{versions}\n\n## Checks")
    checks.report(checks.DATASETS, record)


def _loop(options: argparse.Namespace, versions: str) -> None:
    record = Record(options.out, machine=versions)
    record.text(f"{versions}\n\n## An ordinary loop")
    sets = options.datasets if options.datasets != training.DATASETS else loop.DATASETS
    ratios = history.Ratios()
    for compiled in (False, True) if options.compiled else (False,):
        loop.report(options.device, sets, options.models, options.seconds, record, ratios, compiled)
    full_batch.report(options.device, options.models, options.seconds, record)
    _remember(ratios, options)


def _audit(options: argparse.Namespace, versions: str) -> None:
    record = Record(options.out, machine=versions)
    record.text(f"{versions}\n\n## Audit")
    audit.report(audit.DATASETS, record)


def _own(options: argparse.Namespace, versions: str) -> None:
    record = Record(options.out, machine=versions)
    record.text(f"{versions}\n\n## Own models")
    datasets = own.DATASETS if options.datasets is training.DATASETS else options.datasets
    own.report(options.device, datasets, options.epochs, record)


def _estimators(options: argparse.Namespace, versions: str) -> None:
    record = Record(options.out, machine=versions)
    record.text(f"{versions}\n\n## Estimators")
    datasets = ["NCI1"] if options.datasets is training.DATASETS else options.datasets
    estimators.report(datasets, options.epochs or 10, options.rounds, record)


def _predict(options: argparse.Namespace, versions: str) -> None:
    record = Record(options.out, machine=versions)
    record.text(f"{versions}\n\n## Predictions")
    asked = predict.DATASETS if options.datasets is training.DATASETS else options.datasets
    predict.report(asked, options.rounds, record)


def _scale(options: argparse.Namespace, versions: str) -> None:
    if options.page:
        print(f"Wrote {scale_page.write_page(Path())}")
        return
    record = Record(options.out, machine=versions)
    record.text(f"{versions}\n\n## More processes")
    scale.report(options.processes, options.epochs or 3, record)


def _sharing(options: argparse.Namespace, versions: str) -> None:
    record = Record(options.out, machine=versions)
    record.text(f"{versions}\n\n## Sharing a GPU")
    sharing.report(options.device, sharing.COUNTS, options.seconds, record)


def _ray(options: argparse.Namespace, versions: str) -> None:
    from . import cluster  # which needs Ray

    record = Record(options.out, machine=versions)
    record.text(f"{versions}\n\n## Ray")
    cluster.report(options.sleeping, options.small, options.kills, record)


def _remember(ratios: history.Ratios, options: argparse.Namespace) -> None:
    if options.history:
        history.append(ratios, options.device, options.history)


def _write(text: str, out: Path | None) -> None:
    print(text)
    if out:
        out.write_text(text + "\n")


def _training(options: argparse.Namespace, versions: str) -> None:
    settings = training.Settings(
        options.device,
        options.datasets,
        options.parts or training.PARTS[options.device],
        options.seconds,
        options.rounds,
        options.epochs,
        options.lanes,
        options.manners,
    )
    record = Record(options.out, machine=versions)
    record.text(f"{versions}\n\n## Training")
    training.report(settings, record)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "what",
        nargs="?",
        choices=[*_measures(), "compare"],
        default="aggregation",
    )
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--seconds", type=float, default=6.0, help="time for each measurement")
    parser.add_argument(
        "--out", type=Path, help="also write the tables to this file (training: row by row, behind "
        "what it holds, and as JSON lines beside it)"
    )  # fmt: skip
    parser.add_argument(
        "--history",
        type=Path,
        nargs="?",
        const=history.FILE,
        metavar="FILE",
        help="aggregation and loop: add the ratios to a history, by default to "
        f"{history.FILE.name} beside the benchmarks; compare: the history to read",
    )
    own = parser.add_argument_group("training and epochs")
    own.add_argument(
        "--datasets",
        type=_names,
        default=training.DATASETS,
        metavar="A,B",
        help=f"by default {', '.join(training.DATASETS)}",
    )
    own.add_argument("--parts", type=_parts, metavar="A,B", help=f"of {', '.join(training.ALL)}")
    own.add_argument("--rounds", type=int, default=3, help="turns that the contenders take")
    own.add_argument("--epochs", type=int, help="epochs of ours, not as many as fit into the time")
    own.add_argument(
        "--before", type=Path, metavar="SRC", help="epochs: the src of a checkout of another commit"
    )
    own.add_argument(
        "--lanes", type=_numbers, default=(1, 10, 40), metavar="A,B", help="how many side by side"
    )
    manners = ", ".join(manner.name for manner in peer.MANNERS["cuda"])
    own.add_argument("--manners", type=_names, metavar="A,B", help=f"of the peer: {manners}")
    ordinary = parser.add_argument_group("loop (and --datasets)")
    ordinary.add_argument("--models", type=_names, default=tuple(loop.MODELS), metavar="A,B")
    ordinary.add_argument("--compiled", action="store_true", help="also under torch.compile")
    large = parser.add_argument_group("grid")
    large.add_argument(
        "--cells", type=_numbers, default=grid.CELLS, metavar="A,B", help="sizes of the grids"
    )
    large.add_argument(
        "--memory", type=_names, default=grid.DATASETS, metavar="A,B", help="data sets; '' for none"
    )
    more = parser.add_argument_group("scale (and --epochs)")
    more.add_argument("--processes", type=_numbers, default=scale.PROCESSES, metavar="A,B")
    more.add_argument("--page", action="store_true", help="only write docs/scale.md")
    nodes = parser.add_argument_group("ray (0 leaves a part out)")
    nodes.add_argument("--small", type=int, default=40, help="cells of a grid with and without")
    nodes.add_argument("--sleeping", type=int, default=1000, help="cells of a tenth of a second")
    nodes.add_argument("--kills", type=int, default=20, help="of random nodes during a run")
    return parser.parse_args()


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _parts(text: str) -> list[str]:
    parts = _names(text)
    for part in parts:
        if part not in training.ALL:
            raise argparse.ArgumentTypeError(f"{part!r} is none of {', '.join(training.ALL)}")
    return parts


def _numbers(text: str) -> list[int]:
    return [int(number) for number in _names(text)]


if __name__ == "__main__":
    main()
