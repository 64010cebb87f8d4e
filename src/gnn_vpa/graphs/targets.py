"""What is learned of a graph: a class, several labels at once, or numbers.

The type of ``GraphSet.y`` says which, and nothing else does:

==========  ==================  ============================  ========
kind        ``y``               a value                       missing
==========  ==================  ============================  ========
classes     int64 ``[G]``       the class, counted from 0     -1
labels      int8 ``[G, T]``     0 or 1 for each of T labels   -1
regression  float32 ``[G, T]``  a number for each target      NaN
==========  ==================  ============================  ========
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import GnnVpaError, UsageError

if TYPE_CHECKING:
    from .graphset import GraphSet

TargetKind = Literal["classes", "labels", "regression"]
KINDS: tuple[TargetKind, ...] = ("classes", "labels", "regression")
MISSING = -1  # in the place of a class or a label that is not known
NO_TARGET = ""  # as the name of a target: graphs have none, as those have whose class is asked for
_COARSE = 1e-3  # of the standard deviation: what rounding may take away
_EXACT = 1 << 53  # from here on a floating-point number may stand for several whole ones

_KIND_OF: dict[tuple[torch.dtype, int], TargetKind] = {
    (torch.int64, 1): "classes",
    (torch.int8, 2): "labels",
    (torch.float32, 2): "regression",
}
_NOUNS = {"classes": "classes", "labels": "labels", "regression": "targets"}
_NODES = (
    "has a value for every node, and here whole graphs are learned. What can be done instead: give "
    "each graph one class, labels or numbers [1, T]; or make a graph of each node's neighbourhood "
    "(torch_geometric.utils.k_hop_subgraph) with that node's value as y; or train a PyG network on "
    "nodes yourself, with gnn_vpa.convert"
)


class Targets(NamedTuple):
    """What a data set's graphs are to be known by."""

    y: Tensor
    class_names: tuple[str, ...] | None = None
    classes: tuple[int, ...] | None = None  # see `Numbering`


def kind_of(y: Tensor) -> TargetKind:
    """Return what targets are, from their type.

    Example:
        >>> kind_of(torch.tensor([0, 2, 1])), kind_of(torch.tensor([[0.5], [float("nan")]]))
        ('classes', 'regression')
    """
    kind = _KIND_OF.get((y.dtype, y.dim()))
    if kind is None:
        raise GnnVpaError(
            "y must be int64 [G] (classes), int8 [G, T] (labels) or float32 [G, T] (regression), "
            f"but is {y.dtype} {list(y.shape)}"
        )
    return kind


def known(y: Tensor) -> Tensor:
    """Say which targets are there, in the shape of ``y``.

    Example:
        >>> known(torch.tensor([1, -1, 0]))
        tensor([ True, False,  True])
    """
    return ~y.isnan() if y.is_floating_point() else y != MISSING


def num_outputs(y: Tensor) -> int:
    """Return how many outputs a network needs: one for each class, label or target.

    Example:
        >>> num_outputs(torch.tensor([0, 2, 1])), num_outputs(torch.zeros(5, 2))
        (3, 2)
    """
    if kind_of(y) == "classes":
        return int(y.max()) + 1 if len(y) else 0
    return y.shape[1]


def check_targets(y: Tensor) -> None:
    """Refuse targets that are of no kind, or beyond what their kind has."""
    kind = kind_of(y)
    if kind == "classes" and bool((y < MISSING).any()):
        raise GnnVpaError(f"y must count from 0 (-1: missing), but has {y.min()}")
    if kind == "labels" and bool(((y < MISSING) | (y > 1)).any()):
        raise GnnVpaError("y must be 0 or 1 for each label (-1: missing)")
    if kind == "regression" and bool(y.isinf().any()):
        graph, column = y.isinf().nonzero()[0].tolist()
        raise GnnVpaError(
            f"y of graph {graph}, column {column} (counted from 0) is {y[graph, column].item()}: "
            "give a finite number of 32 bits, or NaN where it is missing"
        )
    if kind != "classes" and y.shape[1] == 0:
        raise GnnVpaError("y has no column: give each graph one target or more")


