"""An audit in a terminal, or as plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..escape import plain as one_line
from ._numbers import many
from ._tables import Table, tables

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ._record import Audit

_WIDTH = 100


def plain(audit: Audit) -> str:
    """Return all of an audit as text."""
    head = [f"{one_line(audit.name)}: {many(audit.graphs, 'graph')}", *sentences(audit)]
    return "\n\n".join(["\n".join(head), *(plain_table(table) for table in tables(audit))])


def sentences(audit: Audit) -> list[str]:
    """Return the findings as lines of a list: those that matter are marked with an asterisk."""
    return [
        textwrap.fill(
            f"{'*' if finding.matters else '-'} {one_line(finding.text)}",
            _WIDTH,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for finding in audit.findings
    ]


def plain_table(table: Table) -> str:
    """Return a table as text: its title, aligned columns and the note."""
    lines = [list(table.header), *([one_line(cell) for cell in row] for row in table.rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    note = textwrap.wrap(table.note, _WIDTH)
    return "\n".join([one_line(table.title), *rows, *note])


def drawn(audit: Audit) -> Iterator[RenderableType]:
    """Yield what rich shows of an audit."""
    from rich.text import Text

    yield Text(f"{one_line(audit.name)}: {many(audit.graphs, 'graph')}", style="bold")
    for finding in audit.findings:
        yield _bullet(one_line(finding.text), finding.matters)
    for table in tables(audit):
        yield from drawn_table(table)


def drawn_table(table: Table) -> Iterator[RenderableType]:
    """Yield what rich shows of a table."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable
    from rich.text import Text

    yield Text(f"\n{one_line(table.title)}", style="bold")
    shown = RichTable(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for place, name in enumerate(table.header):
        shown.add_column(Text(name), justify="left" if place == 0 else "right", overflow="fold")
    for row in table.rows:
        shown.add_row(*(Text(one_line(cell)) for cell in row))
    yield shown
    if table.note:
        yield Text(table.note, style="dim")


def _bullet(text: str, matters: bool) -> RenderableType:
    from rich.table import Table as RichTable
    from rich.text import Text

    line = RichTable.grid(padding=(0, 1, 0, 0))
    line.add_row(Text("•", style="bold yellow" if matters else "dim"), Text(text))
    return line


def overview(audits: Sequence[Audit]) -> str:
    """Return several audits in one table, as text.

    Example:
        >>> import gnn_vpa
        >>> print(overview([gnn_vpa.audit("MUTAG", baselines=False)]).splitlines()[2])
        MUTAG        188       175   100   11.2     66.5      66.5         –
    """
    from ._tables import overview as table

    return plain_table(table(audits))
