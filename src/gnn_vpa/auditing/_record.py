"""What an audit found."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from ..files import refuse_folder, write_whole
from ..graphs import Ceiling
from ..signal import LayerSignal
from ._columns import Columns
from ._structure import Structure
from ._twins import Twins

if TYPE_CHECKING:
    import os

    from rich.console import Console, ConsoleOptions, RenderResult


class Finding(NamedTuple):
    """A sentence about a data set.

    Attributes:
        name: What it is about, one word or two, the same for every data set.
        text: The sentence.
        matters: Whether to read it before anything is trained.

    Example:
        >>> Finding("twins", "80 % of the test graphs have a twin in training.", True).name
        'twins'
    """

    name: str
    text: str
    matters: bool


class Label(NamedTuple):
    """How many graphs have a label, how many do not, and of how many that is missing.

    Example:
        >>> Label(zeros=5, ones=3, missing=2).ones
        3
    """

    zeros: int
    ones: int
    missing: int


class Round(NamedTuple):
    """What networks of so many rounds can do.

    Attributes:
        rounds: Rounds of message passing.
        distinct: How many graphs they can tell apart.
        contradictory: Graphs that are alike with one of another class; None without classes.
        ceiling: The best accuracy; None without classes.
        twins: Test graphs that have a twin; None without classes or folds.

    Example:
        >>> Round(5, 387, 1043, Ceiling(5, 387, 949, 1500), None).ceiling.right
        949
    """

    rounds: int
    distinct: int
    contradictory: int | None
    ceiling: Ceiling | None
    twins: Twins | None


class Baseline(NamedTuple):
    """What needs no graph network, under the same folds.

    Attributes:
        name: Of `gnn_vpa.experiments.fit_baseline`.
        label: What it is, in words.
        mean: Mean test accuracy over the folds; None where it could not be run.
        std: Its standard deviation.
        reason: Why it could not be run.

    Example:
        >>> Baseline("majority", "Majority class", 0.5, 0.0).mean
        0.5
    """

    name: str
    label: str
    mean: float | None
    std: float | None
    reason: str | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What can be known of a data set before anything is trained.

    Printing it shows what matters, in sentences, and then the tables.

    Attributes:
        name: What the data set is called.
        content: Its SHA-256, `GraphSet.checksum`.
        graphs: Number of graphs.
        features: Kind of node features.
        folds: Number of folds; None where there are none.
        classes: Members of each class; None where there are no classes.
        labels: What the graphs have of each label; None where there are no labels.
        rounds: What networks of 0, 1, ... rounds can do.
        structure: Sizes, degrees and odd edges.
        columns: Node features.
        variances: Expected variance by aggregation and layer.
        baselines: Accuracies of what is no graph network; empty where none was asked for.
        not_finite: Graphs that were left out because a feature is not finite, by number.
        untold: What could not be told, and why.

    Example:
        >>> import gnn_vpa
        >>> found = gnn_vpa.audit("MUTAG", baselines=False)
        >>> found.rounds[5].distinct, found.rounds[5].ceiling.accuracy
        (175, 1.0)
        >>> [finding.name for finding in found.findings][:3]
        ['twins', 'classes', 'few graphs']
    """

    name: str
    content: str
    graphs: int
    features: str
    folds: int | None
    classes: tuple[int, ...] | None
    labels: tuple[Label, ...] | None
    rounds: tuple[Round, ...]
    structure: Structure
    columns: Columns
    variances: dict[str, list[LayerSignal]]
    baselines: tuple[Baseline, ...]
    not_finite: tuple[int, ...]
    untold: tuple[str, ...]

    @property
    def last(self) -> Round:
        """The round with the most knowledge."""
        return self.rounds[-1]

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What is to be said in sentences, what matters most first."""
        from ._findings import findings

        return findings(self)

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as dictionaries and lists that JSON can hold."""
        found = {field.name: _plain(getattr(self, field.name)) for field in fields(self)}
        return {**found, "findings": _plain(self.findings)}

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return all numbers as JSON; write them to a file if one is named."""
        if path is not None:
            refuse_folder(path, "audit.json")
        text = json.dumps(self.to_dict(), indent=2, allow_nan=False, ensure_ascii=False) + "\n"
        if path is not None:
            write_whole(path, text)
        return text

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return a page that needs nothing else; write it to a file if one is named."""
        from ._page import render

        if path is not None:
            refuse_folder(path, "audit.html")
        page = render([self])
        if path is not None:
            write_whole(path, page)
        return page

    def __str__(self) -> str:
        from ._terminal import plain

        return plain(self)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from ._terminal import drawn

        yield from drawn(self)

    def _repr_html_(self) -> str:
        from ._page import piece

        return piece(self)

    def __repr__(self) -> str:
        return f"Audit({self.name!r}, graphs={self.graphs})"


def _plain(value: Any) -> Any:
    """Make dictionaries of records, lists of tuples, and None of what is no number."""
    if hasattr(value, "_asdict"):
        shares = {key: getattr(value, key) for key in _SHARES if hasattr(value, key)}
        return {key: _plain(one) for key, one in {**value._asdict(), **shares}.items()}
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


_SHARES = ("accuracy", "share")
