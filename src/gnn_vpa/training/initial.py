"""The weights that a training starts from."""

import torch

from ..errors import UsageError
from ..graphs import GraphSet
from ..nn import Model
from ..signal import calibrate, init_
from .level_tables import model_for
from .plain_batch import plain_batch
from .seeds import seed
from .task import Training

STARTS = ("default", "init", "calibrated")
"""Initial weights: PyTorch's and PyG's; those of ``init_``; these after ``calibrate``."""


def initial_model(graphs: GraphSet, training: Training, dtype: torch.dtype) -> Model:
    """Build the model of a training with its initial weights, on the CPU.

    They depend on the data set's name, the task, the fold and the seed alone; calibrated ones on
    the fold's training graphs as well.

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
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed((graphs.name, task, lane.fold, lane.seed), "initial weights"))
        model = model_for(task, graphs)
        if start != "default":
            init_(model)
    model = model.to(dtype)
    if start == "calibrated":
        batch = plain_batch(graphs, task.features, lane.split.train, dtype)
        calibrate(model, tuple(batch))
    return model
