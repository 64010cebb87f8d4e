"""Some graphs of a data set as PyG has them side by side: what a user's model is called with."""

from typing import NamedTuple

import torch
from torch import Tensor

from ...graphs import FeatureKind, GraphSet, features
from ..plain_batch import expanded

WRITTEN_OUT = 1 << 28  # bytes of features that are written out once, and not for each batch


class Inputs(NamedTuple):
    """What a model is called with, for B graphs of N nodes and E edges in all."""

    x: Tensor  # [N, in]
    edge_index: Tensor  # [2, E], sources and targets
    batch: Tensor  # [N], the graph of each node
    ptr: Tensor  # [B + 1], where each graph's nodes begin
    edge_attr: Tensor | None = None  # [E, D]
    edge_weight: Tensor | None = None  # [E]
    pos: Tensor | None = None  # [N, P]

    def to(self, device: torch.device, dtype: torch.dtype) -> "Inputs":
        """Return the same on a device, numbers of this type."""
        return Inputs(
            *(  # type: ignore[arg-type]
                None if t is None else t.to(device, dtype if t.is_floating_point() else None)
                for t in self
            )
        )


class Source:
    """A data set on a device, from which batches are cut."""

    def __init__(
        self,
        graphs: GraphSet,
        kind: FeatureKind,
        device: torch.device,
        dtype: torch.dtype,
        max_bytes: int = WRITTEN_OUT,
    ) -> None:
        self.device, self.dtype = device, dtype
        self.node_ptr = graphs.node_ptr.to(device)
        self.edge_ptr = graphs.rowptr.long()[graphs.node_ptr].to(device)
        target = torch.repeat_interleave(torch.arange(graphs.num_nodes), graphs.degree())
        self.ends = torch.stack([graphs.col.long(), target]).to(device)  # [2, edges]
        found = features(graphs, kind)
        self.width = found.width
        dense = found.width * graphs.num_nodes * dtype.itemsize <= max_bytes
        self._x = found.matrix().to(device, dtype) if dense else None
        self._codes = None if found.codes is None else found.codes.to(device)
        self._dense = _moved(found.dense, device, dtype)
        self._num_codes = found.num_codes
        self.edge_attr = _moved(graphs.edge_attributes, device, dtype)
        weights = graphs.edge_weights
        if weights is None and self.edge_attr is not None and self.edge_attr.shape[1] == 1:
            weights = self.edge_attr
        self.edge_weight = None if weights is None else weights[:, 0].to(device, dtype)
        self.pos = _moved(graphs.positions, device, dtype)

    def x(self, nodes: Tensor) -> Tensor:
        """Return the features of some nodes."""
        if self._x is not None:
            return self._x.index_select(0, nodes)
        columns = [] if self._dense is None else [self._dense[nodes]]
        if self._codes is not None:
            code = torch.arange(self._num_codes, device=self.device)
            columns.append((self._codes[nodes].unsqueeze(1) == code).to(self.dtype))
        return torch.cat(columns, 1)

    def cut(self, ids: Tensor) -> Inputs:
        """Put graphs side by side, in this order."""
        node, owner, _ = expanded(self.node_ptr, ids)
        edge, edge_owner, _ = expanded(self.edge_ptr, ids)
        length = self.node_ptr[ids + 1] - self.node_ptr[ids]
        ptr = torch.cat([length.new_zeros(1), length.cumsum(0)])
        shift = ptr[:-1] - self.node_ptr[ids]  # from numbers in the data set to those in the batch
        ends = torch.stack([end.index_select(0, edge) for end in self.ends])
        return Inputs(
            self.x(node),
            ends.add_(shift.index_select(0, edge_owner)),
            owner,
            ptr,
            _rows(self.edge_attr, edge),
            _rows(self.edge_weight, edge),
            _rows(self.pos, node),
        )


def _rows(table: Tensor | None, rows: Tensor) -> Tensor | None:
    return None if table is None else table[rows]


def _moved(table: Tensor | None, device: torch.device, dtype: torch.dtype) -> Tensor | None:
    return None if table is None else table.to(device, dtype)