def missing_remark(graphs: "GraphSet") -> str | None:
    """Say how many targets are missing, or None where all are there.

    Example:
        >>> from torch_geometric.data import Data
        >>> from gnn_vpa.graphs import GraphSet
        >>> pair = torch.tensor([[0, 1], [1, 0]])
        >>> some = [Data(edge_index=pair, num_nodes=2, y=y) for y in (0.5, float("nan"))]
        >>> missing_remark(GraphSet.from_pyg(some, "toy"))
        'toy: 1 of 2 targets is missing: it is left out of the loss and of every metric'
    """
    there = known(graphs.y)
    gone, noun = int((~there).sum()), _NOUNS[kind_of(graphs.y)]
    if gone == 0:
        return None
    if gone == there.numel():
        return (
            f"{graphs.name}: no graph has a target, so that nothing can be learned from them; they "
            "can be audited, and predicted for"
        )
    left = "is missing: it is" if gone == 1 else "are missing: they are"
    return (
        f"{graphs.name}: {gone} of {there.numel()} {noun} {left} left out of the loss and of every "
        "metric"
    )


def with_target(
    graphs: "GraphSet", column: str | None = None, kind: TargetKind | Literal["auto"] = "auto"
) -> "GraphSet":
    """Return a data set whose ``y`` is another column, or of another kind.

    Args:
        graphs: The data set.
        column: ``"y"`` (the same as None), ``"attributes"`` (TU's `_graph_attributes.txt`), or one
            column of either, counted from 0: ``"attributes:2"``. An attribute of PyG's graphs is
            named when they become a data set: ``GraphSet.from_pyg(graphs, target="homo")``.
        kind: What its values are. With ``"auto"``, text and one whole number are classes, 0 and 1
            in floating point, or in several columns, are labels, and other numbers are regression.

    Returns:
        The data set; where the target is not ``y`` its name says the column.

    Raises:
        UsageError: There is no such column, or its values are not of that kind.

    Example:
        >>> from torch_geometric.data import Data
        >>> from gnn_vpa.graphs import GraphSet
        >>> pair = torch.tensor([[0, 1], [1, 0]])
        >>> some = [Data(edge_index=pair, num_nodes=2, y=torch.tensor([[0.5, i]])) for i in (1, 2)]
        >>> with_target(GraphSet.from_pyg(some, "toy"), "y:1")
        GraphSet('toy:y:1', graphs=2, targets=1, nodes=4, edges=4)
        >>> with_target(GraphSet.from_pyg(some, "toy"), "y:1", "classes").y
        tensor([0, 1])
    """
    column = column or "y"
    source, _, number = column.partition(":")
    own = kind_of(graphs.y)
    if column == "y" and kind in ("auto", own):
        return graphs
    if source == "y" and own == "classes":
        raise UsageError(
            f"{graphs.name}: y are classes, of which there is one for each graph and whose numbers "
            f"are mere names, so that {column!r} as {kind} is not to be had: give other values as y"
        )
    values = _columns(graphs, source)
    if number:
        if not number.isdecimal() or int(number) >= values.shape[1]:
            raise UsageError(
                f"{graphs.name}: {source} has no column {number!r}: it has {values.shape[1]}, "
                "counted from 0"
            )
        values = values[:, int(number) : int(number) + 1]
    name = graphs.name if column == "y" else f"{graphs.name}:{column}"
    try:
        made = targets_of(list(values.double().numpy()), kind, name=column)
        if source == "attributes" and kind_of(made.y) == "regression":
            # They are kept in 32 bits: what was taken from them is not known, but how much at most.
            _check_rounding(made.y.double().numpy(), np.spacing(np.abs(made.y.numpy())) / 2)
    except ValueError as error:
        raise UsageError(f"{graphs.name}, {error}") from None
    numbering = replace(graphs.numbering, classes=made.classes)
    return replace(graphs, name=name, y=made.y, class_names=None, numbering=numbering)


