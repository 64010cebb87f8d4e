"""What a probe found."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import UsageError
from ...escape import printable
from ...files import refuse_folder, save_figure, write_whole
from . import _frame, _table
from ._run import Kept, Loss
from ._step import Step
from ._verdict import Finding, find, words

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from rich.console import Console, ConsoleOptions, RenderResult


class Report:
    """The signal of a network, step by step, and what is to be said about it.

    Printing it shows a table and the verdict.

    Attributes:
        steps: What was measured, in the order in which it ran.
        notes: What could not be seen, in words.

    Example:
        >>> import gnn_vpa, torch
        >>> from torch_geometric.nn import GIN
        >>> _ = torch.manual_seed(0)
        >>> x, edge_index = torch.randn(50, 8), torch.randint(50, (2, 1000))
        >>> report = gnn_vpa.probe(GIN(8, 16, num_layers=2), x, edge_index)
        >>> [step.step for step in report.steps if step.layer == "convs.0"]
        ['message', 'aggregation', 'function', 'update']
        >>> frame = report.to_frame()
        >>> bool(frame["gain"][2] > 10)  # a sum over 20 messages
        True
        >>> report.findings[0].remedy
        'convert(model)'
    """

    def __init__(
        self,
        steps: Sequence[Step],
        notes: Sequence[str] = (),
        kept: Kept | None = None,
        loss: Loss | None = None,
    ) -> None:
        self.steps = tuple(steps)
        self.notes = tuple(notes)
        self._kept, self._loss = kept, loss

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong, the most urgent first; empty if nothing is.

        Worked out when it is first asked for, because every remedy is tried on a copy of the
        model, as it was when it was probed.
        """
        findings = find(self.steps, self._kept, self._loss)
        self._kept = self._loss = None  # no longer needed
        return findings

    @cached_property
    def verdict(self) -> str:
        """What is to be said in words: the layer, the cause and the remedy, all of it measured."""
        return printable(words(self.steps, self.findings, self.notes))

    def to_frame(self, by: str | None = None) -> pd.DataFrame:
        """Return the numbers as a pandas frame.

        Args:
            by: None: a row for each step. ``"degree"`` or ``"size"``: a row for each step and
                group of nodes, by in-degree, or by the number of nodes of their graph.
        """
        if by not in (None, "degree", "size"):
            raise UsageError(f"by: {by!r} is unknown, expected None, 'degree' or 'size'.")
        return _frame.to_frame(self.steps, by)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the signal forward and backward, by degree, and the distance of neighbours.

        Args:
            path: A file to write it to as well; its ending says as what.

        Raises:
            UsageError: The path is a folder, or ends in what is not drawn.
        """
        from ._figure import draw

        if path is not None:
            refuse_folder(path, "signal.png")
        figure = draw(self.steps)
        if path is not None:
            save_figure(figure, path)
        return figure

    def to_html(self, path: str | Path | None = None) -> str:
        """Return a page that needs nothing else; write it to a file if one is named.

        Raises:
            UsageError: The path is a folder.
        """
        from ._page import render

        if path is not None:  # before remedies are tried, which takes a while
            refuse_folder(path, "signal.html")
        page = render(self)
        if path is not None:
            write_whole(path, page)
        return page

    def __str__(self) -> str:
        parts = (_table.plain(self.steps), _table.left_out(self.steps), self.verdict)
        return "\n\n".join(part for part in parts if part)

    def __repr__(self) -> str:
        return f"Report(steps={len(self.steps)})"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        yield _table.rich_table(self.steps, options.max_width)
        for part in (_table.left_out(self.steps), self.verdict):
            if part:
                yield Text(part)

    def _repr_html_(self) -> str:
        from ._page import table_html

        return table_html(self)
