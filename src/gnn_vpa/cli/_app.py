"""The root command: what is common to all commands, and the list of them."""

import signal
import sys
from typing import Annotated

import typer

import gnn_vpa

from ..processes import Termination
from ._errors import ExplainingGroup
from .audit import audit
from .data import app as data
from .demo import demo
from .depth import depth
from .evaluate import evaluate
from .export import export
from .expressivity import expressivity
from .info import info
from .predict import predict
from .probe import probe
from .report import report
from .reproduce import reproduce
from .run import run
from .theory import theory
from .train import train
from .variance import variance
from .watch import watch

app = typer.Typer(
    name="gnn-vpa",
    cls=ExplainingGroup,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Examples:\n\n  gnn-vpa demo\n\n  gnn-vpa run MUTAG --model gin,gcn --aggr sum,vpa\n\n"
    "  gnn-vpa data get MUTAG",
)
for command in (
    *(demo, run, reproduce, watch, report),
    *(train, predict, evaluate, export),
    *(audit, info, variance, probe, expressivity, theory, depth),
):
    app.command()(command)
app.add_typer(data, name="data")


def main() -> None:
    """Run the command line and end the process with its exit code.

    0: done. 1: something went wrong, and the message says what. 2: wrong use. 130: interrupted by
    Ctrl-C. 143: by SIGTERM, which batch systems and containers send; commands end by it in the same
    way.

    Example:
        >>> import sys
        >>> sys.argv = ["gnn-vpa", "--version"]
        >>> main()
        Traceback (most recent call last):
        SystemExit: 0
    """
    end = Termination()
    before = signal.signal(signal.SIGTERM, end)
    try:
        app(prog_name="gnn-vpa")
    except SystemExit as left:
        if end.number is not None and left.code == 130:
            sys.exit(128 + end.number)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gnn-vpa {gnn_vpa.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Variance-preserving aggregation for graph neural networks."""
