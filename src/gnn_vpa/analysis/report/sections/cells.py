"""Every cell of the paper with ours beside it, in Markdown; the page has that in its table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ....escape import markdown
from ...comparison import AVERAGE
from ...differences import CLOSE
from ...format import count, mean_std, noted, signed
from ...style import method_label
from ._section import Section, lines

if TYPE_CHECKING:
    import pandas as pd

    from .._part import Part
    from .._pictures import Pictures


class Cells(Section):
    """A line for each cell that the paper has too."""

    name = "cells"
    title = "Every cell"

    def markdown(self, part: Part, pictures: Pictures) -> str:
        """Return how many cells are close to the paper's, and all of them."""
        if part.compared.empty:
            return ""
        said = f"{close_cells(part.compared)}."
        return lines(f"{part.level} {self.title}", "", said, "", *cell_rows(part.compared), "")


def close_cells(compared: pd.DataFrame) -> str:
    """How many cells of `compare_with_paper` are close to the paper's, in words."""
    judged = compared[compared["dataset"] != AVERAGE].dropna(subset="z")
    close = int((judged["z"].abs() <= CLOSE).sum())
    share = f" ({close / len(judged):.0%})".replace("%", " %") if len(judged) else ""
    verb = "has" if len(judged) == 1 else "have"
    return f"{close} of {count(len(judged), 'cell')} {verb} |z| ≤ {CLOSE:g}{share}"


def cell_rows(compared: pd.DataFrame) -> Iterator[str]:
    """Ours beside the paper's, a line a cell."""
    yield "| data set | method | ours | paper | difference | z |"
    yield "|---|---|---:|---:|---:|---:|"
    for row in compared.itertuples():
        ours = noted(mean_std(row.ours, row.ours_std), row.note)
        paper = mean_std(row.paper, row.paper_std)
        label = markdown(method_label(row.model, row.aggregation))
        yield (
            f"| {markdown(row.dataset)} | {label} | {ours} | {paper} | {signed(row.difference)} "
            f"| {signed(row.z, 2)} |"
        )
