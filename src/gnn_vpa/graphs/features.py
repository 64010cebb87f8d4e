"""Node features, held so that one-hot columns are never written out."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from ..errors import UsageError

if TYPE_CHECKING:
    from .graphset import GraphSet

FeatureKind = Literal["auto", "ones", "degree", "labels"]


@dataclass(frozen=True, eq=False)
class Features:
    """Node features x = [dense | one_hot(codes)], of shape [N, width].

    A Linear layer on them needs no x: with its weight W = [W_dense | W_codes] it is
    `dense @ W_dense.T + W_codes.T[codes]`, a lookup of rows.

    Attributes:
        num_codes: Number of one-hot columns, 0 without codes.
        codes: Which one-hot column is 1: [N], int64, or None.
        dense: The columns in front: [N, A], or None.

    Example:
        >>> dense = torch.tensor([[0.5], [4.0]])
        >>> x = Features(num_codes=3, codes=torch.tensor([2, 0]), dense=dense)
        >>> x.width
        4
        >>> x.matrix()
        tensor([[0.5000, 0.0000, 0.0000, 1.0000],
                [4.0000, 1.0000, 0.0000, 0.0000]])
    """

    num_codes: int = 0
    codes: Tensor | None = None
    dense: Tensor | None = None

    @property
    def width(self) -> int:
        """Number of columns of the matrix."""
        return self.num_codes + (0 if self.dense is None else self.dense.size(1))

    def matrix(self, nodes: Tensor | slice = slice(None)) -> Tensor:
        """Return x for some of the nodes, or for all: [nodes, width], float32.

        Example:
            >>> Features(num_codes=2, codes=torch.tensor([1, 0, 1])).matrix(slice(1, 3))
            tensor([[1., 0.],
                    [0., 1.]])
        """
        columns = [] if self.dense is None else [self.dense[nodes].float()]
        if self.codes is not None:
            columns.append(one_hot(self.codes[nodes], self.num_codes).float())
        return torch.cat(columns, dim=1)


def features(graphs: "GraphSet", kind: FeatureKind = "auto") -> Features:
    """Return the node features of a data set.

    Args:
        graphs: The data set.
        kind: `labels`: node attributes, then node labels one-hot. `ones`: a single 1.
            `degree`: the in-degree, one-hot over the degrees that occur in the data set.
            `auto`: labels and attributes where there are any, else ones.

    Example:
        >>> from gnn_vpa.graphs import GraphSet
        >>> from torch_geometric.data import Data
        >>> star = Data(edge_index=torch.tensor([[1, 2, 3], [0, 0, 0]]), num_nodes=4, y=0)
        >>> x = features(GraphSet.from_pyg([star]), "degree")
        >>> x.codes, x.width  # degrees 0 and 3 occur
        (tensor([1, 0, 0, 0]), 2)
    """
    if kind not in get_args(FeatureKind):
        raise UsageError(f"unknown features {kind!r}: use {', '.join(get_args(FeatureKind))}")
    if kind == "degree":
        occurring, codes = np.unique(graphs.degree().numpy(), return_inverse=True)
        return Features(num_codes=len(occurring), codes=torch.from_numpy(codes))
    own = graphs.own_features
    if kind == "ones" or (kind == "auto" and own is None):
        return Features(num_codes=1, codes=torch.zeros(graphs.num_nodes, dtype=torch.int64))
    if own is None:
        raise UsageError(
            f"{graphs.name} has neither node labels nor attributes: use features 'ones' or 'degree'"
        )
    return own


def label_features(labels: Tensor | None, attributes: Tensor | None) -> Features | None:
    """Return attributes, then labels [N, columns] one-hot; None where there is neither."""
    if labels is None:
        return None if attributes is None else Features(dense=attributes)
    widths = [int(column.max()) + 1 if len(column) else 0 for column in labels.T]
    if len(widths) == 1:
        return Features(num_codes=widths[0], codes=labels[:, 0], dense=attributes)
    # Several labels a node are rare and narrow: written out, so that codes stay one a node.
    parts = [] if attributes is None else [attributes]
    parts += [one_hot(x, width).float() for x, width in zip(labels.T, widths, strict=True)]
    return Features(dense=torch.cat(parts, dim=1))
