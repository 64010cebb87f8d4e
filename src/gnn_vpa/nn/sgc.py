"""Simple graph convolution (Wu et al., 2019), plain and variance-preserving."""

from functools import partial
from typing import ClassVar

from torch import Tensor, nn

from ..aggregations import Aggregation, aggregation
from ._bias_relu import bias_relu
from ._checks import check_counts, check_input, one_hot
from ._heads import MLPHead
from ._lane_rows import LaneRows
from ._level_batch import LevelBatch
from ._linear import Linear
from ._model import Model
from ._self_loops import with_self_loops
from ._terms import LayerTerms
from ._weighted_graph import GraphLike, WeightedGraph, aggregate
from .gat import takes_coefficients


class _SGConv(nn.Module):
    """The weights of the layer, ``W x + b``."""

    def __init__(self, in_channels: int, width: int) -> None:
        super().__init__()
        self.lin = Linear(in_channels, width)
        self.lin.reset_parameters()  # PyG's layer draws twice: the same seed, the same weights


class SGC(Model):
    r"""SGC: ``h_i = relu(W (P^K x)_i + b)``, a readout and an MLP.

    ``(P x)_i = sum_j (d_i d_j)^(-p) x_j`` over neighbours and the node itself, with the degree
    ``d`` counting the node itself too. ``"default"`` has p = 1/2 and reads out by sum; ``"vpa"``
    has p = 1/4 and reads out by vpa; ``"power(q)"`` has p = q/2. The head is GCN's.

    Args:
        in_channels: Number of node features.
        num_classes: Number of classes of graphs.
        aggr: ``"default"``, ``"vpa"`` or ``"power(p)"``.
        K: Number of hops.
        width: Width of the layer.
        dropout: Probability of dropping a pooled feature.
        hidden: Width of the MLP's hidden layer.

    Example:
        The propagation has no weights, so a data set needs it once.

        >>> import torch
        >>> model = SGC(in_channels=7, num_classes=2, aggr="vpa", K=5).eval()
        >>> x, batch = torch.randn(5, 7), torch.tensor([0, 0, 1, 1, 1])
        >>> edge_index = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
        >>> propagated = model.propagate(x, edge_index)
        >>> torch.allclose(model(propagated, None, batch), model(x, edge_index, batch))
        True
    """

    name = "sgc"
    mixes = "propagation"
    variants: ClassVar = {"printed": {"K": 5}}

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        aggr: str = "vpa",
        *,
        K: int = 1,
        width: int = 64,
        dropout: float = 0.5,
        hidden: int = 128,
    ) -> None:
        super().__init__(in_channels, width, 1, aggr)
        check_counts(K=K)
        self.K = K
        self.conv = _SGConv(in_channels, width)
        self.head = MLPHead(width, hidden, num_classes, dropout)

    @classmethod
    def takes(cls, entry: Aggregation) -> bool:
        """Say whether the model has an aggregation.

        Example:
            >>> SGC.takes(aggregation("default")), SGC.takes(aggregation("max"))
            (True, False)
        """
        return takes_coefficients(entry)

    @property
    def exponent(self) -> float:
        """``p`` of a hop's coefficients ``(d_i d_j)^(-p)``.

        Example:
            >>> SGC(7, 2, "default").exponent, SGC(7, 2, "vpa").exponent
            (0.5, 0.25)
        """
        exponent = aggregation(self.aggr).exponent
        return 0.5 if exponent is None else exponent / 2

    @property
    def rounds(self) -> int:
        """Rounds of 1-WL that know all that the model can know of a node.

        The last hop sees its neighbours' degrees, one round further.

        Example:
            >>> SGC(7, 2, K=2).rounds
            3
        """
        return self.K + 1

    def propagate(self, x: Tensor, graph: GraphLike) -> Tensor:
        """Return ``P^K x``, ``[nodes, in_channels]``: ``forward`` takes it with ``graph=None``.

        Args:
            x: Features ``[nodes, in_channels]``, or the codes ``[nodes]`` of one-hot features.
            graph: The graph; it gets self-loops if it has none.

        Example:
            >>> import torch
            >>> pair = torch.tensor([[0, 1], [1, 0]])
            >>> SGC(1, 2, "default").propagate(torch.tensor([[1.0], [3.0]]), pair)
            tensor([[2.0000],
                    [2.0000]])
        """
        check_input(x, self.in_channels)
        if not x.is_floating_point():
            x = one_hot(x, self.in_channels, next(self.parameters()).dtype)
        return self._hops(x, graph)

    def terms(self) -> list[LayerTerms]:
        """List what the layer adds up.

        Example:
            >>> SGC(7, 2).terms()[0].products[0][1]
            'propagation'
        """
        lin = self.conv.lin
        return [LayerTerms(lin, [(lin.weight, "propagation")], lin.bias)]

    def _row_parameters(self, batch: LevelBatch) -> dict[str, int]:
        return {"conv.lin.weight": 0, "conv.lin.bias": len(batch.hops)}

    def _hops(self, x: Tensor, graph: GraphLike | None) -> Tensor:
        if graph is None:
            return x
        looped = with_self_loops(graph, x.shape[0]).graph
        scale = looped.scale(self.exponent, x.dtype)  # 0 where there is no node, nor a self-loop
        for _ in range(self.K):
            x = aggregate(scale * x, WeightedGraph(looped, scale=scale.squeeze(1)), "sum")
        return x

    def forward(
        self,
        x: Tensor,
        graph: GraphLike | LevelBatch | None,
        readout: GraphLike | None = None,
        nodes: Tensor | LaneRows | None = None,
        uniform: Tensor | None = None,
    ) -> Tensor:
        """Return scores ``[graphs, num_classes]``; without ``graph``, ``x`` is ``P^K x``."""
        if not isinstance(graph, LevelBatch):
            batch = self._batch(None, readout, nodes, 1)
            x = self.conv.lin(self._checked(x, batch), partial(self._hops, graph=graph))
            return self._scores([x.relu()], batch, uniform)
        x = self.conv.lin(self._checked(x, graph), bias=False)
        for hop in graph.hops:
            x = hop.with_self(x, "sum")
        return self._scores([bias_relu(x, self.conv.lin.bias)], graph, uniform)
