"""``gnn-vpa report``: what a run has come to."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import UsageError
from ._console import say
from ._options import listed


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder, or its results.")],
    formats: Annotated[
        str, typer.Option("--format", help="Of html, md, tex, csv: report.* in the run's folder.")
    ] = "html",
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write this file instead; its ending says as what."),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write the record of the paper's experiments into this repository, results/paper "
            "and docs/reproduction.md; of the fair comparison results/fair and docs/fair.md.",
        ),
    ] = None,
) -> None:
    """Show a run's results, and write them as a page, Markdown, LaTeX or CSV.

    The run may still be going on: it is reported as far as it has come.

    Examples:

      gnn-vpa report runs/mutag

      gnn-vpa report runs/table1 --format html,md,tex,csv

      gnn-vpa report runs/table1 --out table1.md

      gnn-vpa report runs/paper --record .
    """
    from gnn_vpa.analysis.once import remembering
    from gnn_vpa.results import FORMATS, Results

    from ._experiment import print_results

    if unknown := [name for name in listed(formats) if name not in FORMATS]:
        raise UsageError(f"--format: {unknown[0]!r} is unknown: use {', '.join(FORMATS)}")
    results = Results(run)
    with remembering():
        print_results(results)
        if record is not None:
            say(f"Wrote {results.record(record)}")
            return
        folder = results.folder
        paths = [out] if out else [folder / f"report.{ending}" for ending in listed(formats)]
        for path in paths:
            say(f"Wrote {results.report(path)}")
