"""``gnn-vpa watch``: a run in a browser, while it goes on."""

from pathlib import Path
from typing import Annotated

import typer

from ._console import say


def watch(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN", help="A run's folder, which need not be there yet, or its results."
        ),
    ],
    port: Annotated[
        int,
        typer.Option(min=0, max=65535, help="Where to serve the page.", show_default="a free one"),
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--open/--no-browser", help="Whether to open it in a browser.")
    ] = False,
) -> None:
    """Show a run in a browser while it goes on: what is done, what is trained, the answer so far.

    The run may be that of another process, be finished, or not have begun. The page is for this
    machine alone, and needs no network. Ctrl-C ends it; the run goes on.

    Examples:

      gnn-vpa watch runs/mutag

      gnn-vpa watch runs/paper --port 8000 --open
    """
    from ..live import Watched, WatchServer

    with WatchServer(Watched(run), port) as server:
        say(f"Watching {run} at {server.address}")
        say("Ctrl-C ends this; the run goes on.", err=True)
        if browser:
            import webbrowser

            webbrowser.open(server.address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            say("", err=True)
