"""Who sends to whom: a graph, grouped once, used by every layer and in both directions."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeGuard

import numpy as np
import torch
from torch import Tensor

from ..errors import UsageError
from ._counting import Ints, is_ascending
from ._csr import (
    CSR,
    by_single,
    compressed,
    counted_ends,
    ends_of,
    grouped,
    is_on_host,
    is_plain_list,
    is_readable,
    looped,
    looped_rows,
    measured,
    moved,
    rows,
    rows_of,
    transpose,
)
from ._edge_index import grouped_both, is_edge_index
from ._formats import Sizes, checked_multiplicity, endpoints
from ._operators import spmm
from ._power import power, power_of_lengths
from ._script import refuse_script

_HOST = torch.device("cpu")


def trainable() -> AbstractContextManager[None]:
    """Leave inference mode: tensors made in it could not take part in a later training step."""
    if torch.compiler.is_compiling() or not torch.is_inference_mode_enabled():
        return nullcontext()
    return torch.inference_mode(False)


def _is_transformed() -> bool:
    """Say whether a transform of ``torch.func`` is under way: what is made in it ends with it."""
    return bool(torch._C._are_functorch_transforms_active())


def _are_sizes(num_nodes: Sizes | None) -> TypeGuard[tuple[int, int]]:
    return isinstance(num_nodes, tuple) and len(num_nodes) == 2 and min(num_nodes) >= 0


class Graph:
    """Edges from sources to targets, grouped by target and, on first need, by source.

    Parallel edges and self-loops are kept, and each counts as a neighbour.

    Args:
        edge_index: ``[2, num_edges]``, sources above targets: a tensor, PyG's ``EdgeIndex``, or a
            torch sparse CSR, COO or CSC tensor. A sparse tensor is read as PyG's layers read
            ``adj_t``: row ``i`` holds the sources of target ``i``, and its values are weights.
        num_nodes: Number of nodes, or ``(num_sources, num_targets)`` of a bipartite graph. By
            default the largest index plus one, or what a sparse tensor or ``EdgeIndex`` says.
        multiplicity: ``[num_edges]``, how many neighbours each edge stands for; by default 1.

    Example:
        >>> graph = Graph(torch.tensor([[0, 1, 2, 2], [1, 0, 0, 0]]), num_nodes=3)
        >>> graph
        Graph(num_sources=3, num_targets=3, num_edges=4)
        >>> graph.degree
        tensor([3, 1, 0], dtype=torch.int32)
    """

    num_sources: int
    num_targets: int
    _by_target: CSR | None
    _by_source: CSR | None
    _ends: tuple[Ints, Ints] | None  # on the CPU: who sends to whom, in the order that was given
    weight: Tensor | None  # [num_edges]: the values of a sparse tensor
    _is_whole: bool | None
    is_readout: bool  # on the CPU: whether each node in its order is the source of one edge
    multiplicity: Tensor | None  # [num_edges], float32: it counts, and takes no gradient

    def __init__(
        self,
        edge_index: Tensor,
        num_nodes: Sizes | None = None,
        multiplicity: Tensor | None = None,
    ) -> None:
        refuse_script()
        self._start()
        self.multiplicity = None
        if multiplicity is None and _are_sizes(num_nodes) and is_plain_list(edge_index):
            self._take_list(edge_index, num_nodes)
            self._group()
            return
        source, target, sizes, self.weight = endpoints(edge_index, num_nodes)
        self.num_sources, self.num_targets = sizes
        with trainable():
            if is_edge_index(edge_index) and edge_index.is_sorted and is_readable(source):
                both = grouped_both(edge_index, (source, target), sizes)
                self._by_target, self._by_source = both
            else:
                self._by_target, self._by_source = grouped(target, source, *sizes[::-1]), None
        if multiplicity is not None:
            counts = checked_multiplicity(multiplicity, self.num_edges, self.device)
            with trainable():
                self.multiplicity = counts.clone()  # scales are remembered: it must not change

    def _take_list(self, edge_index: Tensor, sizes: tuple[int, int]) -> None:
        self.num_sources, self.num_targets = sizes
        self._ends = ends_of(edge_index, *sizes)
        self._by_target, self._by_source, self.weight = None, None, None
        self._is_whole = len(self._ends[1]) > 0

    @classmethod
    def loose(cls, edge_index: Tensor, num_nodes: Sizes | None) -> Graph:
        """Make a graph that may be grouped on first need, for whoever sums along it plainly.

        As the layers of a loop over small batches have it: some sums need no grouping.
        """
        if not _are_sizes(num_nodes) or not is_plain_list(edge_index):
            return cls(edge_index, num_nodes)
        refuse_script()
        return cls.of_list(edge_index, num_nodes)

    @classmethod
    def of_list(cls, edge_index: Tensor, sizes: tuple[int, int]) -> Graph:
        """Make such a graph of a plain list of edges, for sizes that are some."""
        graph = object.__new__(cls)
        graph._start()
        graph.multiplicity = None
        graph._take_list(edge_index, sizes)
        return graph

    @classmethod
    def of_rows(cls, matrix: Tensor) -> Graph:
        """Make the graph of a CSR matrix on the CPU, which is grouped; its values do not matter."""
        num_targets, num_sources = matrix.shape
        with trainable():
            by_target = rows_of(matrix)
        graph = cls.from_csr(by_target, None, (num_sources, num_targets))
        graph._is_whole = len(by_target.col) > 0
        return graph

    @classmethod
    def from_csr(
        cls,
        by_target: CSR | None,
        by_source: CSR | None,
        sizes: tuple[int, int],
        weight: Tensor | None = None,
        multiplicity: Tensor | None = None,
    ) -> Graph:
        """Put a graph together from parts that fit: nothing is checked, sorted or copied."""
        graph = object.__new__(cls)
        graph.num_sources, graph.num_targets = sizes
        graph._by_target, graph._by_source = by_target, by_source
        graph.weight, graph.multiplicity = weight, multiplicity
        graph._start()
        return graph

    def _start(self) -> None:
        """Nothing has been made of the graph yet."""
        self._scales: dict[tuple[float, torch.dtype], Tensor] = {}
        self._edge_targets: Tensor | None = None
        self._ends = None
        self._is_whole = None
        self.is_readout = False
        self.ways: dict[Hashable, Any] = {}  # of sums over the graph, as ``_short`` remembers them

    @classmethod
    def readout(
        cls, batch: Tensor, num_graphs: int | None = None, multiplicity: Tensor | None = None
    ) -> Graph:
        """Make the graph of a readout: nodes are sources, the graphs they belong to are targets.

        Args:
            batch: ``[num_nodes]``, the graph of each node, as PyG's loaders give it.
            num_graphs: Number of graphs; by default the largest entry plus one.
            multiplicity: ``[num_nodes]``, how many nodes each of them stands for; by default 1.

        Example:
            >>> Graph.readout(torch.tensor([0, 0, 1]), num_graphs=2)
            Graph(num_sources=3, num_targets=2, num_edges=3)
        """
        graph = cls.loose_readout(batch, num_graphs, multiplicity)
        graph._group()
        return graph

    @classmethod
    def loose_readout(
        cls, batch: Tensor, num_graphs: int | None = None, multiplicity: Tensor | None = None
    ) -> Graph:
        """Make a readout that may be grouped on first need, see `loose`."""
        refuse_script()
        if batch.dim() != 1:
            raise UsageError(f"batch: expected shape [num_nodes], got {list(batch.shape)}.")
        num_nodes = batch.shape[0]
        if num_graphs is None:
            num_graphs = int(batch.max()) + 1 if num_nodes > 0 else 0
        if batch.is_floating_point() or multiplicity is not None:
            nodes = torch.arange(num_nodes, dtype=batch.dtype, device=batch.device)
            return cls(torch.stack([nodes, batch]), (num_nodes, num_graphs), multiplicity)
        with trainable():
            if is_on_host(batch):
                return cls._readout_on_host(batch, num_graphs)
            nodes = torch.arange(num_nodes, dtype=batch.dtype, device=batch.device)
            by_target = grouped(batch, nodes, num_graphs, num_nodes)
            # Grouped by source a readout is what was given: an edge for each node.
            by_source = by_single(batch, num_graphs)
        return cls.from_csr(by_target, by_source, (num_nodes, num_graphs))

    @classmethod
    def _readout_on_host(cls, batch: Tensor, num_graphs: int) -> Graph:
        """Make the graph of a readout on the CPU, of which nothing but its ends is needed yet."""
        source, target = ends_of(batch, len(batch), num_graphs)
        graph = cls.from_csr(None, None, (len(source), num_graphs))
        graph._ends = source, target
        graph._is_whole, graph.is_readout = len(source) > 0, True
        return graph

    @property
    def num_edges(self) -> int:
        """Number of edges, parallel ones and self-loops counted."""
        return self.by_target.col.shape[0] if self._ends is None else len(self._ends[1])

    @property
    def device(self) -> torch.device:
        """Where the graph lives."""
        return _HOST if self._by_target is None else self._by_target.col.device

    @property
    def by_target(self) -> CSR:
        """The edges grouped by target."""
        return self._by_target or self._group()

    def _group(self) -> CSR:
        if self._by_target is None:
            assert self._ends is not None
            source, target = self._ends
            # What is remembered is of no transform, even if one is the first to need it.
            with trainable(), torch._C._DisableFuncTorch():
                self._by_target = counted_ends(target, source, self.num_targets)
        return self._by_target

    @property
    def ends(self) -> tuple[Ints, Ints]:
        """Source and target of each edge on the CPU, as the edges were given."""
        if self._ends is None:
            csr = self.by_target
            source, lengths = csr.col.numpy(), np.diff(csr.rowptr.numpy())
            target = np.arange(len(lengths), dtype=source.dtype).repeat(lengths)
            if csr.edge is not None:
                order = csr.edge.numpy().argsort()
                source, target = source.take(order), target.take(order)
            self._ends = source, target
        return self._ends

    @property
    def with_loops(self) -> Graph:
        """A self-loop of each node, and the edges that are none."""
        known: Graph | None = self.ways.get("with loops")
        if known is None and self.device != _HOST:
            edges = looped_rows(self.by_target)
            known = self.ways["with loops"] = Graph(edges, (self.num_sources, self.num_targets))
        if known is None:
            source, target = self.ends
            is_loop = source == target
            if is_loop.any():
                source, target = source[~is_loop], target[~is_loop]
            known = Graph.from_csr(None, None, (self.num_sources, self.num_targets))
            known._ends = looped(source, target, min(self.num_sources, self.num_targets))
            known._is_whole = len(known._ends[0]) > 0
            self.ways["with loops"] = known
        return known

    @property
    def degree(self) -> Tensor:
        """Number of in-neighbours of each target, ``[num_targets]``."""
        return self.by_target.rowptr.diff()

    @property
    def by_source(self) -> CSR:
        """The edges grouped by source; made on first need."""
        if self._by_source is not None:
            return self._by_source
        with trainable():
            by_source = self._as_given() or transpose(self.by_target, self.num_sources)
            if not is_on_host(by_source.col):  # there it is measured already
                by_source = measured(by_source)
        if not _is_transformed():
            self._by_source = by_source
        return by_source

    def _as_given(self) -> CSR | None:
        """Return the edges by source where they were given so, as most are; a readout's always."""
        if self._ends is None or torch.compiler.is_compiling():
            return None
        source, target = self._ends
        if self.is_readout:  # an edge for each node
            return compressed(np.arange(len(source) + 1, dtype=source.dtype), target, None, 1)
        return counted_ends(source, target, self.num_sources) if is_ascending(source) else None

    @property
    def is_grouped(self) -> bool:
        """Whether the edges have been grouped by target."""
        return self._by_target is not None

    @property
    def is_turned(self) -> bool:
        """Whether the edges have been grouped by source."""
        return self._by_source is not None

    @property
    def is_whole(self) -> bool:
        """Whether there are edges, and each has a target and a source that count."""
        if self._is_whole is None:
            known = [csr for csr in (self._by_target, self._by_source) if csr is not None]
            whole = all(int(csr.rowptr[-1]) == self.num_edges for csr in known)
            self._is_whole = self.num_edges > 0 and whole
        return self._is_whole

    @property
    def edge_targets(self) -> Tensor:
        """Target of each edge, ``[num_edges]``, as the edges were given; made on first need."""
        if self._edge_targets is not None:
            return self._edge_targets
        with trainable():
            target, edge = rows(self.by_target.rowptr, self.num_edges), self.by_target.edge
            if edge is not None:
                target = target.scatter(0, edge.long(), target)
        if not _is_transformed():
            self._edge_targets = target
        return target

    def as_operands(self, with_transpose: bool) -> tuple[Any, ...]:
        """Return the graph as the operators take it, if asked grouped by source as well."""
        known = with_transpose or self._by_source is not None
        return (*self.by_target, *(self.by_source if known else (None, None, None, 0)))

    def scale(self, exponent: float, dtype: torch.dtype) -> Tensor:
        """Return ``N^(-p)`` for each target, ``[num_targets, 1]``, for an exponent ``p``.

        ``N`` counts neighbours with their multiplicity; where it is 0, so is the scale.
        """
        if (exponent, dtype) in self._scales:
            return self._scales[exponent, dtype]
        with trainable():
            if self.multiplicity is None and is_on_host(self.by_target.rowptr):
                rowptr, longest = self.by_target.rowptr.numpy(), self.by_target.longest
                scales = power_of_lengths(np.diff(rowptr), longest, exponent, np.float64)
                scale = torch.from_numpy(scales).to(dtype).unsqueeze(1)
            else:
                scale = power(self.count.to(dtype).unsqueeze(1), exponent)
        if not _is_transformed():
            self._scales[exponent, dtype] = scale
        return scale

    @property
    def count(self) -> Tensor:
        """Number of neighbours of each target, multiplicities counted, ``[num_targets]``."""
        if self.multiplicity is None:
            return self.degree
        rowptr, col, edge, longest = self.by_target
        numbers = torch.arange(len(col), dtype=col.dtype, device=col.device)
        edges = (rowptr, numbers if edge is None else edge, None, longest)
        counts = self.multiplicity.view(-1, 1, 1)
        return spmm(counts, None, None, None, *edges, None, None, None, 0).flatten()

    def to(self, device: torch.device | str) -> Graph:
        """Return the graph on another device (itself, if it is there already).

        Example:
            >>> Graph(torch.tensor([[0], [1]]), num_nodes=2).to("cpu").device
            device(type='cpu')
        """
        if torch.empty(0, device=device).device == self.device:
            return self
        return Graph.from_csr(
            moved(self.by_target, device),
            None if self._by_source is None else moved(self._by_source, device),
            (self.num_sources, self.num_targets),
            None if self.weight is None else self.weight.to(device),
            None if self.multiplicity is None else self.multiplicity.to(device),
        )

    def __repr__(self) -> str:
        return (
            f"Graph(num_sources={self.num_sources}, num_targets={self.num_targets}, "
            f"num_edges={self.num_edges})"
        )
