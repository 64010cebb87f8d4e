"""What a conversion did, and what it did not."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Change:
    """A module that a conversion met: what it was, and what it is, or why it was left.

    Attributes:
        path: Where it is in the model, as in ``model.get_submodule(path)``.
        before: What it was.
        after: What it became; None if it was left.
        reason: Why it was left; empty if it was changed.

    Example:
        >>> print(Change("conv1", "GINConv", "VPGINConv"))
        conv1: GINConv -> VPGINConv
    """

    path: str
    before: str
    after: str | None = None
    reason: str = ""

    def __str__(self) -> str:
        outcome = f" -> {self.after}" if self.after is not None else f" left: {self.reason}"
        return f"{self.path or '(model)'}: {self.before}{outcome}"


@dataclass(frozen=True)
class ConversionReport:
    """All that a conversion met, in the order of the model's modules.

    Attributes:
        entries: The modules, and functions called in ``forward``.
        signs: What shows that the model had been trained before: paths of weights that are not as
            they are drawn, and norms that have seen data.

    Example:
        >>> from gnn_vpa.pyg import convert
        >>> from torch import nn
        >>> from torch_geometric.nn import GINConv
        >>> _, report = convert(nn.ModuleDict({"conv": GINConv(nn.Linear(2, 2))}))
        >>> print(report)
        1 changed, 0 left
          changed  conv  GINConv -> VPGINConv
        The model computes something else now: train it.
        >>> [entry.path for entry in report.changed]
        ['conv']
    """

    entries: tuple[Change, ...]
    signs: tuple[str, ...] = ()

    @property
    def changed(self) -> list[Change]:
        """The modules that were changed."""
        return [entry for entry in self.entries if entry.after is not None]

    @property
    def left(self) -> list[Change]:
        """The modules, and functions called in ``forward``, that were left."""
        return [entry for entry in self.entries if entry.after is None]

    @property
    def advice(self) -> str:
        """What is to be done with a model that was changed."""
        if not self.signs:
            return "The model computes something else now: train it."
        more = f" and {len(self.signs) - 1} more" if len(self.signs) > 1 else ""
        return (
            f"The model had been trained ({self.signs[0]}{more}), and computes something else now: "
            "what it has learned does not fit. Train it again."
        )

    def __iter__(self) -> Iterator[Change]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def to_frame(self) -> "pd.DataFrame":
        """Return the entries as a pandas frame, a row each.

        Example:
            >>> list(ConversionReport(()).to_frame().columns)
            ['path', 'before', 'after', 'reason']
        """
        import pandas as pd

        columns = ["path", "before", "after", "reason"]
        return pd.DataFrame([vars(entry) for entry in self.entries], columns=columns)

    def __str__(self) -> str:
        if not self.entries:
            return "nothing changed: no aggregation, attention or pooling was found"
        rows = [
            (
                "left" if entry.after is None else "changed",
                entry.path or "(model)",
                f"{entry.before}: {entry.reason}"
                if entry.after is None
                else f"{entry.before} -> {entry.after}",
            )
            for entry in self.entries
        ]
        width = max(len(path) for _, path, _ in rows)
        head = f"{len(self.changed)} changed, {len(self.left)} left"
        if not self.changed:
            head = f"nothing changed, {len(self.left)} left"
        lines = [f"  {how:7}  {path:{width}}  {what}" for how, path, what in rows]
        return "\n".join([head, *lines, *([self.advice] if self.changed else [])])
