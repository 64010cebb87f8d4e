"""The steps as a pandas frame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from ._statistics import Group, Statistics
from ._step import Step

if TYPE_CHECKING:
    import pandas as pd

_LABELS = ["index", "layer", "call", "kind", "step", "aggr"]
_STATISTICS = [field.name for field in fields(Statistics)][1:]
_GROUP = [field.name for field in fields(Group)]
_COLUMNS = {
    None: [
        *_LABELS,
        "shape",
        "unit",
        *_STATISTICS,
        "gain",
        "expected_gain",
        "total_gain",
        *(f"backward_{name}" for name in _STATISTICS),
        "backward_gain",
        "dirichlet",
        "distance",
        "between",
        "edge_types",
    ],
    "groups": [*_LABELS, *_GROUP, *(f"backward_{name}" for name in _GROUP[3:])],
}


def to_frame(steps: Sequence[Step], by: str | None) -> pd.DataFrame:
    """Return a row for each step, or for each step and group."""
    import pandas as pd

    rows = _whole(steps) if by is None else _grouped(steps, by)
    return pd.DataFrame(list(rows), columns=_COLUMNS[None if by is None else "groups"])


def _whole(steps: Sequence[Step]) -> Iterator[dict[str, Any]]:
    for step in steps:
        row = {name: getattr(step, name, None) for name in _COLUMNS[None]}
        row |= {name: getattr(step.forward, name) for name in _STATISTICS}
        if step.backward is not None:
            row |= {f"backward_{name}": getattr(step.backward, name) for name in _STATISTICS}
        yield row


def _grouped(steps: Sequence[Step], by: str) -> Iterator[dict[str, Any]]:
    for step in steps:
        labels = {name: getattr(step, name) for name in _LABELS}
        back = {group.low: asdict(group) for group in getattr(step, f"backward_by_{by}")}
        for group in getattr(step, f"by_{by}"):
            gradient = {f"backward_{k}": v for k, v in back.get(group.low, {}).items()}
            yield {**labels, **asdict(group), **gradient}
