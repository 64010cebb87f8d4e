"""The peer: GIN with vpa trained by careful plain PyG code, one fold after the other.

PyG's layers with its own `VariancePreservingAggregation` and its `DataLoader`; the model, protocol
and validation are ours, and so are the losses (tests/benchmarks/test_peer.py). What helps a plain
loop is done: graphs are made and put where they are collated once, validation and test batches are
collated once, nothing waits for the device within an epoch, sizes are given where PyG would look
for them, and Adam is fused.
"""

from collections.abc import Iterable, Sequence
from copy import copy
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINConv
from torch_geometric.nn.aggr import VariancePreservingAggregation

from gnn_vpa.graphs import GraphSet, Split, features
from gnn_vpa.training import Protocol


class GIN(nn.Module):
    """The released GIN. From the same seed it has the same initial weights as ours."""

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        *,
        width: int = 64,
        depth: int = 4,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        widths = [in_channels] + [width] * depth
        self.convs = nn.ModuleList(
            GINConv(_mlp(wide, width), aggr=VariancePreservingAggregation()) for wide in widths[:-1]
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in range(depth))
        self.lins = nn.ModuleList(nn.Linear(wide, num_classes) for wide in widths)
        self.pool = VariancePreservingAggregation()
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, num_graphs: int) -> Tensor:
        """Return scores ``[graphs, classes]``."""
        levels = [x]
        for conv, norm in zip(self.convs, self.norms, strict=True):
            levels.append(norm(conv(levels[-1], edge_index)).relu())
        pooled = [self.pool(level, batch, dim_size=num_graphs) for level in levels]
        scores = torch.stack([lin(p) for lin, p in zip(self.lins, pooled, strict=True)])
        out: Tensor = self.dropout(scores).sum(0)
        return out


def _mlp(in_channels: int, width: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(in_channels, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, width)
    )


class Manner(NamedTuple):
    """A way to run the loop: the numbers are the same, and the quickest one is the peer."""

    name: str
    resident: bool = False  # graphs lie on the device and are collated there
    workers: int = 0  # processes that collate beside this one
    compiled: bool = False


PLAIN = Manner("plain")
MANNERS = {
    "cpu": [PLAIN],
    "cuda": [
        PLAIN,
        Manner("4 workers", workers=4),
        Manner("collated on the device", resident=True),
        Manner("compiled", compiled=True),
        Manner("compiled with 4 workers", workers=4, compiled=True),
    ],
}
_JUDGED = {"cpu": 128, "cuda": 1024}  # graphs judged at once: a cache's fill, a GPU's


def pyg_graphs(graphs: GraphSet, dtype: torch.dtype = torch.float32) -> list[Data]:
    """Return all graphs with the features that our model sees."""
    x = torch.split(features(graphs).matrix().to(dtype), graphs.node_ptr.diff().tolist())
    return [
        Data(x=own, edge_index=graph.edge_index, y=graph.y)
        for own, graph in zip(x, graphs.to_pyg(), strict=True)
    ]


class Peer:
    """The training of one fold.

    Args:
        data: All graphs of the data set, from `pyg_graphs`.
        split: The fold.
        model: What is trained; it is moved to the device.
        protocol: How.
        device: Where.
        manner: How the batches come there.
    """

    def __init__(
        self,
        data: Sequence[Data],
        split: Split,
        model: GIN,
        protocol: Protocol,
        device: str = "cpu",
        manner: Manner = PLAIN,
    ) -> None:
        self.device = device
        if manner.resident:
            data = [copy(graph).to(device) for graph in data]  # PyG moves a graph itself
        self.loader = DataLoader(
            [data[i] for i in split.train.tolist()],
            protocol.batch_size,
            shuffle=True,
            num_workers=manner.workers,
            persistent_workers=manner.workers > 0,
            pin_memory=device == "cuda" and not manner.resident,
        )
        self.judged = [self._collated(data, part) for part in (split.valid, split.test)]
        self.model = model.to(device)
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), lr=protocol.learning_rate, fused=True
        )
        self._forward = torch.compile(self.model, dynamic=True) if manner.compiled else self.model

    def train(self, batches: Iterable[Batch]) -> Tensor:
        """Take a step for each batch; return the mean loss of their graphs, on the device."""
        self.model.train()
        total, seen = torch.zeros((), device=self.device), 0
        for batch in batches:
            batch = batch if self.device == "cpu" else batch.to(self.device, non_blocking=True)
            self.optimizer.zero_grad()
            loss = cross_entropy(self._scores(batch), batch.y)
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()
            total = total + loss.detach() * batch.num_graphs
            seen += batch.num_graphs
        return total / seen

    @torch.no_grad()
    def judge(self) -> list[Tensor]:
        """Return the accuracy on validation and on test graphs, on the device."""
        self.model.eval()
        accuracies = []
        for batches in self.judged:
            hits = [(self._scores(batch).argmax(1) == batch.y).sum() for batch in batches]
            accuracies.append(torch.stack(hits).sum() / sum(batch.num_graphs for batch in batches))
        return accuracies

    def _scores(self, batch: Batch) -> Tensor:
        scores: Tensor = self._forward(batch.x, batch.edge_index, batch.batch, batch.num_graphs)
        return scores

    def _collated(self, data: Sequence[Data], part: Tensor) -> list[Batch]:
        return [
            Batch.from_data_list([data[i] for i in ids.tolist()]).to(self.device)
            for ids in torch.split(part, _JUDGED[self.device])
        ]
