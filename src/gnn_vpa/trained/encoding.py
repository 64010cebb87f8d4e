"""How graphs become what a trained model takes in, and what it refuses."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from ..errors import UsageError
from ..graphs import FeatureKind, Features, GraphSet, features
from .batch import Part

_SHOWN = 12  # known labels that a message lists
_MOST_COLUMNS = 1 << 16  # of edges and coordinates, in files: networks are tried on so many


class EdgeFeatures(NamedTuple):
    """What a model is given of E edges."""

    attributes: Tensor | None  # [E, D]
    weights: Tensor | None  # [E]


@dataclass(frozen=True)
class Encoding:
    """The node features of a model: their kind, and all that it knows of each.

    A model of ones or degrees looks at edges alone, whatever else graphs have. One of labels takes
    node labels as an archive has them, or as PyG's data sets do: one-hot, behind the attributes.

    Attributes:
        kind: ``"ones"``, ``"degree"``, or ``"labels"``: attributes, then one-hot node labels.
        degrees: The in-degrees that are known, in ascending order.
        attributes: Number of node attributes.
        first_labels: The label of the first one-hot column, for each column of node labels.
        labels: The node labels that are known, for each column of them, in ascending order.
        edge_attributes: Number of edge attributes, for a model that sees edge features.
        edge_labels: What its one-hot columns behind them stand for, as `Numbering` has it.
        edge_weights: Whether the model sees edge weights that are no attributes.
        positions: Number of coordinates of a node, for a model that sees them.

    Example:
        >>> Encoding("labels", attributes=2, first_labels=(3,), labels=((3, 4, 7),)).width
        7
    """

    kind: Literal["ones", "degree", "labels"]
    degrees: tuple[int, ...] = ()
    attributes: int = 0
    first_labels: tuple[int, ...] = ()
    labels: tuple[tuple[int, ...], ...] = ()
    edge_attributes: int | None = None
    edge_labels: tuple[tuple[int, int], ...] = ()
    edge_weights: bool = False
    positions: int | None = None

    @property
    def width(self) -> int:
        """Number of node features."""
        if self.kind == "labels":
            return self.attributes + sum(self._widths)
        return 1 if self.kind == "ones" else len(self.degrees)

    @property
    def _widths(self) -> list[int]:
        """Number of one-hot columns of each column of node labels."""
        return [known[-1] - first + 1 for first, known in self._pairs]

    @property
    def _pairs(self) -> list[tuple[int, tuple[int, ...]]]:
        return list(zip(self.first_labels, self.labels, strict=True))

    def check(self) -> None:
        """Refuse what no data set has.

        Raises:
            ValueError: Numbers are negative, not in order, or too many.
        """
        ordered = [self.degrees, *self.labels]
        columns = (self.edge_attributes or 0) + sum(width for _, width in self.edge_labels)
        counts = [self.attributes, self.positions or 0, self.edge_attributes or 0, columns]
        if (
            any(list(known) != sorted({*known}) for known in ordered)
            or any(not known or known[0] < first for first, known in self._pairs)
            or (self.kind == "degree") != bool(self.degrees)
            or min(*counts, *(width for _, width in self.edge_labels)) < 0
            or max(counts[1:]) > _MOST_COLUMNS
        ):
            raise ValueError("the encoding is of features that no graphs have")

    def apply(self, part: Part) -> Features:
        """Return the node features of new graphs.

        Raises:
            UsageError: Something is not as the model knows it; the message names graph and node.

        Example:
            >>> from torch_geometric.data import Data
            >>> star = Data(edge_index=torch.tensor([[1, 2, 3], [0, 0, 0]]), num_nodes=4)
            >>> new = Part(GraphSet.from_pyg([star], target=""), 0, 1)
            >>> Encoding("degree", degrees=(0, 1)).apply(new)
            Traceback (most recent call last):
                ...
            gnn_vpa.errors.UsageError: graph 0, node 0: its degree 3 is not known to the model, ...
        """
        if self.kind == "ones":
            return Features(num_codes=1, codes=torch.zeros(part.num_nodes, dtype=torch.int64))
        if self.kind == "degree":
            codes = _codes(part.rowptr.diff(), self.degrees, part, "its degree")
            return Features(num_codes=len(self.degrees), codes=codes)
        labels, attributes = self._columns(part)
        codes_of = []
        for column, first, known in zip(labels, self.first_labels, self.labels, strict=True):
            _codes(column, known, part, "its label")
            codes_of.append(column - first)
        if len(codes_of) == 1:
            return Features(self.width - self.attributes, codes_of[0], attributes)
        written = [one_hot(c, w).float() for c, w in zip(codes_of, self._widths, strict=True)]
        dense = [*([] if attributes is None else [attributes]), *written]
        return Features(dense=torch.cat(dense, dim=1))

    def edges(self, part: Part) -> EdgeFeatures:
        """Return the edge features of new graphs, for a model that sees some.

        Raises:
            UsageError: They are not as the model knows them.

        Example:
            >>> from torch_geometric.data import Data
            >>> pair = torch.tensor([[0, 1], [1, 0]])
            >>> bond = Data(edge_index=pair, edge_attr=torch.ones(2, 3), num_nodes=2)
            >>> new = Part(GraphSet.from_pyg([bond], target=""), 0, 1)
            >>> Encoding("ones", edge_attributes=3).edges(new).attributes
            tensor([[1., 1., 1.],
                    [1., 1., 1.]])
        """
        attributes, weights = self._edge_attributes(part), part.graphs.edge_weights
        if self.edge_weights:
            if weights is None:
                raise UsageError("the graphs have no edge_weight, and the model was trained on it")
            return EdgeFeatures(attributes, weights[part.edges, 0])
        is_weight = attributes is not None and attributes.shape[1] == 1
        return EdgeFeatures(attributes, attributes[:, 0] if is_weight else None)  # type: ignore[index]

    def positions_of(self, part: Part) -> Tensor | None:
        """Return the coordinates of new graphs' nodes, for a model that sees them.

        Raises:
            UsageError: They are not there, or there are more or fewer of them.
        """
        if self.positions is None:
            return None
        given = part.graphs.positions
        columns = 0 if given is None else given.shape[1]
        if given is None or columns != self.positions:
            raise UsageError(
                f"the graphs have {columns} coordinates (pos) of a node, and the model was trained "
                f"on {self.positions}"
            )
        return given[part.nodes]

    def _edge_attributes(self, part: Part) -> Tensor | None:
        if self.edge_attributes is None:
            return None
        given, theirs = part.graphs.edge_attributes, part.graphs.numbering.edge_labels
        wanted = self.edge_attributes + sum(width for _, width in self.edge_labels)
        if given is None:
            raise UsageError(
                f"the graphs have no edge features, and the model was trained on {wanted} "
                "column(s) of them"
            )
        given = given[part.edges]
        if theirs is not None and theirs != self.edge_labels:
            return self._renumbered(given, theirs)
        if given.shape[1] != wanted:
            raise UsageError(
                f"the graphs have {given.shape[1]} column(s) of edge features, and the model was "
                f"trained on {wanted}"
            )
        return given

    def _renumbered(self, given: Tensor, theirs: Sequence[tuple[int, int]]) -> Tensor:
        """Move one-hot columns of edge labels to where the model has them."""
        plain = given.shape[1] - sum(width for _, width in theirs)
        if plain != self.edge_attributes or len(theirs) != len(self.edge_labels):
            raise UsageError(
                f"the graphs have {plain} edge attribute(s) and {len(theirs)} column(s) of edge "
                f"labels, and the model was trained on {self.edge_attributes} and "
                f"{len(self.edge_labels)}"
            )
        parts, begin = [given[:, :plain]], plain
        for (start, count), (first, width) in zip(theirs, self.edge_labels, strict=True):
            own = given[:, begin : begin + count]
            begin += count
            moved = own.new_zeros(len(own), width)
            for number in range(count):
                place = start + number - first
                if 0 <= place < width:
                    moved[:, place] = own[:, number]
                elif bool(own[:, number].any()):
                    raise UsageError(
                        f"an edge has the label {start + number}, and the model knows "
                        f"{first} to {first + width - 1}"
                    )
            parts.append(moved)
        return torch.cat(parts, dim=1)

    def _columns(self, part: Part) -> tuple[list[Tensor], Tensor | None]:
        """Return node labels as the model calls them, a tensor for each column, and attributes."""
        graphs, nodes = part.graphs, part.nodes
        labels, attributes = graphs.node_labels, graphs.node_attributes
        is_one_hot = labels is None and bool(self.labels)
        if is_one_hot and attributes is not None and attributes.shape[1] == self.width:
            return self._written_out(attributes[nodes], part)
        columns = 0 if labels is None else labels.shape[1]
        width = 0 if attributes is None else attributes.shape[1]
        if (columns, width) != (len(self.labels), self.attributes):
            raise UsageError(
                f"the graphs have {_described(columns, width)}, and the model was trained on "
                f"{_described(len(self.labels), self.attributes)}: give it graphs of the same kind"
                + (
                    f", or {self.width} node attributes, the last {sum(self._widths)} of them the "
                    "labels as one-hot columns"
                    if self.labels
                    else ""
                )
            )
        first = graphs.numbering.node_labels or (0,) * columns
        own = [] if labels is None else [c + b for c, b in zip(labels[nodes].T, first, strict=True)]
        return own, None if attributes is None else attributes[nodes]

    def _written_out(self, attributes: Tensor, part: Part) -> tuple[list[Tensor], Tensor | None]:
        """Read labels that are one-hot columns behind attributes, as PyG's data sets have them."""
        dense, labels = attributes[:, : self.attributes], []
        begin = self.attributes
        for first, width in zip(self.first_labels, self._widths, strict=True):
            block = attributes[:, begin : begin + width]
            begin += width
            place = single_ones(block)
            if place is None:
                wrong = ((block != 0) & (block != 1)).any(1) | (block.sum(1) != 1)
                where = part.where(int(wrong.nonzero()[0]))
                raise UsageError(
                    f"{where}: its node attributes {begin - width} to {begin - 1} (counted from 0) "
                    "must be one 1 among zeros, because the model was trained on node labels: "
                    "give the labels so, or as an archive has them"
                )
            labels.append(place + first)
        return labels, dense if self.attributes else None


