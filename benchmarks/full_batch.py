"""Full-batch training on one graph that is kept: its edges as a list, and as a sparse matrix.

Three layers of 64 on 60,000 nodes and 900,000 edges; an epoch is forward, backward and Adam. PyG's
layers are as they are (GIN sums, GraphSAGE takes the mean), ours the same after ``convert``.
"""

import statistics
import time
import warnings
from collections.abc import Sequence
from copy import deepcopy

import torch
from torch import Tensor, nn

import gnn_vpa

from ._record import Record
from .loop import MODELS, wait

NODES, EDGES, WIDTH = 60_000, 900_000, 64


def undirected_edges() -> Tensor:
    """Return random edges in both directions, none of them parallel, source by source."""
    draw = torch.Generator().manual_seed(0)
    ends = torch.randint(NODES, (2, EDGES // 2 + 1000), generator=draw)
    low, high = ends.amin(0), ends.amax(0)
    codes = torch.unique((low * NODES + high)[low != high])[: EDGES // 2]
    low, high = codes // NODES, codes % NODES
    codes = torch.cat([low * NODES + high, high * NODES + low]).sort().values
    return torch.stack([codes // NODES, codes % NODES])


def matrix_of(edge_index: Tensor) -> Tensor:
    """Return ``adj_t`` in CSR."""
    ones = torch.ones(edge_index.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that CSR is in beta
        return torch.sparse_coo_tensor(edge_index.flip(0), ones, (NODES, NODES)).to_sparse_csr()


class _Training:
    def __init__(self, model: nn.Module, x: Tensor, edges: Tensor) -> None:
        self.model, self.x, self.edges = model, x, edges
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)

    def epoch(self, device: str) -> float:
        wait(device)
        begin = time.perf_counter()
        self.optimizer.zero_grad()
        self.model(self.x, self.edges).square().mean().backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        wait(device)
        return time.perf_counter() - begin


def report(device: str, models: Sequence[str], seconds: float, record: Record) -> None:
    """Measure every model; the four take turns, an epoch each, in both orders."""
    names = ("PyG", "PyG on CSR", "converted", "converted on CSR")
    table = record.table(
        "full batch",
        f"An epoch on one graph of {NODES:,} nodes and {EDGES:,} edges",
        {"model": "{}", **dict.fromkeys(names, "{:.3f} s"), "CSR is": "{:.2f}x"},
    )
    edge_index = undirected_edges()
    matrix = matrix_of(edge_index).to(device)
    edge_index, x = edge_index.to(device), torch.randn(NODES, WIDTH).to(device)
    for name in models:
        torch.manual_seed(0)
        model = MODELS[name](WIDTH, WIDTH, 3).to(device)
        trainings = [
            _Training(gnn_vpa.convert(model)[0] if ours else deepcopy(model), x, edges)
            for ours in (False, True)
            for edges in (edge_index, matrix)
        ]
        times: list[list[float]] = [[] for _ in trainings]
        for training in trainings:
            training.epoch(device)
        end = time.perf_counter() + seconds
        turns = list(zip(times, trainings, strict=True))
        while time.perf_counter() < end or len(times[0]) < 3:
            for own, training in turns:
                training.epoch(device)  # what the one before has left in memory and caches goes
                own.append(training.epoch(device))
            turns.reverse()
        medians = [statistics.median(own) for own in times]
        table.row(name, *medians, medians[2] / medians[3])
