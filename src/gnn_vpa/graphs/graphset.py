"""One data set: all of its graphs in one compact structure."""

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from ..errors import GnnVpaError, UsageError
from ..paper import Statistics, archive_with
from .features import Features, label_features
from .numbering import Numbering
from .targets import TargetKind, check_targets, kind_of, known, num_outputs

if TYPE_CHECKING:
    from torch_geometric.data import Data

_COUNTED = {"classes": "classes", "labels": "labels", "regression": "targets"}


@dataclass(frozen=True, eq=False, repr=False)
class GraphSet:
    """G graphs with N nodes and E directed edges in all, as one CSR by target.

    Nodes are numbered through the whole data set. Graph g has the nodes `node_ptr[g]` to
    `node_ptr[g + 1]`; the sources of the edges into node i are `col[rowptr[i] : rowptr[i + 1]]`.

    Attributes:
        name: What the data set is called.
        node_ptr: [G + 1], int64.
        rowptr: [N + 1], int64.
        col: [E], int32.
        y: What is learned: classes counted from 0, [G] int64; or labels, [G, T] int8; or numbers,
            [G, T] float32. `targets.py` says what stands where one is missing.
        node_labels: Labels counted from 0: [N, columns], int64 (most sets have one column).
        node_attributes: [N, A], float32.
        edge_attributes: Attributes, then one-hot labels, in the order of `col`: [E, B], float32.
        graph_attributes: Numbers that may be learned instead of `y`, see `with_target`: [G, C],
            float32, NaN where one is missing.
        class_names: What the classes are called, where they are text.
        edge_weights: One for each edge, in the order of `col`: [E, 1], float32.
        positions: Coordinates of the nodes: [N, P], float32.
        columns: What else each graph has, by name: groups that stay together, masks. No network
            sees it, and it is no part of the content.
        numbering: What classes and labels were called, where they were numbers.
        weights: How much each graph counts in the loss, [G, 1] float32; None: all the same.
        seed_name: What stands for the data in the seeds of trainings; empty: the content does.

    Raises:
        GnnVpaError: The parts do not fit together, or a number is not finite.

    Example:
        >>> GraphSet(
        ...     name="path and point",
        ...     node_ptr=torch.tensor([0, 2, 3]),
        ...     rowptr=torch.tensor([0, 1, 2, 2]),
        ...     col=torch.tensor([1, 0], dtype=torch.int32),
        ...     y=torch.tensor([0, 1]),
        ... )
        GraphSet('path and point', graphs=2, classes=2, nodes=3, edges=2)
    """

    name: str
    node_ptr: Tensor
    rowptr: Tensor
    col: Tensor
    y: Tensor
    node_labels: Tensor | None = None
    node_attributes: Tensor | None = None
    edge_attributes: Tensor | None = None
    graph_attributes: Tensor | None = None
    class_names: tuple[str, ...] | None = None
    edge_weights: Tensor | None = None
    positions: Tensor | None = None
    columns: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)
    numbering: Numbering = dataclasses.field(default_factory=Numbering)
    weights: Tensor | None = None
    seed_name: str = ""

    def __post_init__(self) -> None:
        self._check_pointers("node_ptr", self.node_ptr, self.num_graphs, self.num_nodes)
        self._check_pointers("rowptr", self.rowptr, self.num_nodes, self.num_edges)
        self._check_columns()
        self._check_targets()
        if (labels := self.node_labels) is not None:
            if labels.dtype != torch.int64:
                raise GnnVpaError(f"{self.name}: node_labels must be int64, but is {labels.dtype}")
            if bool((labels < 0).any()):
                raise GnnVpaError(
                    f"{self.name}: node_labels must count from 0, but has {labels.min()}"
                )
        for field, rows in (
            ("node_labels", self.num_nodes),
            ("node_attributes", self.num_nodes),
            ("edge_attributes", self.num_edges),
            ("graph_attributes", self.num_graphs),
            ("edge_weights", self.num_edges),
            ("positions", self.num_nodes),
            ("weights", self.num_graphs),
        ):
            tensor = getattr(self, field)
            if tensor is not None and (tensor.dim() != 2 or len(tensor) != rows):
                raise GnnVpaError(f"{self.name}: {field} must have {rows} rows, and columns")
        self._check_finite()

    def __repr__(self) -> str:
        return (
            f"GraphSet({self.name!r}, graphs={self.num_graphs}, {_COUNTED[self.kind]}="
            f"{self.num_outputs}, nodes={self.num_nodes}, edges={self.num_edges})"
        )

    @property
    def kind(self) -> TargetKind:
        """What is learned: ``"classes"``, ``"labels"`` or ``"regression"``."""
        return kind_of(self.y)

    @property
    def num_graphs(self) -> int:
        """Number of graphs, G."""
        return len(self.y)

    @property
    def num_nodes(self) -> int:
        """Number of nodes of all graphs, N."""
        return len(self.rowptr) - 1

    @property
    def num_edges(self) -> int:
        """Number of directed edges of all graphs, E."""
        return len(self.col)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(tensor.nbytes for tensor in self.tensors().values())

    @cached_property
    def num_outputs(self) -> int:
        """Number of outputs of a network: one for each class, label or target."""
        return num_outputs(self.y)

    @property
    def num_classes(self) -> int:
        """Number of classes; 0 where something else is learned."""
        return self.num_outputs if self.kind == "classes" else 0

    @property
    def classes(self) -> tuple[str, ...] | tuple[int, ...]:
        """What the data call each class: text or numbers; empty where there are none."""
        count = self.num_classes
        return (self.class_names or self.numbering.classes or tuple(range(count)))[:count]

    @cached_property
    def own_features(self) -> Features | None:
        """Node attributes, then one-hot node labels; None where the data set has neither."""
        return label_features(self.node_labels, self.node_attributes)

    def degree(self) -> Tensor:
        """Return the in-degree of each node: [N], int64.

        Example:
            >>> from torch_geometric.data import Data
            >>> edges = torch.tensor([[0, 2], [1, 1]])
            >>> GraphSet.from_pyg([Data(edge_index=edges, num_nodes=3, y=0)]).degree()
            tensor([0, 2, 0])
        """
        return self.rowptr.diff()

    def graph(self, index: int) -> "Data":
        """Return one graph as PyG has it, edges sorted by source and then target.

        Example:
            >>> from torch_geometric.data import Data
            >>> edges = torch.tensor([[1, 0], [0, 1]])
            >>> GraphSet.from_pyg([Data(edge_index=edges, num_nodes=2, y=0)]).graph(0)
            Data(edge_index=[2, 2], y=[1], num_nodes=2)
        """
        from torch_geometric.data import Data  # it loads slowly, and few need graphs one by one

        if not 0 <= index < self.num_graphs:
            raise UsageError(f"{self.name} has no graph {index}: it has {self.num_graphs}, from 0")
        first, last = self.node_ptr[index : index + 2].tolist()
        rows = self.rowptr[first : last + 1]
        edges = slice(int(rows[0]), int(rows[-1]))
        target = torch.repeat_interleave(torch.arange(last - first), rows.diff())
        source, order = (self.col[edges].long() - first).sort(stable=True)
        own = self.own_features
        data = Data(edge_index=torch.stack([source, target[order]]), y=self._target(index))
        if own is None:
            data.num_nodes = last - first
        else:
            data.x = own.matrix(slice(first, last))
        if self.edge_attributes is not None:
            data.edge_attr = self.edge_attributes[edges][order]
        if self.edge_weights is not None:
            data.edge_weight = self.edge_weights[edges, 0][order]
        if self.positions is not None:
            data.pos = self.positions[first:last]
        return data

    def to_pyg(self) -> "list[Data]":
        """Return every graph as PyG has it, see `graph`.

        Example:
            >>> from torch_geometric.data import Data
            >>> single = Data(edge_index=torch.empty(2, 0, dtype=torch.long), num_nodes=1, y=0)
            >>> len(GraphSet.from_pyg([single, single]).to_pyg())
            2
        """
        return [self.graph(index) for index in range(self.num_graphs)]

    @staticmethod
    def from_pyg(
        graphs: "Iterable[Data]",
        name: str = "custom",
        target: str = "y",
        kind: TargetKind | Literal["auto"] = "auto",
    ) -> "GraphSet":
        """Make a data set of one's own graphs.

        Edges are kept as they are, parallel ones and self-loops too. Classes are numbered in
        sorted order; `x` becomes the node attributes and `edge_attr` the edge attributes;
        `edge_weight` and `pos` are kept for models of one's own.

        Args:
            graphs: The graphs.
            name: What the data set is called; another target than `y` is added to it.
            target: The attribute of each graph that is learned: a whole number or text (its class),
                or numbers [1, T]; NaN where it is missing. With "" all are missing.
            kind: What it is, see `with_target`.

        Raises:
            UsageError: A graph cannot be used; the message says which and why.

        Example:
            >>> from torch_geometric.data import Data
            >>> edges = torch.tensor([[0, 1], [1, 0]])
            >>> GraphSet.from_pyg([Data(x=torch.ones(2, 3), edge_index=edges, y=5)], name="mine")
            GraphSet('mine', graphs=1, classes=1, nodes=2, edges=2)
        """
        from ._from_pyg import from_pyg

        return from_pyg(graphs, name, target, kind)

    def statistics(self) -> Statistics:
        """Return the numbers that data sets are described by.

        Example:
            >>> from torch_geometric.data import Data
            >>> edges = torch.tensor([[0, 1], [1, 0]])
            >>> GraphSet.from_pyg([Data(edge_index=edges, num_nodes=2, y=0)]).statistics().edges
            1.0
        """
        own, attributes = self.own_features, self.node_attributes
        num_attributes = 0 if attributes is None else attributes.size(1)
        graphs = max(self.num_graphs, 1)
        return Statistics(
            graphs=self.num_graphs,
            classes=self.num_classes,
            nodes=self.num_nodes / graphs,
            edges=self.num_edges / 2 / graphs,
            node_labels=0 if own is None else own.width - num_attributes,
            node_attributes=num_attributes,
        )

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors that are there, by attribute.

        Example:
            >>> from torch_geometric.data import Data
            >>> single = Data(edge_index=torch.empty(2, 0, dtype=torch.long), num_nodes=1, y=0)
            >>> list(GraphSet.from_pyg([single]).tensors())
            ['node_ptr', 'rowptr', 'col', 'y']
        """
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, Tensor)}

    def checksum(self) -> str:
        """Return a SHA-256 of the content: the same for the same data from any source.

        Example:
            >>> from torch_geometric.data import Data
            >>> single = Data(edge_index=torch.empty(2, 0, dtype=torch.long), num_nodes=1, y=0)
            >>> one, two = GraphSet.from_pyg([single], "a"), GraphSet.from_pyg([single], "b")
            >>> one.checksum() == two.checksum()
            True
        """
        digest = hashlib.sha256()
        for name, tensor in self.tensors().items():
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
            digest.update(tensor.contiguous().numpy().data)
        if self.class_names is not None:
            digest.update(f"class_names {self.class_names}\n".encode())
        return digest.hexdigest()

    @cached_property
    def seed_source(self) -> str:
        """What seeds of trainings are made of: the content, a benchmark's by the archive's name."""
        content = self.seed_name or self.checksum()
        return archive_with(content) or content

    def _target(self, index: int) -> Tensor | str:
        """Return what is learned of a graph in a form that `from_pyg` takes."""
        own = self.y[index : index + 1]
        if self.kind == "labels":
            return torch.where(known(own), own.float(), torch.nan)
        if self.kind == "classes" and not bool(known(own)):
            return torch.tensor([torch.nan])
        return own if self.class_names is None else self.class_names[int(own)]

    def _check_targets(self) -> None:
        try:
            check_targets(self.y)
        except GnnVpaError as error:
            raise GnnVpaError(f"{self.name}: {error}") from None
        if self.class_names is not None and len(self.class_names) < self.num_classes:
            raise GnnVpaError(
                f"{self.name}: {len(self.class_names)} class_names for {self.num_classes} classes"
            )

    def _check_pointers(self, field: str, pointers: Tensor, count: int, total: int) -> None:
        fits = len(pointers) == count + 1 and pointers[0] == 0 and pointers[-1] == total
        if not fits or bool((pointers.diff() < 0).any()):
            raise GnnVpaError(
                f"{self.name}: {field} must rise from 0 to {total} in {count + 1} entries"
            )

    def _check_columns(self) -> None:
        """Every edge must stay within its graph."""
        ends = self.rowptr[self.node_ptr]
        filled = ends.diff() > 0
        if not bool(filled.any()):
            return
        starts, col = ends[:-1][filled].numpy(), self.col.numpy()
        low = torch.from_numpy(np.minimum.reduceat(col, starts))
        high = torch.from_numpy(np.maximum.reduceat(col, starts))
        outside = (low < self.node_ptr[:-1][filled]) | (high >= self.node_ptr[1:][filled])
        if bool(outside.any()):
            graph = int(filled.nonzero()[outside][0])
            raise GnnVpaError(f"{self.name}: an edge of graph {graph} leaves the graph")

    def _check_finite(self) -> None:
        """No network learns from a number that is not finite, but one that diverges has a score."""
        for field in ("node_attributes", "edge_attributes", "edge_weights", "positions"):
            tensor = getattr(self, field)
            # A sum is finite only if every number is; it may overflow where each is not.
            if tensor is None or bool(tensor.sum().isfinite()) or bool(tensor.isfinite().all()):
                continue
            row, column = torch.isfinite(tensor).logical_not().nonzero()[0].tolist()
            where = self._edge(row) if field.startswith("edge") else self._node(row)
            raise GnnVpaError(
                f"{self.name}: {field} of {where}, column {column} (counted from 0) is "
                f"{tensor[row, column].item()}: give a finite number of 32 bits, or leave the "
                "graph out"
            )

        attributes = self.graph_attributes
        if attributes is not None and bool(attributes.isinf().any()):
            graph, column = attributes.isinf().nonzero()[0].tolist()
            raise GnnVpaError(
                f"{self.name}: graph_attributes of graph {graph}, column {column} (counted from 0) "
                "is not finite: give a finite number of 32 bits"
            )

    def _node(self, node: int) -> str:
        graph = int(torch.searchsorted(self.node_ptr, node, right=True)) - 1
        return f"graph {graph}, node {node - int(self.node_ptr[graph])}"

    def _edge(self, edge: int) -> str:
        target = int(torch.searchsorted(self.rowptr, edge, right=True)) - 1
        graph = int(torch.searchsorted(self.node_ptr, target, right=True)) - 1
        source = int(self.col[edge]) - int(self.node_ptr[graph])
        return f"{self._node(target)}, its edge from node {source}"
