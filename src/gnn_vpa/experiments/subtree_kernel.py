"""The Weisfeiler-Leman subtree kernel: how many nodes of the same colours two graphs have."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..graphs import GraphSet
from ..graphs.colours import refinements


def subtree_kernels(
    graphs: GraphSet, start: Tensor, iterations: int
) -> Iterator[NDArray[np.float64]]:
    """Yield the normalised kernel of 1, 2, ... iterations.

    With ``n_c(g)`` nodes of colour ``c`` in graph ``g`` after some rounds of refinement, the kernel
    is ``K(g, h) = sum_c n_c(g) n_c(h)``, added up over the rounds from 0 on, and divided by
    ``sqrt(K(g, g) K(h, h))``.

    Args:
        graphs: The data set.
        start: First colours, [N], any integers.
        iterations: The largest number of rounds.

    Example:
        >>> from torch_geometric.data import Data
        >>> pair, path = torch.tensor([[0, 1], [1, 0]]), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> made = [Data(edge_index=e, num_nodes=n, y=0) for e, n in ((pair, 2), (path, 3))]
        >>> (kernel,) = subtree_kernels(GraphSet.from_pyg(made), torch.zeros(5), iterations=1)
        >>> kernel.round(4).tolist()  # (2 * 3 + 2 * 2) / sqrt((4 + 4) * (9 + 5))
        [[1.0, 0.9449], [0.9449, 1.0]]
    """
    owner = torch.repeat_interleave(graphs.node_ptr.diff()).numpy()
    total = np.zeros((graphs.num_graphs, graphs.num_graphs))
    for done, colour in enumerate(refinements(graphs.rowptr, graphs.col, start, iterations)):
        total += _products(owner, colour.numpy(), graphs.num_graphs)
        if done > 0:
            size = np.sqrt(total.diagonal())
            size[size == 0] = 1.0  # a graph without nodes resembles none
            yield total / size[:, None] / size


def _products(
    owner: NDArray[np.int64], colour: NDArray[np.int64], graphs: int
) -> NDArray[np.float64]:
    from scipy.sparse import csr_array

    colours = int(colour.max()) + 1 if len(colour) else 1
    ones = np.ones(len(colour))
    counts = csr_array((ones, (owner, colour)), shape=(graphs, colours))
    products: NDArray[np.float64] = (counts @ counts.T).toarray()
    return products