def single_ones(block: Tensor) -> Tensor | None:
    """Return the place of the only 1 of each row, or None where a row is not one 1 among zeros.

    Example:
        >>> single_ones(torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
        tensor([1, 0])
    """
    numbers = np.ascontiguousarray(block.numpy()).reshape(-1)
    is_there = numbers != 0
    if np.count_nonzero(is_there) != len(block):
        return None
    place = np.flatnonzero(is_there)
    begin = np.arange(len(block)) * block.shape[1]
    if bool((numbers[place] != 1).any()):
        return None
    place -= begin
    if bool((place < 0).any()) or bool((place >= block.shape[1]).any()):
        return None
    return torch.from_numpy(place)


def _codes(values: Tensor, known: Sequence[int], part: Part, what: str) -> Tensor:
    """Return the place of each value among those that are known."""
    table = torch.tensor(known)
    place = torch.searchsorted(table, values.contiguous())
    wrong = table[place.clamp(max=len(table) - 1)] != values
    if bool(wrong.any()):
        node = int(wrong.nonzero()[0])
        shown = ", ".join(map(str, known[:_SHOWN])) + (", …" if len(known) > _SHOWN else "")
        raise UsageError(
            f"{part.where(node)}: {what} {int(values[node])} is not known to the model, which was "
            f"trained on {shown}: leave such graphs out, or train with some of them"
        )
    return place


