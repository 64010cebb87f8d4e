"""An ordinary training loop of PyG: what a user has who converts a model and keeps the loop.

Four layers of 64, a readout and a Linear; PyG's ``DataLoader`` of 64 graphs, forward, backward and
Adam, a new batch each step. Values and gradients are compared with the reference's first. Then
contenders take turns, a few steps each, and medians are shown, of the clock and of the processor's
own time (which other work on the machine hardly changes):

- PyG: the layers with PyG's ``VariancePreservingAggregation`` (GCN and GAT, whose sums have
  weights that PyG's aggregation does not know, as they are) and the same for the readout;
- converted: the same model after ``gnn_vpa.convert``;
- grouped: converted, on graphs that ``GroupEdges`` has prepared;
- loaded: the same, with the batches of ``gnn_vpa.DataLoader``;
- merged: the same, on graphs whose alike nodes ``MergeAlike`` has merged before, with a readout
  that counts them. That is exact: scores are compared with those of whole graphs. Self-loops are
  added before nodes are merged. Not compiled;
- limit: PyG's loop whose layers and readout aggregate nothing.

Numbers below 1e-38 count as 0: a processor takes up to a hundred times as long for one, and how
many gradients are that small depends on how long a contender has been trained.
"""

import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from copy import deepcopy
from types import FunctionType, MethodType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GAT, GCN, GIN, GraphSAGE, MessagePassing, global_add_pool
from torch_geometric.nn.aggr import VariancePreservingAggregation
from torch_geometric.transforms import AddRemainingSelfLoops, Compose

import gnn_vpa
from gnn_vpa.graphs import load
from gnn_vpa.ops import Graph, use_backend

from ._record import Record
from .history import Ratios
from .peer import pyg_graphs

DATASETS = ("MUTAG", "IMDB-BINARY", "NCI1", "REDDIT-BINARY", "COLLAB")
MODELS: dict[str, Callable[..., nn.Module]] = {
    "GIN": GIN,
    "GCN": GCN,
    "GAT": GAT,
    "GraphSAGE": GraphSAGE,
}
WITH_LOOPS = ("GCN", "GAT")
BATCH_SIZE = 64
_STEPS = 8  # that a contender makes in a turn
_KEPT = 2000  # graphs of a data set that are trained on: enough steps for a median


class Classifier(nn.Module):
    """Layers, a readout and a Linear.

    Args:
        layers: Their kind, a name in ``MODELS``.
        in_channels: Number of features.
        num_classes: Number of classes.
        adds_loops: Whether layers that want self-loops add them, or there are some already.
    """

    def __init__(
        self, layers: str, in_channels: int, num_classes: int, adds_loops: bool = True
    ) -> None:
        super().__init__()
        options: dict[str, Any] = {"add_self_loops": adds_loops}
        if layers not in WITH_LOOPS:
            options = {"aggr": VariancePreservingAggregation()}
        self.layers = MODELS[layers](in_channels, 64, 4, **options)
        self.pool = VariancePreservingAggregation()
        self.head = nn.Linear(64, num_classes)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        batch: Tensor,
        num_graphs: int,
        times: Tensor | None = None,
    ) -> Tensor:
        """Return scores ``[graphs, classes]``; a node counts as often as ``times [nodes]`` says."""
        x = self.layers(x, edge_index)
        if times is None:
            pooled = self.pool(x, batch, dim_size=num_graphs)
        else:
            pooled = counted_readout(x, batch, num_graphs, times)
        out: Tensor = self.head(pooled)
        return out


def counted_readout(x: Tensor, batch: Tensor, num_graphs: int, times: Tensor) -> Tensor:
    """Return ``sum_i t_i x_i / sqrt(sum_i t_i)`` of each graph."""
    if not x.is_cuda:
        return gnn_vpa.aggregate(x, Graph.readout(batch, num_graphs, times), "vpa")
    # There two sums take less than grouping the nodes of a batch that is used once.
    often = times.to(x.dtype).unsqueeze(1)
    total: Tensor = global_add_pool(x * often, batch, num_graphs)
    count: Tensor = global_add_pool(often, batch, num_graphs)
    return total * count.rsqrt()


