"""Tables and progress for people in a terminal, plain lines for everything else.

Names come from outside: what they hold of rich's markup is shown as it is, and control characters,
which a terminal would obey, are dropped.
"""

import re
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..escape import plain, printable

_NUMBER = re.compile(r"[+\-\N{MINUS SIGN}]?(\d|\.\d|inf|nan|∞)")
_PERCENT = "\N{NO-BREAK SPACE}%"
_PAUSE_S = 60.0  # between two lines about how far something is
_MISSING = ("", "-", "\N{EN DASH}")


def console(*, stderr: bool = False) -> Console:
    """Return a console that shows text as it is; NO_COLOR and TERM=dumb count.

    Example:
        >>> console().print("[red]data set[/red]")
        [red]data set[/red]
    """
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def say(text: str, *, err: bool = False) -> None:
    r"""Write a line, or several.

    Example:
        >>> say("Wrote \x1b[31mreport.html")
        Wrote [31mreport.html
    """
    typer.echo(printable(text), err=err)


def prose(text: str) -> None:
    """Write sentences: between words a terminal goes on in the next line, a file has them in one.

    Example:
        >>> prose("  vpa is the best.")
          vpa is the best.
    """
    say(_wrapped(text))


def _wrapped(text: str) -> str:
    screen = console()
    if not screen.is_terminal:
        return text
    lines = []
    for line in printable(text).replace(" %", _PERCENT).split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        lines += textwrap.wrap(
            line,
            screen.width,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]
    return "\n".join(lines).replace(_PERCENT, " %")


def headline(text: str) -> None:
    """Write sentences that matter most: bold in a terminal, plain elsewhere.

    Example:
        >>> headline("vpa is the best.")
        vpa is the best.
    """
    console().print(printable(_wrapped(text)), style="bold", soft_wrap=True)


def complain(text: str) -> None:
    """Write what went wrong on standard error, in red where there may be colours.

    Example:
        >>> complain("Error: no such data set")
    """
    console(stderr=True).print(Text(printable(text), style="red"), soft_wrap=True)


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table: drawn in a terminal, tab-separated lines into a file or a pipe.

    A column of numbers is set flush right.

    Example:
        >>> print_table("Variance", ["N", "vpa"], [["1", "1.00"]])  # doctest: +NORMALIZE_WHITESPACE
        N   vpa
        1   1.00
    """
    lines = [[plain(cell) for cell in line] for line in (header, *rows)]
    screen = console()
    if not screen.is_terminal:
        for line in lines:
            say("\t".join(line))
        return
    screen.print(plain(title), style="bold")
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name, *cells in zip(*lines, strict=True):
        table.add_column(name, justify="right" if _is_numeric(cells) else "left", overflow="fold")
    for row in lines[1:]:
        table.add_row(*row)
    screen.print(table)


def _is_numeric(cells: Sequence[str]) -> bool:
    """Say whether a column holds numbers, of either sign, and perhaps gaps.

    Example:
        >>> _is_numeric(["+1.5", "-", "\N{MINUS SIGN}0.5 (7 of 10 folds)"]), _is_numeric(["-a"])
        (True, False)
    """
    there = [cell for cell in cells if cell not in _MISSING]
    return bool(there) and all(_NUMBER.match(cell) for cell in there)


@contextmanager
def progress(message: str) -> Iterator[None]:
    """Show a moving message in a terminal, one plain line elsewhere, while something runs.

    Both go to standard error, so that standard output holds results alone.

    Example:
        >>> with progress("Measuring"):
        ...     answer = 42
    """
    screen = console(stderr=True)
    if screen.is_terminal:
        with screen.status(Text(plain(f"{message} …"))):
            yield
    else:
        say(f"{message} …", err=True)
        yield


@contextmanager
def counted(message: str, what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Show how many are done of what takes its time, and give what is to be told of it.

    In a terminal that is a bar, elsewhere a line at the start and one a minute; both go to standard
    error.

    Args:
        message: What is done.
        what: What is counted.
        total: How many there are, if that is known.

    Example:
        >>> with counted("Predicting", "graphs") as done:
        ...     done(188)
    """
    screen = console(stderr=True)
    if not screen.is_terminal:
        say(f"{message} …", err=True)
        told = time.monotonic()

        def tell(done: int) -> None:
            nonlocal told
            if time.monotonic() - told >= _PAUSE_S:
                told = time.monotonic()
                say(f"{done:,} {what}", err=True)

        yield tell
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn())
    count = TextColumn("{task.fields[count]}")
    with Progress(*columns, count, console=screen, transient=True) as bars:
        bar = bars.add_task(plain(message), total=total, count="")
        yield lambda done: bars.update(bar, completed=done, count=f"{done:,} {what}")
