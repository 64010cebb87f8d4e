"""Users' own models: PyG's GIN, GraphSAGE and GAT, all folds, by `fit` and by a plain loop.

The loop is what a user of PyG writes with care: one fold after the other, PyG's ``DataLoader``, and
what `peer.py` does to be quick. It computes the same losses, which is checked before it is timed.
"""

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GAT, GIN, GraphSAGE, global_add_pool

from gnn_vpa.graphs import GraphSet, load, splits
from gnn_vpa.training import Lane, Protocol, Task, Training, fit, initial_model
from gnn_vpa.training.own import source_hash
from gnn_vpa.training.seeds import generator

from ._record import Record
from .peer import Peer, pyg_graphs

DATASETS = ("NCI1", "IMDB-B")
MODELS = ("gin", "sage", "gat")
SECONDS = 60.0  # about how long the loop would take for all epochs of a run
_COLUMNS = {
    "data": "{}",
    "model": "{}",
    "processes": "{}",
    "loop, s an epoch": "{:.3f}",
    "ours, s an epoch": "{:.3f}",
    "faster": "{:.2f}x",
    "epochs": "{}",
    "ours from start to outcome, s": "{:.1f}",
    "faster, all in all": "{:.2f}x",
}


class Net(nn.Module):
    """A stack of PyG's layers, a sum over the nodes of a graph, and a Linear head."""

    def __init__(self, body: nn.Module, width: int, out_channels: int) -> None:
        super().__init__()
        self.body, self.head = body, nn.Linear(width, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        """Return scores ``[graphs, classes]``."""
        out: Tensor = self.head(global_add_pool(self.body(x, edge_index), batch))
        return out


def gin(in_channels: int, out_channels: int) -> Net:
    """Make PyG's GIN."""
    return Net(GIN(in_channels, 64, 4, norm="batch_norm"), 64, out_channels)


def sage(in_channels: int, out_channels: int) -> Net:
    """Make PyG's GraphSAGE."""
    return Net(GraphSAGE(in_channels, 64, 4), 64, out_channels)


def gat(in_channels: int, out_channels: int) -> Net:
    """Make PyG's GAT."""
    return Net(GAT(in_channels, 64, 4, heads=4), 64, out_channels)


class OwnPeer(Peer):
    """The plain loop with any model."""

    def _scores(self, batch: Batch) -> Tensor:
        scores: Tensor = self._forward(batch.x, batch.edge_index, batch.batch)
        return scores


def task_of(model: str) -> Task:
    """Return the task of one of the models above."""
    factory = {"gin": gin, "sage": sage, "gat": gat}[model]
    return Task(f"{__name__}:{model}", "", source=source_hash(factory))


def peer_of(
    graphs: GraphSet, data: Sequence[Data], training: Training, device: str, dtype: torch.dtype
) -> OwnPeer:
    """Return the loop of one fold, with the initial weights of ours."""
    model: Any = initial_model(graphs, training, dtype)
    return OwnPeer(data, training.lane.split, model, training.protocol, device)


def ordered(
    graphs: GraphSet, data: Sequence[Data], training: Training, epoch: int
) -> Iterator[Batch]:
    """Yield the batches of an epoch in the order that ours takes."""
    task, lane, protocol = training
    key = (graphs.name, task, lane.fold, lane.seed)
    ids = lane.split.train
    ids = ids[torch.randperm(len(ids), generator=generator(key, "order", epoch))]
    for step in ids.split(protocol.batch_size):
        yield Batch.from_data_list([data[i] for i in step.tolist()])


def check(graphs: GraphSet, model: str, device: str, folds: int = 2, epochs: int = 2) -> float:
    """Return how far losses of ours are from the loop's at most, in float64."""
    task, dtype = task_of(model), torch.float64
    lanes = [Lane(fold, split) for fold, split in enumerate(splits(graphs.y, 10))][:folds]
    protocol = Protocol(epochs=epochs)
    data = pyg_graphs(graphs, dtype)
    outcomes = fit(graphs, task, protocol, lanes, device=device, dtype=dtype)
    worst = 0.0
    for lane, outcome in zip(lanes, outcomes, strict=True):
        training = Training(task, lane, protocol)
        peer = peer_of(graphs, data, training, device, dtype)
        losses = [
            float(peer.train(ordered(graphs, data, training, epoch))) for epoch in range(epochs)
        ]
        worst = max(worst, float(np.abs(outcome.curve_train_loss - np.array(losses)).max()))
    return worst


def loop_of(
    graphs: GraphSet, task: Task, lanes: Sequence[Lane], device: str
) -> Callable[[], float]:
    """Return what trains the loop for an epoch of all folds, and says how long that took."""
    data = pyg_graphs(graphs)
    peers = [
        peer_of(graphs, data, Training(task, lane, Protocol()), device, torch.float32)
        for lane in lanes
    ]
    _epoch(peers[0], device)

    def seconds() -> float:
        begin = time.perf_counter()
        for peer in peers:
            _epoch(peer, device)
        return time.perf_counter() - begin

    return seconds


def _epoch(peer: OwnPeer, device: str) -> None:
    peer.train(peer.loader)
    peer.judge()
    if device == "cuda":
        torch.cuda.synchronize()


def our_seconds(
    graphs: GraphSet, task: Task, lanes: Sequence[Lane], device: str, workers: int | None,
    epochs: int,
) -> float:  # fmt: skip
    """Return the seconds of a training of all folds by ``fit``, from start to outcome."""
    begin = time.perf_counter()
    fit(graphs, task, Protocol(epochs=epochs), lanes, device=device, workers=workers)
    return time.perf_counter() - begin


def report(device: str, datasets: Sequence[str], epochs: int | None, record: Record) -> None:
    """Measure, and write a row for each model, data set and number of processes.

    An epoch of ours is the difference between a whole training and one of half as many epochs:
    what other processes take to start, and what is prepared, is in both. All of it counts from
    start to outcome, where the loop has nothing but its epochs.
    """
    table = record.table("own", "Own models, ten folds", _COLUMNS)
    for name in datasets:
        graphs = load(name)
        lanes = [Lane(fold, split) for fold, split in enumerate(splits(graphs.y, 10))]
        for model in MODELS:
            if (worst := check(graphs, model, device)) > 1e-7:
                raise AssertionError(f"{model} on {name}: losses differ by {worst}")
            task = task_of(model)
            loop = loop_of(graphs, task, lanes, device)
            for workers in (None,) if device == "cuda" else (None, 2):
                loops = [loop()]
                count = epochs or max(2, math.ceil(SECONDS / loops[0]))
                half = count // 2
                short = our_seconds(graphs, task, lanes, device, workers, half)
                loops.append(loop())
                whole = our_seconds(graphs, task, lanes, device, workers, count)
                loops.append(loop())
                theirs, ours = statistics.median(loops), (whole - short) / (count - half)
                steady, all_in_all = theirs / ours, theirs * count / whole
                table.row(name, model, workers or 1, theirs, ours, steady, count, whole, all_in_all)
