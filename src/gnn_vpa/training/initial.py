"""The weights that a training starts from."""

from typing import Any

import torch
from torch import Tensor, nn

from ..errors import UsageError
from ..graphs import GraphSet
from ..random_state import seeded
from .level_tables import model_for
from .own import Source, is_own, own_model, pyg_batch
from .plain_batch import plain_batch
from .seeds import seed
from .task import Task, Training

STARTS = ("default", "init", "calibrated")
"""Initial weights: PyTorch's and PyG's; those of ``init_``; these after ``calibrate``."""


def initial_model(graphs: GraphSet, training: Training, dtype: torch.dtype) -> nn.Module:
    """Build the model of a training with its initial weights, on the CPU.

    They depend on `GraphSet.seed_source`, the task, the fold and the seed alone; calibrated ones
    on the fold's training graphs as well.

    Example:
        >>> from torch_geometric.data import Data
        >>> from gnn_vpa.graphs import splits
        >>> from gnn_vpa.training import Lane, Task
        >>> pair = torch.tensor([[0, 1], [1, 0]])
        >>> some = [Data(edge_index=pair, num_nodes=2 + i % 2, y=i % 2) for i in range(20)]
        >>> data = GraphSet.from_pyg(some, name="toy")
        >>> lane = Lane(0, splits(data.y, folds=4)[0])
        >>> task = Task("gcn", "vpa", options=(("start", "calibrated"),))
        >>> initial_model(data, Training(task, lane), torch.float32).aggr
        'vpa'
    """
    task, lane, _ = training
    start = task.start
    if start not in STARTS:
        raise UsageError(f"start: {start!r} is unknown, expected one of {', '.join(STARTS)}.")
    own = seed((graphs.seed_source, task, lane.fold, lane.seed), "initial weights")
    with seeded(own):
        model: nn.Module = (
            own_model(task, graphs) if is_own(task.model) else model_for(task, graphs)
        )
        if start != "default":
            from ..signal import init_  # it loads PyG, which few trainings need

            init_(model)
    model = model.to(dtype)
    if start == "calibrated":
        from ..signal import calibrate

        calibrate(model, _inputs(graphs, task, lane.split.train, dtype))
    return model


def _inputs(graphs: GraphSet, task: Task, ids: Tensor, dtype: torch.dtype) -> Any:
    """Return some graphs as ``calibrate`` hands them to a model."""
    if is_own(task.model):
        return pyg_batch(Source(graphs, task.features, torch.device("cpu"), dtype).cut(ids))
    return tuple(plain_batch(graphs, task.features, ids, dtype))
