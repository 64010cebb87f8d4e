"""The steps as a table for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from ...escape import plain as one_line
from ._numbers import NONE, TIMES, number, percent, times
from ._statistics import Statistics
from ._step import Step

if TYPE_CHECKING:
    from rich.table import Table

HEADER = ["layer", "step", "mean", "variance", "gain", "largest", "zeros", "grad. var.", "distance"]
_VARIANCE, _GAIN, _GRADIENT = map(HEADER.index, ("variance", "gain", "grad. var."))
_DISPENSABLE = ("mean", "zeros", "largest", "distance")  # the first goes first
_MOST = 64  # rows; a longer table shows the message passing alone
_PASSING = ("input", "message", "aggregation", "update", "readout", "parameter")


def rows(steps: Sequence[Step], most: int = _MOST) -> list[list[str]]:
    """Return the cells of a table of about ``most`` rows."""
    shown = list(steps)
    if len(shown) > most:
        shown = [step for step in shown if step.step in _PASSING] or shown
    if len(shown) > most:
        shown = [step for step in shown if step.step not in ("message", "update")]
    return [_cells(step) for step in shown]


def _cells(step: Step) -> list[str]:
    label = step.kind if step.step in ("output", "function") else step.step
    label = f"{label} ({step.aggr})" if step.aggr else label
    label = f"{label} {step.kind}" if step.step == "parameter" else label
    found = step.forward
    return [
        one_line(step.name),
        one_line(label),
        number(found.mean),
        _variance(found),
        times(step.gain),
        number(found.largest),
        percent(found.zeros),
        _variance(step.backward) if step.backward else NONE,
        number(step.distance),
    ]


def _variance(found: Statistics) -> str:
    broken = f" {found.nonfinite:,} NaN/∞" if found.nonfinite else ""
    return number(found.variance) + broken


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


def rich_table(steps: Sequence[Step], width: int) -> Table:
    """Return the table as rich draws it, what is out of the ordinary in colour.

    Where it is too wide, columns are left out, and never the layer's name.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    lines = rows(steps)
    places = _fitting(lines, width)
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for place in places:
        side: Literal["left", "right"] = "left" if place < 2 else "right"
        table.add_column(HEADER[place], justify=side, no_wrap=place > 0, overflow="fold")
    for cells in lines:
        gain = cells[_GAIN].removeprefix(TIMES).replace(",", "")
        odd = gain not in (NONE, "∞") and not 0.2 <= float(gain) <= 5
        styled = [Text(cell) for cell in cells]
        styled[_GAIN].stylize("bold red" if odd else "")
        for place in (_VARIANCE, _GRADIENT):
            styled[place].stylize("bold red" if "NaN" in cells[place] else "")
        if cells[1].startswith("aggregation"):
            styled[1].stylize("bold")
        table.add_row(*(styled[place] for place in places))
    return table


def _fitting(lines: list[list[str]], width: int) -> list[int]:
    """Return the columns that a table of some width has room for."""
    widths = [max(map(len, column)) + 2 for column in zip(HEADER, *lines, strict=True)]
    places = list(range(len(HEADER)))
    for name in _DISPENSABLE:
        if sum(widths[place] for place in places) <= width:
            break
        places.remove(HEADER.index(name))
    return places