def _columns(graphs: "GraphSet", source: str) -> Tensor:
    if source == "y":
        return torch.where(known(graphs.y), graphs.y.float(), torch.nan)
    if source == "attributes" and graphs.graph_attributes is not None:
        return graphs.graph_attributes
    there = ["y"] if graphs.graph_attributes is None else ["y", "attributes"]
    raise UsageError(
        f"{graphs.name}: there is no target {source!r}, expected one of {', '.join(there)}; an "
        "attribute of PyG's graphs is named when they become a data set: "
        f"GraphSet.from_pyg(graphs, target={source!r})"
    )


def targets_of(
    values: Sequence[object],
    kind: TargetKind | Literal["auto"] = "auto",
    nodes: Sequence[int] = (),
    name: str = "y",
) -> Targets:
    """Make targets of what graphs have: numbers, text, arrays or tensors, NaN where it is missing.

    Args:
        values: One for each graph.
        kind: What they are, see `with_target`.
        nodes: How many nodes each graph has, if known: as many values are about nodes.
        name: What the values are called in messages.

    Raises:
        ValueError: They cannot be used; the message says why, without the data set's name.

    Example:
        >>> targets_of(["toxic", "safe", float("nan")])
        Targets(y=tensor([ 1,  0, -1]), class_names=('safe', 'toxic'), classes=None)
    """
    if kind not in ("auto", *KINDS):
        raise ValueError(f"{name}: no kind is called {kind!r}: auto, {', '.join(KINDS)} are")
    rows = [_array(value) for value in values]
    about_nodes = [len(row) == count for row, count in zip(rows, nodes, strict=False)]
    if about_nodes and all(about_nodes) and max(nodes) > 1:
        raise ValueError(f"{name} {_NODES}")
    forms = [_form(row) for row in rows]
    usual = next((form for form in forms if form != "missing"), "real")
    rows = [row.reshape(-1) if row.ndim == 1 or len(row) == 1 else row for row in rows]
    width = len(rows[0])
    for index, (row, form) in enumerate(zip(rows, forms, strict=True)):
        if form == "unknown" or row.ndim != 1 or form not in (usual, "missing"):
            raise ValueError(
                f"graph {index}: {name} must be one whole number or text (the class), or numbers "
                "[1, T], of the same form in all graphs, and NaN where it is missing, but is "
                f"{values[index]!r}"
            )
        if len(row) != width or width == 0:
            raise ValueError(
                f"graph {index}: {name} has {len(row)} value(s), and {width} in graph 0: give as "
                "many, NaN where one is missing"
            )
    try:
        return _of_rows(rows, forms, usual, kind)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _of_rows(
    rows: list[NDArray[Any]], forms: list[str], usual: str, kind: TargetKind | Literal["auto"]
) -> Targets:
    if usual == "text":
        return _named_classes(rows, forms, kind)
    table = np.stack([row.astype(np.float64) for row in rows])
    if usual == "whole" and np.abs(table).max(initial=0) >= _EXACT:
        raise ValueError(f"whole numbers from {_EXACT:,} on are not told apart: number the classes")
    if kind == "auto":
        kind = _guess(table, usual)
    return _TABLES[kind](table)


def _array(value: object) -> NDArray[Any]:
    array = value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)
    return array.reshape(1) if array.ndim == 0 else array


def _form(row: NDArray[Any]) -> str:
    """Say of what form a graph's values are."""
    if row.dtype.kind == "f":
        return "missing" if bool(np.isnan(row).all()) else "real"
    return {"b": "whole", "i": "whole", "u": "whole", "U": "text"}.get(row.dtype.kind, "unknown")


