"""A small data set of our own, and trainings that cost nothing."""

import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gnn_vpa.experiments import identity, train_group
from gnn_vpa.graphs import GraphSet
from gnn_vpa.training import Lane, Outcome


@pytest.fixture
def toy() -> GraphSet:
    """Paths (class 0) and triangles (class 1), twenty of each."""
    path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    triangle = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])
    graphs = [Data(edge_index=path, num_nodes=3, y=0), Data(edge_index=triangle, num_nodes=3, y=1)]
    return GraphSet.from_pyg(graphs * 20, name="toy")


class FakeFit:
    """Stands for `fit`: counts its calls; a fold's accuracy is its number in hundredths."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, int]] = []
        self.diverging: set[int] = set()

    def __call__(
        self, graphs: GraphSet, tasks: Any, protocols: Any, lanes: Sequence[Lane], **_: Any
    ) -> list[Outcome]:
        self.calls += [(graphs.name, task.aggr, lanes[0].seed) for task in tasks]
        return [
            self.outcome(lane, protocol.epochs)
            for _, protocol in zip(tasks, protocols, strict=True)
            for lane in lanes
        ]

    def outcome(self, lane: Lane, epochs: int) -> Outcome:
        loss = np.linspace(1.0, 0.5, epochs, dtype=np.float32)
        accuracy = np.full(epochs, lane.fold / 100, np.float32)
        if lane.fold in self.diverging:
            loss[1:] = accuracy[1:] = np.nan
        return Outcome.of(lane.fold, lane.seed, loss, accuracy, accuracy)


@pytest.fixture
def fake_fit(monkeypatch: pytest.MonkeyPatch, toy: GraphSet) -> FakeFit:
    """Replace training and data by the toys above; each name has a content of its own."""

    def load(source: str | GraphSet, *_: object) -> GraphSet:
        if isinstance(source, GraphSet):
            return source
        mark = torch.full((toy.num_graphs, 1), float(zlib.crc32(source.encode()) % 10**6))
        return replace(toy, name=source, graph_attributes=mark)

    fake = FakeFit()
    monkeypatch.setattr(train_group, "fit", fake)
    monkeypatch.setattr(identity, "load", load)
    monkeypatch.setattr(identity, "archive_content", lambda _: None)  # a toy may be called MUTAG
    return fake
