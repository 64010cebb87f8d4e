"""``gnn-vpa audit``: what can be known of a data set before training."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..files import write_whole
from ._console import console, progress, say
from ._options import DataDirOption, check_file
from ._training_options import TaskKind

if TYPE_CHECKING:
    from ..auditing import Audit

_Features = StrEnum("_Features", ["auto", "ones", "degree", "labels"])


def audit(
    datasets: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA",
            help="Names, TU archives, or module:function that returns PyG graphs.",
        ),
    ],
    task: Annotated[
        TaskKind, typer.Option(help="What the targets are; auto: as they look.")
    ] = TaskKind.auto,
    features: Annotated[
        _Features, typer.Option(help="Node features; auto: the data's own, else ones.")
    ] = _Features.auto,
    folds: Annotated[int, typer.Option(min=2, help="Number of folds.")] = 10,
    rounds: Annotated[
        int, typer.Option(min=0, help="The largest number of rounds of message passing.")
    ] = 5,
    baselines: Annotated[
        bool | None,
        typer.Option(
            help="Run the baselines as well: majority, no edges, no features, WL kernel.",
            show_default="up to 2,000 graphs",
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", "--out", metavar="FILE", help="Write a page.")
    ] = None,
    json_file: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Write all numbers; -: print nothing else."),
    ] = None,
    data_dir: DataDirOption = None,
) -> None:
    """Tell what can be known of data sets before training.

    The best accuracy that any message-passing network can have, contradictory
    labels, test graphs with a twin in training, classes, sizes, odd edges and
    features, quick baselines, and the variance that aggregations will leave.

    Examples:

      gnn-vpa audit MUTAG

      gnn-vpa audit IMDB-MULTI COLLAB --no-baselines --html audit.html

      gnn-vpa audit my/DATA.zip --features degree --json - | jq '.[0].findings'
    """
    if html is not None:
        check_file(html, "audit.html", "--html")
    if json_file not in (None, "-"):
        check_file(Path(json_file or ""), "audit.json", "--json")
    from ..auditing import audit as tell

    audits: list[Audit] = []
    try:
        for number, name in enumerate(datasets, 1):
            place = f" ({number} of {len(datasets)})" if len(datasets) > 1 else ""
            with progress(f"Auditing {name}{place}"):
                found = tell(
                    name,
                    task=task.value,
                    features=features.value,
                    folds=folds,
                    rounds=rounds,
                    baselines=baselines,
                    data_dir=data_dir,
                )
            audits.append(found)
            if json_file != "-":
                _print(found, first=number == 1)
    finally:  # what was found before an error or an interrupt is not lost
        if audits:
            _print_overview(audits, quiet=json_file == "-")
            _write(audits, html, json_file)


def _print(found: "Audit", *, first: bool) -> None:
    screen = console()
    if not first:
        say("")
    if screen.is_terminal:
        screen.print(found)
    else:
        say(str(found))


def _print_overview(audits: list["Audit"], *, quiet: bool) -> None:
    from ..auditing import overview

    if len(audits) > 1 and not quiet:
        say(f"\n{overview(audits)}")


def _write(audits: list["Audit"], html: Path | None, json_file: str | None) -> None:
    from ..auditing import render

    if html is not None:
        write_whole(html, render(audits))
        say(f"Wrote {html}", err=json_file == "-")
    if json_file is not None:
        text = json.dumps([one.to_dict() for one in audits], indent=2, allow_nan=False)
        if json_file == "-":
            say(text)
        else:
            write_whole(json_file, text + "\n")
            say(f"Wrote {json_file}")
