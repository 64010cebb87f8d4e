"""The plain loop: one fold, one model, PyG's batches. What the lanes are compared with."""

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch_geometric.data import Batch

from gnn_vpa.graphs import GraphSet, features
from gnn_vpa.ops import Graph
from gnn_vpa.training import Lane, Protocol, Task
from gnn_vpa.training.level_tables import model_for
from gnn_vpa.training.seeds import generator, seed


def batch_of(graphs: GraphSet, x: Tensor, ids: Tensor) -> Batch:
    """Collate graphs as PyG's loader does, with the data set's own features."""
    data = []
    for i in ids.tolist():
        graph = graphs.graph(i)
        graph.x = x[graphs.node_ptr[i] : graphs.node_ptr[i + 1]]
        data.append(graph)
    return Batch.from_data_list(data)


def readout_of(batch: Batch) -> Graph:
    """A readout that knows of graphs without nodes too, which PyG's vector may not show."""
    return Graph.readout(batch.batch, batch.num_graphs)


def train_one_fold(
    graphs: GraphSet, task: Task, protocol: Protocol, lane: Lane, dtype: torch.dtype
) -> np.ndarray:
    """Return the training loss, validation and test accuracy of every epoch."""
    key = (graphs.name, task, lane.fold, lane.seed)
    torch.manual_seed(seed(key, "initial weights"))
    model = model_for(task, graphs).to(dtype)
    x = features(graphs, task.features).matrix().to(dtype)
    optimizer = torch.optim.Adam(model.parameters(), lr=protocol.learning_rate)
    size = protocol.batch_size
    weights = torch.ones(graphs.num_graphs) if graphs.weights is None else graphs.weights[:, 0]
    weights = weights.to(dtype)
    curves = []
    for epoch in range(protocol.epochs):
        model.train()
        order = torch.randperm(len(lane.split.train), generator=generator(key, "order", epoch))
        steps = lane.split.train[order].split(size)
        shape = (len(steps), *model.dropout_shape(size))
        uniform = torch.rand(shape, generator=generator(key, "dropout", epoch), dtype=dtype)
        total = 0.0
        for ids, draws in zip(steps, uniform, strict=True):
            batch = batch_of(graphs, x, ids)
            own = draws.narrow(-2, 0, len(ids))
            optimizer.zero_grad()
            scores = model(batch.x, batch.edge_index, readout_of(batch), None, own)
            each = cross_entropy(scores, graphs.y[ids], reduction="none")
            loss = (each * weights[ids]).sum() / weights[ids].sum()
            loss.backward()
            optimizer.step()
            total += float(loss.detach() * weights[ids].sum())
        model.eval()
        accuracies = []
        for part in (lane.split.valid, lane.split.test):
            batch = batch_of(graphs, x, part)
            with torch.no_grad():
                guess = model(batch.x, batch.edge_index, readout_of(batch)).argmax(1)
            accuracies.append(float((guess == graphs.y[part]).double().mean()))
        curves.append((total / float(weights[lane.split.train].sum()), *accuracies))
    return torch.tensor(curves, dtype=torch.float64).T.numpy()