class _First(nn.Module):
    """Stands for a readout: as many rows, and no sums."""

    def forward(self, x: Tensor, index: Tensor, dim_size: int) -> Tensor:
        return x[:dim_size]


def without_aggregation(model: nn.Module) -> nn.Module:
    """Let every layer hand its nodes on, and the readout take the first ones."""
    for module in model.modules():
        if isinstance(module, MessagePassing):
            module.propagate = _source  # type: ignore[method-assign]
            if hasattr(module, "edge_updater"):
                module.edge_updater = lambda *_, **__: None  # type: ignore[method-assign]
            for name in ("add_self_loops", "normalize"):
                if hasattr(module, name):
                    setattr(module, name, False)
    model.pool = _First()
    return model


def _source(edge_index: Tensor, *, x: Any, **_: Any) -> Tensor:
    out: Tensor = x[0] if isinstance(x, tuple) else x
    return out


class Contender(NamedTuple):
    """A model and the batches it is trained on."""

    name: str
    model: nn.Module
    loader: Iterable[Any]


class Loop:
    """The training of one contender, a few steps at a time."""

    def __init__(self, contender: Contender, device: str, compiled: bool = False) -> None:
        self.contender, self.device = contender, device
        self.model = contender.model.to(device).train()
        self.forward = compiled_alone(self.model) if compiled else self.model
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3, fused=True)
        self.batches = self._endless()

    def _endless(self) -> Iterator[Any]:
        while True:
            yield from self.contender.loader

    def steps(self, count: int) -> tuple[float, float]:
        """Train; return the seconds of a step, of the clock and of the processor."""
        wait(self.device)
        begin, busy = time.perf_counter(), time.process_time()
        for _ in range(count):
            batch = next(self.batches)
            batch = batch if self.device == "cpu" else batch.to(self.device, non_blocking=True)
            self.optimizer.zero_grad()
            scores = self.forward(*given(batch))
            cross_entropy(scores, batch.y).backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()
        wait(self.device)
        return (time.perf_counter() - begin) / count, (time.process_time() - busy) / count


def given(batch: Any) -> tuple[Any, ...]:
    """Return what the network is given of a batch."""
    whole = batch.x, batch.edge_index, batch.batch, batch.num_graphs
    return (*whole, batch.times) if "times" in batch else whole


def compiled_alone(model: nn.Module) -> Callable[..., Tensor]:
    """Compile a model from code that is its own: PyTorch keeps at most 8 programs of one code."""
    forward = type(model).forward
    own = FunctionType(forward.__code__.replace(), forward.__globals__, forward.__name__)
    compiled: Callable[..., Tensor] = torch.compile(MethodType(own, model), dynamic=True)
    return compiled


def wait(device: str) -> None:
    """Wait until a device has done what it was told to."""
    if device == "cuda":
        torch.cuda.synchronize()


def check(contender: Contender, device: str) -> Tensor:
    """Raise unless values and gradients in float64 are those of the reference kernels.

    Returns:
        The scores of the first batch.
    """
    model = deepcopy(contender.model).to(device).double()
    batch = next(iter(contender.loader)).to(device)
    found = []
    for backend in (None, "reference"):
        with use_backend(backend) if backend else nullcontext():
            x, edges, *others = given(batch)
            scores = model(x.double(), edges.clone(), *others)  # grouped anew
            weights = [p for p in model.parameters() if p.requires_grad]
            found.append((scores, *torch.autograd.grad(scores.square().sum(), weights)))
    # Sums of large numbers that cancel are as exact as these numbers are.
    largest = max(float(one.detach().abs().max()) for one in found[1])
    torch.testing.assert_close(found[0], found[1], rtol=1e-8, atol=1e-10 * max(largest, 100))
    return found[0][0].detach()


