"""The steps as a table for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ._numbers import NONE, TIMES, number, percent, times
from ._step import Step

if TYPE_CHECKING:
    from rich.table import Table

HEADER = ["layer", "step", "mean", "variance", "gain", "largest", "zeros", "grad. var.", "distance"]
_MOST = 64  # rows; a longer table shows the message passing alone
_PASSING = ("input", "message", "aggregation", "update", "readout")


def rows(steps: Sequence[Step], most: int = _MOST) -> list[list[str]]:
    """Return the cells of a table of about ``most`` rows."""
    shown = list(steps)
    if len(shown) > most:
        shown = [step for step in shown if step.step in _PASSING] or shown
    if len(shown) > most:
        shown = [step for step in shown if step.step not in ("message", "update")]
    return [_cells(step) for step in shown]


def _cells(step: Step) -> list[str]:
    label = step.kind if step.step == "output" else step.step
    label = f"{label} ({step.aggr})" if step.aggr else label
    found = step.forward
    broken = f" {found.nonfinite:,} NaN/∞" if found.nonfinite else ""
    return [
        step.name,
        label,
        number(found.mean),
        number(found.variance) + broken,
        times(step.gain),
        number(found.largest),
        percent(found.zeros),
        number(step.backward.variance) if step.backward else NONE,
        number(step.distance),
    ]


def left_out(steps: Sequence[Step]) -> str:
    """Say how many rows a table does not show."""
    missing = len(steps) - len(rows(steps))
    return f"{missing} more steps in to_frame()." if missing else ""


def plain(steps: Sequence[Step]) -> str:
    """Return the table as text."""
    lines = [HEADER, *rows(steps)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place < 2 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def rich_table(steps: Sequence[Step]) -> Table:
    """Return the table as rich draws it, with what is out of the ordinary in colour."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for place, name in enumerate(HEADER):
        table.add_column(name, justify="left" if place < 2 else "right", no_wrap=place > 0)
    for cells in rows(steps):
        gain = cells[4].removeprefix(TIMES).replace(",", "")
        odd = gain not in (NONE, "∞") and not 0.2 <= float(gain) <= 5
        styled = [Text(cell) for cell in cells]
        styled[4].stylize("bold red" if odd else "")
        styled[3].stylize("bold red" if "NaN" in cells[3] else "")
        if cells[1].startswith("aggregation"):
            styled[1].stylize("bold")
        table.add_row(*styled)
    return table