def _described(columns: int, width: int) -> str:
    labels = f"{columns} column(s) of node labels" if columns else "no node labels"
    return f"{labels} and {width} node attribute(s)" if width else f"{labels} and no attributes"


def encoding_of(
    graphs: GraphSet, kind: FeatureKind = "auto", *, also: Collection[str] = ()
) -> Encoding:
    """Return how a data set's graphs become features: what a model trained on them knows.

    Args:
        graphs: The data set.
        kind: Its node features, see ``gnn_vpa.graphs.features``.
        also: What else the model sees, if it is there: of ``edge_attr``, ``edge_weight``, ``pos``.

    Example:
        >>> from gnn_vpa.graphs import load
        >>> encoding_of(load("MUTAG")).labels
        ((0, 1, 2, 3, 4, 5, 6),)
    """
    features(graphs, kind)  # refuses what is not there
    return replace(_of_nodes(graphs, kind), **_of_edges(graphs, also))  # type: ignore[arg-type]


def _of_nodes(graphs: GraphSet, kind: FeatureKind) -> Encoding:
    labels, attributes = graphs.node_labels, graphs.node_attributes
    if kind == "degree":
        return Encoding("degree", tuple(np.unique(graphs.degree().numpy()).tolist()))
    if kind == "ones" or (labels is None and attributes is None):
        return Encoding("ones")
    width = 0 if attributes is None else attributes.shape[1]
    if labels is None:
        return Encoding("labels", attributes=width)
    first = graphs.numbering.node_labels or (0,) * labels.shape[1]
    pairs = zip(labels.T, first, strict=True)
    known = tuple(tuple((column.unique() + begin).tolist()) for column, begin in pairs)
    return Encoding("labels", attributes=width, first_labels=first, labels=known)


def _of_edges(graphs: GraphSet, also: Collection[str]) -> dict[str, object]:
    found: dict[str, object] = {}
    attributes, weights, positions = graphs.edge_attributes, graphs.edge_weights, graphs.positions
    if "pos" in also and positions is not None:
        found["positions"] = positions.shape[1]
    if "edge_weight" in also and weights is not None:
        found["edge_weights"] = True
    # A single attribute serves as a weight where there is no other.
    as_weight = "edge_weight" in also and weights is None
    if attributes is not None and ("edge_attr" in also or as_weight):
        labels = graphs.numbering.edge_labels or ()
        found["edge_labels"] = labels
        found["edge_attributes"] = attributes.shape[1] - sum(width for _, width in labels)
    return found