def contenders(
    layers: str, data: Sequence[Data], num_classes: int, compiled: bool = False
) -> Iterator[Contender]:
    """Yield the contenders, all with the same initial weights and graphs in the same order."""

    def model(adds_loops: bool = True) -> nn.Module:
        torch.manual_seed(0)
        return Classifier(layers, data[0].num_features, num_classes, adds_loops)

    def loader(graphs: Sequence[Data], kind: type[DataLoader] = DataLoader) -> DataLoader:
        draw = torch.Generator().manual_seed(0)
        return kind(list(graphs), BATCH_SIZE, shuffle=True, generator=draw)

    yield Contender("PyG", model(), loader(data))
    yield Contender("converted", gnn_vpa.convert(model())[0], loader(data))
    group = gnn_vpa.GroupEdges()
    grouped = [group(graph) for graph in data]
    yield Contender("grouped", gnn_vpa.convert(model())[0], loader(grouped))
    loaded = loader(grouped, gnn_vpa.DataLoader)
    yield Contender("loaded", gnn_vpa.convert(model())[0], loaded)
    if not compiled:
        small = loader([merging(layers)(graph.clone()) for graph in data], gnn_vpa.DataLoader)
        yield Contender("merged", gnn_vpa.convert(model(adds_loops=False))[0], small)
    yield Contender("limit", without_aggregation(model()), loader(data))


def merging(layers: str) -> Compose:
    """Return the transform that merges what four layers of this kind cannot tell apart."""
    # A degree that neighbours are divided by is seen one step further than messages come from.
    merge = gnn_vpa.MergeAlike(rounds=5 if layers == "GCN" else 4, repeat=True)
    loops = [AddRemainingSelfLoops()] if layers in WITH_LOOPS else []
    return Compose([*loops, merge, gnn_vpa.GroupEdges()])


def report(
    device: str,
    datasets: Sequence[str],
    models: Sequence[str],
    seconds: float,
    record: Record,
    kept: Ratios,
    compiled: bool = False,
) -> None:
    """Measure every model on every data set."""
    ours = ["converted", "grouped", "loaded", *([] if compiled else ["merged"])]
    columns = {"data set": "{}", "model": "{}"}
    columns |= dict.fromkeys(["PyG", *ours, "limit"], "{:.2f} ms")
    columns |= {f"{name} is": "{:.2f}x" for name in [*ours, "the limit"]}
    columns |= {f"{name}, by processor": "{:.2f}x" for name in [*ours, "limit"]}
    title = "A step of an ordinary loop, 64 graphs" + (", compiled" if compiled else "")
    table = record.table("loop", title, columns)
    torch.set_flush_denormal(True)
    for name in datasets:
        graphs = load(name)
        every = pyg_graphs(graphs)
        chosen = torch.randperm(len(every), generator=torch.Generator().manual_seed(0))[:_KEPT]
        data = [every[i] for i in chosen.tolist()]
        for layers in models:
            rivals = list(contenders(layers, data, graphs.num_classes, compiled))
            scores = [check(contender, device) for contender in rivals[1:-1]]
            for found in scores[1:]:
                torch.testing.assert_close(found, scores[0], rtol=1e-8, atol=1e-8)
            torch.compiler.reset()  # what other data sets and models have left
            loops = [Loop(contender, device, compiled) for contender in rivals]
            times = _in_turns(loops, seconds)
            clock, busy = (
                {key: 1e3 * statistics.median(own[kind] for own in taken) for key, taken in times}
                for kind in range(2)
            )
            ratios = [clock["PyG"] / clock[key] for key in [*ours, "limit"]]
            by_processor = [busy["PyG"] / busy[key] for key in [*ours, "limit"]]
            table.row(name, layers, *clock.values(), *ratios, *by_processor)
            manner = ["compiled"] if compiled else []
            for key in ours:
                kept.add("loop", *manner, name, layers, key, ours=clock[key], peer=clock["PyG"])


def _in_turns(loops: Sequence[Loop], seconds: float) -> list[tuple[str, list[tuple[float, float]]]]:
    times: list[list[tuple[float, float]]] = [[] for _ in loops]
    for loop in loops:
        loop.steps(3)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 3:
        for own, loop in zip(times, loops, strict=True):
            loop.steps(1)  # what the one before has left in the caches goes
            own.append(loop.steps(_STEPS))
    return [(loop.contender.name, own) for loop, own in zip(loops, times, strict=True)]
