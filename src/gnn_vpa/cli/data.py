"""``gnn-vpa data``: which data sets are there, whether they are right, and how to get them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as ProgressBar

from ..errors import GnnVpaError, UsageError
from ..escape import plain
from ..paper import Statistics, archive_names, paper_name, published_statistics
from ._console import console, print_table, progress, say

if TYPE_CHECKING:
    from gnn_vpa.graphs.download import Progress

app = typer.Typer(
    no_args_is_help=True, help="List, check and get the benchmark data sets (TU archives)."
)

_DataDir = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Look here first, before GNN_VPA_DATA and the downloads."),
]


# What is compared, and a heading for it that leaves room in 80 columns.
_COLUMNS = {
    "graphs": "graphs",
    "classes": "classes",
    "nodes": "nodes",
    "edges": "edges",
    "node_labels": "labels",
    "node_attributes": "attr.",
}


@app.command("list")
def list_data(data_dir: _DataDir = None) -> None:
    """Show which data sets are on this machine, and where.

    Examples:

      gnn-vpa data list

      gnn-vpa data list --data-dir ~/tu
    """
    from gnn_vpa.graphs import find_archives

    found = find_archives(data_dir)
    names = [*archive_names(), *sorted(set(found) - set(archive_names()))]
    print_table(
        "Data sets",
        ["archive", "in the paper", "where"],
        [[name, paper_name(name) or "-", _where(name, found)] for name in names],
    )


@app.command()
def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Data sets; without any, all that are here."),
    ] = None,
    data_dir: _DataDir = None,
) -> None:
    """Compare measured statistics with the published ones; exit code 1 if they differ.

    Nodes and undirected edges are averages per graph; labels and attributes are the nodes'.

    Examples:

      gnn-vpa data check

      gnn-vpa data check MUTAG imdb-b
    """
    from gnn_vpa.graphs import find_archives, load

    chosen = names or [name for name in archive_names() if name in find_archives(data_dir)]
    rows, faults, notes = [], [], []
    for name in chosen:
        try:
            with progress(f"Reading {name}"):
                graphs = load(name, data_dir)
        except UsageError:
            raise
        except GnnVpaError as error:
            faults.append(str(error))
            continue
        measured, published = graphs.statistics(), published_statistics(graphs.name)
        rows.append(_row(graphs.name, measured))
        if published is None:
            notes.append(f"{graphs.name}: nothing is published to compare it with.")
            continue
        rows.append(_row("  published", published))
        if differing := measured.differences(published):
            faults.append(f"{graphs.name} is not as published: see {', '.join(differing)}")
        if published.self_loops:
            notes.append(
                f"{graphs.name}: the published edges count {published.self_loops} self-loops, "
                "which are dropped here, as in PyG."
            )
    if rows:
        print_table("Statistics, measured and published", ["archive", *_COLUMNS.values()], rows)
    for note in notes:
        say(note)
    if faults:
        raise GnnVpaError("\n".join(faults))
    say("Measured and published agree, averages to 0.001.")


@app.command()
def get(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Data sets, or 'paper' for all nine.")
    ],
    data_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Put them here instead of the user's cache."),
    ] = None,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="Another place that has the archives.")
    ] = None,
) -> None:
    """Download data sets from the TU collection; one that was cut off goes on where it was.

    Examples:

      gnn-vpa data get MUTAG PTC

      gnn-vpa data get paper --data-dir ~/tu
    """
    from gnn_vpa.graphs import TU_COLLECTION, download

    if [name.casefold() for name in names] == ["paper"]:
        names = [name for name in archive_names() if paper_name(name)]
    for name in names:
        with _download_bar(name) as report:
            path = download(name, data_dir, base_url=url or TU_COLLECTION, progress=report)
        say(f"{path.stem}\t{path}")


def _where(name: str, found: dict[str, Path]) -> str:
    return str(found[name]) if name in found else f"not here: gnn-vpa data get {name}"


def _row(title: str, statistics: Statistics) -> list[str]:
    values = [getattr(statistics, field) for field in _COLUMNS]
    return [
        title,
        *(f"{value:.3f}" if isinstance(value, float) else str(value) for value in values),
    ]


@contextmanager
def _download_bar(name: str) -> Iterator["Progress"]:
    """Show a bar in a terminal and one plain line elsewhere, on standard error."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        say(f"Getting {name} …", err=True)
        yield lambda _done, _total: None
        return
    shown = TextColumn("{task.description}", markup=False)
    columns = (shown, BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with ProgressBar(*columns, console=screen) as bar:
        task = bar.add_task(plain(name))
        yield lambda done, total: bar.update(task, completed=done, total=total)