def _guess(table: NDArray[Any], form: str) -> TargetKind:
    values = np.unique(table[~np.isnan(table)])
    if len(values) > 2 and np.array_equal(values, np.arange(len(values)) - 1):
        one = "--task classes or " if table.shape[1] == 1 else ""
        raise ValueError(
            f"the values count from -1 to {values[-1]:.0f}, and -1 may stand for a missing target: "
            f"put NaN where it does, or say what is learned with {one}--task regression (task= in "
            "Python, kind= of GraphSet.from_pyg)"
        )
    if form == "whole" and table.shape[1] == 1:
        return "classes"
    if np.isin(values, (0, 1)).all():
        return "labels"
    if form == "whole":
        raise ValueError(
            f"{table.shape[1]} whole numbers for each graph that are not all 0 or 1: say that they "
            "are numbers to be learned (kind='regression'), or choose a column"
        )
    return "regression"


def _named_classes(rows: list[NDArray[Any]], forms: list[str], kind: str) -> Targets:
    if kind not in ("auto", "classes") or len(rows[0]) != 1:
        raise ValueError("text can only be the class of a graph: give one for each graph")
    names = [str(row[0]) if form == "text" else None for row, form in zip(rows, forms, strict=True)]
    number = {
        name: n for n, name in enumerate(sorted({name for name in names if name is not None}))
    }
    y = [MISSING if name is None else number[name] for name in names]
    return Targets(torch.tensor(y), tuple(number))


def _classes(table: NDArray[Any]) -> Targets:
    """Number classes in sorted order."""
    if table.shape[1] != 1:
        raise ValueError(f"{table.shape[1]} values for each graph, and a class is one")
    there = ~np.isnan(table[:, 0])
    if not (table[there] == np.rint(table[there])).all():
        raise ValueError("classes are whole numbers or text, and there are others")
    y = np.full(len(table), MISSING)
    classes, y[there] = np.unique(table[there, 0], return_inverse=True)
    return Targets(torch.from_numpy(y), classes=tuple(map(int, classes)))


def _labels(table: NDArray[Any]) -> Targets:
    there = ~np.isnan(table)
    wrong = table[there][~np.isin(table[there], (0, 1))]
    if len(wrong) > 0:
        raise ValueError(f"labels are 0 or 1, NaN where they are missing, and one is {wrong[0]:g}")
    return Targets(torch.from_numpy(np.where(there, table, MISSING).astype(np.int8)))


def _numbers(table: NDArray[Any]) -> Targets:
    return Targets(narrowed(table))


def narrowed(table: NDArray[Any]) -> Tensor:
    """Return numbers ``[G, T]`` in 32 bits, NaN where one is missing.

    Raises:
        ValueError: They lie so close together that 32 bits do not tell them apart.

    Example:
        >>> narrowed(np.array([[1.5], [float("nan")]]))
        tensor([[1.5000],
                [   nan]])
    """
    with np.errstate(over="ignore"):  # an infinite one is found, and named, by the GraphSet
        narrow = table.astype(np.float32)
    _check_rounding(table, np.abs(table - narrow))
    return torch.from_numpy(narrow)


def _check_rounding(table: NDArray[Any], rounding: NDArray[Any]) -> None:
    """Refuse numbers ``[G, T]`` if what 32 bits take from them counts beside how they differ."""
    for column, (values, taken) in enumerate(zip(table.T, rounding.T, strict=True)):
        there = np.isfinite(values) & np.isfinite(taken)
        if not there.any():
            continue
        most, spread = taken[there].max(), values[there].std()
        if most > _COARSE * spread > 0:
            raise ValueError(
                f"numbers around {values[there].mean():.6g} with a standard deviation of "
                f"{spread:.3g} (column {column}, counted from 0) are rounded by {most:.2g} in 32 "
                "bits: subtract a constant near their mean from all, and add it to predictions"
            )


_TABLES = {"classes": _classes, "labels": _labels, "regression": _numbers}
