"""Tables and progress for people in a terminal, plain lines for everything else."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table: drawn in a terminal, tab-separated lines into a file or a pipe.

    A column of numbers is set flush right.

    Example:
        >>> print_table("Variance", ["N", "vpa"], [["1", "1.00"]])  # doctest: +NORMALIZE_WHITESPACE
        N   vpa
        1   1.00
    """
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        for line in (header, *rows):
            typer.echo("\t".join(line))
        return
    rows = list(rows)
    console.print(title, style="bold")
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name, *cells in zip(header, *rows, strict=True):
        numeric = all(cell[:1].isdigit() for cell in cells)
        table.add_column(name, justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*row)
    console.print(table)


@contextmanager
def progress(message: str) -> Iterator[None]:
    """Show a moving message in a terminal, one plain line elsewhere, while something runs.

    Both go to standard error, so that standard output holds results alone.

    Example:
        >>> with progress("Measuring"):
        ...     answer = 42
    """
    console = Console(stderr=True, highlight=False, markup=False)
    if console.is_terminal:
        with console.status(f"{message} …"):
            yield
    else:
        typer.echo(f"{message} …", err=True)
        yield
