"""The plain loop over one fold: PyG's batches, one model, torch's optimiser."""

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from torch_geometric.data import Batch, Data

from gnn_vpa.graphs import GraphSet
from gnn_vpa.training import Lane, Protocol, Task
from gnn_vpa.training.own.dropout import step_seeds
from gnn_vpa.training.own.modes import HashedDropout
from gnn_vpa.training.seeds import generator, seed


def graph_of(graphs: GraphSet, index: int, dtype: torch.dtype) -> Data:
    """One graph, its edges in the order of the data set: a mask of dropout knows them by place."""
    first, last = graphs.node_ptr[index : index + 2].tolist()
    rows = graphs.rowptr[first : last + 1]
    edges = slice(int(rows[0]), int(rows[-1]))
    target = torch.repeat_interleave(torch.arange(last - first), rows.diff())
    source = graphs.col[edges].long() - first
    assert graphs.own_features is not None
    x = graphs.own_features.matrix(slice(first, last)).to(dtype)
    data = Data(x=x, edge_index=torch.stack([source, target]))
    if graphs.edge_attributes is not None:
        data.edge_attr = graphs.edge_attributes[edges].to(dtype)
    return data


def called(model: torch.nn.Module, batch: Batch, with_edges: bool) -> torch.Tensor:
    if with_edges:
        return model(batch.x, batch.edge_index, edge_attr=batch.edge_attr, batch=batch.batch)
    return model(batch.x, batch.edge_index, batch.batch)


def train_one_fold(
    graphs: GraphSet, task: Task, protocol: Protocol, lane: Lane, dtype: torch.dtype
) -> np.ndarray:
    """Return the training loss, validation and test accuracy of every epoch."""
    key = (graphs.seed_source, task, lane.fold, lane.seed)
    torch.manual_seed(seed(key, "initial weights"))
    model = task.build(3, 2).to(dtype)
    rate, decay = protocol.learning_rate, protocol.weight_decay
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, weight_decay=decay)
    data = [graph_of(graphs, i, dtype) for i in range(graphs.num_graphs)]
    with_edges = task.model == "own_nets:gine"
    mode, curves = HashedDropout(), []
    for epoch in range(protocol.epochs):
        model.train()
        order = torch.randperm(len(lane.split.train), generator=generator(key, "order", epoch))
        steps = lane.split.train[order].split(protocol.batch_size)
        seeds = step_seeds([seed(key, "dropout", epoch)], len(steps))[:, 0]
        total = 0.0
        for ids, own in zip(steps, seeds, strict=True):
            batch = Batch.from_data_list([data[i] for i in ids.tolist()])
            optimizer.zero_grad()
            with mode:
                mode.begin(own, batch.num_nodes, batch.num_edges)
                loss = cross_entropy(called(model, batch, with_edges), graphs.y[ids])
            loss.backward()
            optimizer.step()
            total += float(loss.detach()) * len(ids)
        model.eval()
        accuracies = []
        for part in (lane.split.valid, lane.split.test):
            batch = Batch.from_data_list([data[i] for i in part.tolist()])
            with torch.no_grad():
                guess = called(model, batch, with_edges).argmax(1)
            accuracies.append(float((guess == graphs.y[part]).double().mean()))
        curves.append((total / len(lane.split.train), *accuracies))
    return torch.tensor(curves, dtype=torch.float64).T.numpy()
