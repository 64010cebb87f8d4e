"""The plain loop: one fold, one model, PyG's batches. What the lanes are compared with."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid
from torch_geometric.data import Batch

from gnn_vpa.graphs import GraphSet, features, kind_of
from gnn_vpa.ops import Graph
from gnn_vpa.training import Lane, Protocol, Task, better, metric_for
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


class Loss:
    """The loss of a protocol, with the training graphs' own mean, deviation and class weights."""

    def __init__(self, y: Tensor, train: Tensor, protocol: Protocol, dtype: torch.dtype) -> None:
        self.kind, self.name, self.dtype = kind_of(y), protocol.loss, dtype
        own = y[train]
        self.mean, self.std = torch.zeros(1, dtype=dtype), torch.ones(1, dtype=dtype)
        if self.kind == "regression":
            numbers = own.double().numpy()
            std = np.nanstd(numbers, axis=0)
            self.mean = torch.tensor(np.nanmean(numbers, axis=0), dtype=dtype)
            self.std = torch.tensor(np.where(std > 0, std, 1), dtype=dtype)
        self.weights: list[dict[int, float]] | None = None
        if protocol.class_weight == "balanced":
            columns = own[:, None] if own.dim() == 1 else own
            self.weights = [_balanced(column) for column in columns.T]

    def __call__(
        self, scores: Tensor, y: Tensor, counts: Tensor | None = None
    ) -> tuple[Tensor, float]:
        """Return the mean over what is known, and how much it is of."""
        there = ~y.isnan() if y.is_floating_point() else y >= 0
        weight = there.to(self.dtype)
        if self.weights is not None:
            columns = y[:, None] if y.dim() == 1 else y
            rows = [
                [w.get(int(v), 0.0) for w, v in zip(self.weights, r, strict=True)] for r in columns
            ]
            weight = torch.tensor(rows, dtype=self.dtype).view(y.shape)
        if counts is not None:  # of each graph, [B, 1]
            weight = weight * counts.to(self.dtype).view(-1, *[1] * (y.dim() - 1))
        if float(weight.sum()) == 0:
            return scores.sum() * 0, 0.0
        if self.kind == "classes":
            each = -scores.log_softmax(1).gather(1, y.clamp(min=0)[:, None])[:, 0]
        elif self.kind == "labels":
            each = torch.where(y == 1, -logsigmoid(scores), -logsigmoid(-scores))
        else:
            gap = (scores - (y.to(self.dtype).nan_to_num() - self.mean) / self.std).abs()
            square = gap.square()
            each = {
                "auto": gap, "l1": gap, "mse": square,
                "huber": torch.where(gap < 1, square / 2, gap - 0.5),
            }[self.name]  # fmt: skip
        return (each * weight).sum() / weight.sum(), float(weight.sum())


def _balanced(column: Tensor) -> dict[int, float]:
    from sklearn.utils.class_weight import compute_class_weight

    known = column[column >= 0].numpy()
    classes = np.unique(known)
    weights = compute_class_weight("balanced", classes=classes, y=known)
    return dict(zip(classes.tolist(), weights.tolist(), strict=True))


def _optimizer(model: torch.nn.Module, protocol: Protocol) -> torch.optim.Optimizer:
    made: dict[str, Any] = {"lr": protocol.learning_rate, "weight_decay": protocol.weight_decay}
    if protocol.optimizer == "sgd":
        return torch.optim.SGD(model.parameters(), momentum=0.9, **made)
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[protocol.optimizer]
    return kind(model.parameters(), **made)


def _schedule(
    optimizer: torch.optim.Optimizer, protocol: Protocol
) -> torch.optim.lr_scheduler.LRScheduler:
    if protocol.schedule == "cosine":
        return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=protocol.epochs)
    halving = 0.5 if protocol.schedule == "step" else 1.0
    return torch.optim.lr_scheduler.StepLR(optimizer, step_size=50, gamma=halving)


def train_one_fold(
    graphs: GraphSet, task: Task, protocol: Protocol, lane: Lane, dtype: torch.dtype
) -> np.ndarray:
    """Return the training loss, validation and test score of every epoch."""
    key = (graphs.seed_source, task, lane.fold, lane.seed)
    torch.manual_seed(seed(key, "initial weights"))
    model = model_for(task, graphs).to(dtype)
    x = features(graphs, task.features).matrix().to(dtype)
    optimizer = _optimizer(model, protocol)
    schedule = _schedule(optimizer, protocol)
    loss_of = Loss(graphs.y, lane.split.train, protocol, dtype)
    metric = metric_for(protocol.metric, graphs.kind)
    size = protocol.batch_size
    curves: list[tuple[float, ...]] = []
    best, best_epoch = None, 0
    for epoch in range(protocol.epochs):
        model.train()
        order = torch.randperm(len(lane.split.train), generator=generator(key, "order", epoch))
        steps = lane.split.train[order].split(size)
        shape = (len(steps), *model.dropout_shape(size))
        uniform = torch.rand(shape, generator=generator(key, "dropout", epoch), dtype=dtype)
        total = weights = 0.0
        for ids, draws in zip(steps, uniform, strict=True):
            batch = batch_of(graphs, x, ids)
            own = draws.narrow(-2, 0, len(ids))
            optimizer.zero_grad()
            scores = model(batch.x, batch.edge_index, readout_of(batch), None, own)
            counts = None if graphs.weights is None else graphs.weights[ids]
            loss, weight = loss_of(scores, graphs.y[ids], counts)
            loss.backward()
            if protocol.clip is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), protocol.clip)
            optimizer.step()
            total += float(loss.detach()) * weight
            weights += weight
        schedule.step()
        model.eval()
        values = []
        for part in (lane.split.valid, lane.split.test):
            batch = batch_of(graphs, x, part)
            with torch.no_grad():
                scores = model(batch.x, batch.edge_index, readout_of(batch))
            values.append(metric.of(graphs.y[part], scores * loss_of.std + loss_of.mean))
        curves.append((total / weights, *values))
        if best is None or better(metric, values[0], best):
            best, best_epoch = values[0], epoch
        if protocol.patience is not None and epoch - best_epoch >= protocol.patience:
            break
    return torch.tensor(curves, dtype=torch.float64).T.numpy()
