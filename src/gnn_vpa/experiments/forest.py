"""Random forests on what is left of graphs without their edges, or without their features."""

from operator import itemgetter

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..graphs import FeatureKind, GraphSet, Split, features
from .predicted import score

Numbers = NDArray[np.float64]  # [graphs, columns]

_TREES = 100
_LEAVES = (1, 4)  # least graphs in a leaf, of which the validation graphs choose


def pooled_features(graphs: GraphSet, kind: FeatureKind) -> Numbers:
    """Describe each graph by its nodes alone: how many, and sum and mean of their features.

    Example:
        >>> from torch_geometric.data import Data
        >>> x, edges = torch.tensor([[1.0], [3.0]]), torch.tensor([[0], [1]])
        >>> pooled_features(GraphSet.from_pyg([Data(x=x, edge_index=edges, y=0)]), "auto").tolist()
        [[2.0, 4.0, 2.0]]
    """
    own, size = features(graphs, kind), graphs.node_ptr.diff()
    owner = torch.repeat_interleave(size)
    sums = []
    if own.dense is not None:
        sums.append(_sums(own.dense.double(), owner, graphs.num_graphs))
    if own.codes is not None:
        boxes = graphs.num_graphs * own.num_codes
        count = torch.bincount(owner * own.num_codes + own.codes, minlength=boxes)
        sums.append(count.reshape(graphs.num_graphs, own.num_codes).double())
    total, nodes = torch.cat(sums, dim=1), size.double().unsqueeze(1)
    return torch.cat([nodes, total, total / nodes.clamp(min=1)], dim=1).numpy()


def degree_numbers(graphs: GraphSet) -> Numbers:
    """Describe each graph by its degrees alone.

    Numbers of nodes and edges, mean, standard deviation and maximum of the degrees, and the shares
    of the nodes of degree 0, 1, 2, 3, 4 to 5, 6 to 7, 8 to 11, and so on.

    Example:
        >>> from torch_geometric.data import Data
        >>> star = Data(edge_index=torch.tensor([[1, 2], [0, 0]]), num_nodes=3, y=0)
        >>> [round(n, 2) for n in degree_numbers(GraphSet.from_pyg([star]))[0].tolist()]
        [3.0, 2.0, 0.67, 0.94, 2.0, 0.67, 0.0, 0.33]
    """
    degree, size = graphs.degree(), graphs.node_ptr.diff()
    owner = torch.repeat_interleave(size)
    nodes = size.double().clamp(min=1).unsqueeze(1)
    moments = torch.stack([degree, degree.square()], dim=1).double()
    edges, squares = _sums(moments, owner, graphs.num_graphs).unsqueeze(2).unbind(dim=1)
    mean = edges / nodes
    deviation = (squares / nodes - mean.square()).clamp(min=0).sqrt()
    most = torch.zeros_like(size).scatter_reduce_(0, owner, degree, "amax").unsqueeze(1)
    bounds = _bounds(int(degree.max()) if len(degree) else 0)
    box = torch.bucketize(degree, bounds, right=True) - 1
    count = torch.bincount(owner * len(bounds) + box, minlength=graphs.num_graphs * len(bounds))
    shares = count.reshape(graphs.num_graphs, len(bounds)) / nodes
    columns = [size.unsqueeze(1), edges, mean, deviation, most, shares]
    return torch.cat([column.double() for column in columns], dim=1).numpy()


def forest(
    numbers: Numbers, y: Tensor, split: Split, metric: str = "accuracy"
) -> tuple[Tensor, Tensor]:
    """Train forests on the training graphs, and let the validation graphs choose one.

    Returns:
        The classes that it predicts for the validation graphs and for the test graphs.

    Example:
        >>> parts = (torch.arange(start, 16, 4) for start in (0, 1, 2))
        >>> numbers = np.arange(16.0)[:, None]
        >>> forest(numbers, torch.arange(16) // 8, Split(*parts))[1]
        tensor([0, 0, 1, 1])
    """
    from sklearn.ensemble import RandomForestClassifier

    train, valid, test = (part.numpy() for part in split)
    classes = int(y.max()) + 1
    tried = []
    for least in _LEAVES:
        trees = RandomForestClassifier(_TREES, min_samples_leaf=least, random_state=0)
        trees.fit(numbers[train], y.numpy()[train])
        predicted = torch.from_numpy(trees.predict(numbers[valid]))
        tried.append((score(metric, y[split.valid], predicted, classes), predicted, trees))
    _, predicted, trees = max(tried, key=itemgetter(0))  # the first of the highest
    return predicted, torch.from_numpy(trees.predict(numbers[test]))


def _sums(values: Tensor, owner: Tensor, graphs: int) -> Tensor:
    """Add up the rows of each graph's nodes: [graphs, columns]."""
    return values.new_zeros(graphs, values.shape[1]).index_add_(0, owner, values)


def _bounds(most: int) -> Tensor:
    """Return where boxes of degrees begin: two for each power of 2.

    Example:
        >>> _bounds(9).tolist()
        [0, 1, 2, 3, 4, 6, 8]
    """
    bounds, power = [0, 1], 2
    while power <= most:
        bounds += [power, power // 2 * 3]
        power *= 2
    return torch.tensor([bound for bound in bounds if bound <= most])
