"""Simple graph convolution (Wu et al., 2019), plain and variance-preserving."""

from functools import partial
from typing import get_args

from torch import Tensor, nn

from ..ops import Graph
from ._bias_relu import bias_relu
from ._blocks import Blocks
from ._checks import check_counts, checked_choice
from ._heads import MLPHead
from ._layers import Layers
from ._linear import Linear
from ._message import Scaled, aggregate
from ._model import Model, Readout
from ._self_loops import Looped, with_self_loops
from .gat import Attention


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
    has p = 1/4 and reads out by vpa. The head is GCN's.

    Args:
        in_channels: Number of node features.
        num_classes: Number of classes of graphs.
        aggr: ``"default"`` or ``"vpa"``.
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
        super().__init__(in_channels, width, depth=1)
        check_counts(K=K)
        self.aggr: Attention = checked_choice("aggr", aggr, get_args(Attention))
        self.K = K
        self.conv = _SGConv(in_channels, width)
        self.head = MLPHead(width, hidden, num_classes, dropout)

    def propagate(self, x: Tensor, graph: Graph | Tensor | Looped) -> Tensor:
        """Return ``P^K x``, ``[nodes, in_channels]``: ``forward`` takes it with ``graph=None``.

        Args:
            x: Features ``[nodes, in_channels]``, or the codes ``[nodes]`` of one-hot features.
            graph: The graph; it gets self-loops if not ``Looped``.

        Example:
            >>> import torch
            >>> pair = torch.tensor([[0, 1], [1, 0]])
            >>> SGC(1, 2, "default").propagate(torch.tensor([[1.0], [3.0]]), pair)
            tensor([[2.0000],
                    [2.0000]])
        """
        return self._hops(self._checked(x, written_out=True), graph)

    def _row_parameters(self, graph: Layers | None) -> dict[str, int]:
        last = 0 if graph is None else len(graph.hops)
        return {"conv.lin.weight": 0, "conv.lin.bias": last}

    def _hops(self, x: Tensor, graph: Graph | Tensor | Looped | None) -> Tensor:
        if graph is None:
            return x
        graph = with_self_loops(graph, x.shape[0]).graph
        scale = graph.scale("vpa", x.dtype)  # d^(-1/2); 0 where there is no node, nor a self-loop
        if self.aggr == "vpa":
            scale = scale.sqrt()
        for _ in range(self.K):
            x = aggregate(scale * x, Scaled(graph, scale.squeeze(1)), "sum")
        return x

    def forward(
        self,
        x: Tensor,
        graph: Graph | Tensor | Looped | Layers | None,
        readout: Readout,
        nodes: Tensor | Blocks | None = None,
        uniform: Tensor | None = None,
    ) -> Tensor:
        """Return scores ``[graphs, num_classes]``; without ``graph``, ``x`` is ``P^K x``."""
        x = self._checked(x, nodes)
        if isinstance(graph, Layers):
            x = self.conv.lin(x, bias=False)
            for hop in graph.hops:
                x = hop.with_self("sum")(x)
            x = bias_relu(x, self.conv.lin.bias)
        else:
            x = self.conv.lin(x, partial(self._hops, graph=graph)).relu()
        return self._scores([x], readout, "vpa" if self.aggr == "vpa" else "sum", uniform)
