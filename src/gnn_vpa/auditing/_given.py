"""From what a user names to graphs that can be audited, and what is wrong with the others."""

import copy
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from ..errors import UsageError
from ..graphs import GraphSet, TargetKind, load
from ..graphs.load import name_of
from ..graphs.reference import call_reference
from ..graphs.targets import NO_TARGET, known

Source = str | os.PathLike[str] | GraphSet | Iterable[Data]

UNLABELLED = "the graphs have no labels"
PARTLY_LABELLED = "some graphs have no label"
NO_CLASSES = "the labels are numbers, not classes"
LABELS = "the targets are labels of yes or no, not classes"
ONE_CLASS = "all graphs are of one class"


class Given(NamedTuple):
    """Graphs to audit.

    Attributes:
        graphs: Those whose features are finite.
        without_classes: Why there is no class to predict, or None where there are two or more.
        not_finite: The numbers of the graphs that were left out: a feature is not finite.
    """

    graphs: GraphSet
    without_classes: str | None
    not_finite: tuple[int, ...] = ()


def given(
    data: Source,
    data_dir: str | os.PathLike[str] | None = None,
    task: TargetKind | Literal["auto"] = "auto",
) -> Given:
    """Load what `gnn_vpa.graphs.load` does, and one's own graphs without classes as well."""
    if isinstance(data, str) and _is_reference(data):
        return _own(_listed(call_reference(data, "a list of PyG Data objects"), data), data, task)
    if isinstance(data, str | os.PathLike | GraphSet):
        graphs = load(data, data_dir, NO_TARGET, task)  # what is missing is among the findings
        return Given(graphs, _without_classes(graphs))
    return _own(_listed(data, "data"), name_of(data), task)


def _is_reference(text: str) -> bool:
    path = Path(text)
    return ":" in text and path.name == text and path.suffix != ".zip" and not path.is_dir()


def _listed(graphs: object, what: str) -> list[Data]:
    if not isinstance(graphs, Iterable):
        raise UsageError(
            f"{what}: expected a name, a path, module:function, a GraphSet or a list of PyG Data "
            f"objects, got {type(graphs).__name__}"
        )
    return list(graphs)


def _own(graphs: list[Data], name: str, task: TargetKind | Literal["auto"]) -> Given:
    if not all(isinstance(graph, Data) for graph in graphs) or not graphs:
        return Given(GraphSet.from_pyg(graphs, name), None)  # says what is wrong with which
    target = NO_TARGET if all(graph.y is None for graph in graphs) else "y"
    broken = tuple(number for number, graph in enumerate(graphs) if _not_finite(graph))
    if broken:
        mended = [_mended(graph) for graph in graphs]
        GraphSet.from_pyg(mended, name, target, task)  # other faults come first
        if len(broken) == len(graphs):
            raise UsageError(
                f"{name}: every graph has a feature that is not finite: look at how they are made"
            )
    left = set(broken)
    whole = [graph for number, graph in enumerate(graphs) if number not in left]
    made = GraphSet.from_pyg(whole, name, target, task)
    return Given(made, _without_classes(made), broken)


def _without_classes(graphs: GraphSet) -> str | None:
    y, there = graphs.y, known(graphs.y)
    if not bool(there.any()):
        return UNLABELLED
    if graphs.kind == "regression":
        return NO_CLASSES
    if graphs.kind == "labels":
        return LABELS
    if not bool(there.all()):
        return PARTLY_LABELLED
    return ONE_CLASS if bool((y == y[:1]).all()) else None


def _not_finite(graph: Data) -> bool:
    return any(not bool(torch.isfinite(v.float()).all()) for v in _numbers(graph).values())


def _mended(graph: Data) -> Data:
    values = {key: value.float() for key, value in _numbers(graph).items()}
    return _with(graph, **{key: value.nan_to_num(0, 0, 0) for key, value in values.items()})


def _numbers(graph: Data) -> dict[str, Tensor]:
    values = {key: graph.get(key) for key in ("x", "edge_attr")}
    return {key: value for key, value in values.items() if isinstance(value, Tensor)}


def _with(graph: Data, **values: object) -> Data:
    changed = copy.copy(graph)
    for key, value in values.items():
        changed[key] = value
    return changed
