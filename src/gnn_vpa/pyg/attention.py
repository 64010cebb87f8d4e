"""Variance-preserving graph attention: drop-ins for GATConv and GATv2Conv."""

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch_geometric.nn import GATConv, GATv2Conv
from torch_geometric.typing import Adj, Size
from torch_geometric.utils import is_torch_sparse_tensor

from ..ops import Graph, aggregate
from ..ops.internal import attend_by_parts, attend_by_vectors, is_on_host, is_untraced
from ._aggregation import VPAggregation
from ._along import Edges
from ._edges import plain_edges
from ._forms import VPWeights
from ._loops import append_self_loops, counting, keep_self_loops, no_self_loops
from ._memory import add_self_loops, remove_self_loops
from ._propagate import VPMessagePassing
from ._rebind import rebound
from ._small import Small, may_be_small
from ._types import OptInt, OptTensor


class Parts(NamedTuple):
    """Attention that is still in parts: ``leaky_relu(source_j + target_i)``."""

    source: Tensor
    target: Tensor
    slope: float
    times: Tensor | None


class Score:
    """``(x * vector).sum(-1)``, which is left to whoever attends; ``vector`` is ``[1, H, F]``."""

    def __init__(self, vector: Tensor) -> None:
        self.vector = vector
        self.x: Tensor | None = None

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> "Score":
        x, score = args  # of the product, the only function of PyTorch that is called with it
        assert function in (Tensor.mul, Tensor.__mul__)
        score.x = x
        return score  # type: ignore[no-any-return]

    def sum(self, dim: int) -> "Score":
        """Stand for the sum over features."""
        assert dim == -1
        return self


class Scores(NamedTuple):
    """Attention that is still ``leaky_relu(<x_j, source> + <x_i, target>)``, and asks for loops."""

    source: Score
    target: Score
    slope: float
    has_loops: bool

    def attend(self, x: Tensor, graph: Graph | Small, normed: bool) -> Tensor:
        """Attend along edges between the nodes of ``x``, ``[num_nodes, heads, features]``."""
        assert x is self.source.x is self.target.x
        vectors = self.source.vector, self.target.vector
        if isinstance(graph, Small):
            assert normed
            if all(vector.dtype == x.dtype for vector in vectors):
                return graph.attend_by_vectors(x, *vectors, self.slope, self.has_loops)
            graph = graph.grouped(len(x))
        edges = graph.with_loops if self.has_loops else graph
        return attend_by_vectors(x, edges, *vectors, self.slope, normed=normed)


class VPAttention(VPWeights):
    """Attention divided by ``sqrt(sum_j c_ij^2)`` over the weights used, after dropout."""

    normalizer_grad: bool = False
    _linear = _takes_small = True
    _forward: ClassVar[Callable[..., Any]]  # the parent's
    _in_parts: ClassVar[Callable[..., Any]]  # … which leaves the attention to ``propagate``
    _traceable: ClassVar[Callable[..., Any]]  # … and lets self-loops that are there stay
    _at_once: ClassVar[Callable[..., Any] | None]  # … and leaves loops and products to it as well

    def __init__(self, *args: Any, normalizer_grad: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.normalizer_grad = normalizer_grad

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Let the parent's ``forward`` remember the edges to which it added self-loops."""
        super().__init_subclass__(**kwargs)
        cls._forward = rebound(
            super().forward, add_self_loops=add_self_loops, remove_self_loops=remove_self_loops
        )
        cls._in_parts = rebound(cls._forward, {"edge_updater": "_parts"})
        cls._traceable = rebound(
            cls._in_parts, add_self_loops=append_self_loops, remove_self_loops=keep_self_loops
        )
        cls._at_once = None
        if super().forward is GATConv.forward:  # and not that of a class in between
            names = {"edge_updater": "_scores", "att_src": "_source_score"}
            cls._at_once = rebound(
                GATConv.forward,
                {**names, "att_dst": "_target_score"},
                add_self_loops=no_self_loops,
                remove_self_loops=keep_self_loops,
            )

    def forward(self, x: Any, edge_index: Adj, *args: Any, **kwargs: Any) -> Any:
        """Run the layer, with the arguments of the PyG layer it stands for."""
        forward = self._forward
        if self._keeps_parts(x, edge_index, *args, *kwargs.values()):
            forward = self._traceable if torch.compiler.is_compiling() else self._in_parts
        if not is_torch_sparse_tensor(edge_index) or edge_index.dense_dim() > 0:
            return forward(x, edge_index, *args, **kwargs)
        call = inspect.signature(forward).bind(x, edge_index, *args, **kwargs)
        if self._loses_edges(
            edge_index, call.arguments.get("return_attention_weights") is not None
        ):
            if "size" in call.signature.parameters and call.arguments.get("size") is None:
                call.arguments["size"] = (edge_index.size(1), edge_index.size(0))
            call.arguments["edge_index"], _ = plain_edges(edge_index)
        return forward(*call.args, **call.kwargs)

    def _keeps_parts(self, x: Any, edge_index: Adj, *others: Any) -> bool:
        """Say whether the attention of edges is seen by nobody: then it need not be made."""
        return False

    def _loses_edges(self, edge_index: Tensor, asked: bool) -> bool:
        """Tell whether PyG would refuse a sparse matrix, or lose its parallel edges.

        A matrix that PyG can serve stays one if its attention weights are asked for: they are
        returned in its form.
        """
        if self.flow != "source_to_target":
            return False
        if not asked:
            return True
        if edge_index.layout == torch.sparse_csr:
            # To add self-loops, PyG makes a matrix anew: of parallel edges it keeps one.
            return bool(getattr(self, "add_self_loops", False)) and _has_parallel(edge_index)
        return edge_index.layout != torch.sparse_coo or not edge_index.is_coalesced()

    def aggregate(
        self,
        inputs: Tensor,
        index: Tensor,
        alpha: Tensor,
        ptr: OptTensor = None,
        dim_size: OptInt = None,
    ) -> Tensor:
        """Sum messages that are multiplied by ``alpha``, and divide by the norm of ``alpha``."""
        weight = alpha if self.normalizer_grad else alpha.detach()
        out: Tensor = VPAggregation()(inputs, index, None, dim_size, self.node_dim, weight=weight)
        return out

    def _fused(self, source: Tensor, graph: Edges, kwargs: dict[str, Any]) -> Tensor:
        alpha = kwargs["alpha"]
        if isinstance(alpha, Scores):
            assert isinstance(graph, Graph | Small)
            return alpha.attend(source, graph, normed=True)
        if not isinstance(graph, Graph):
            if isinstance(alpha, Parts):
                return graph.attend_by_parts(source, *alpha)
            if isinstance(alpha, Tensor) and not self.normalizer_grad:
                return graph.attend(source, alpha)
            graph = graph.grouped(len(source))
        if isinstance(alpha, Parts):
            return attend_by_parts(source, graph, *alpha)
        return aggregate(source, graph, weight=alpha, normalizer_grad=self.normalizer_grad)


class VPGATConv(VPAttention, GATConv):  # type: ignore[misc]
    r"""Variance-preserving graph attention, a drop-in for PyG's ``GATConv``.

    With the parent's attention weights ``c_ij`` and values ``z_j``,

        ``out_i = sum_j c_ij z_j / sqrt(sum_j c_ij^2)``

    per head, then the parent's concatenation or mean of heads, residual and bias. The normaliser
    is over the weights actually used (after dropout), and takes no gradient unless asked to. With
    one neighbour it is the parent; with uniform attention it is ``sum / sqrt(N)``.

    Every argument of the parent is accepted, and a state dict of the parent loads.

    Args:
        *args: Those of ``GATConv``.
        normalizer_grad: Whether gradients flow through the normaliser; not in the paper.
        **kwargs: Those of ``GATConv``.

    Example:
        >>> conv = VPGATConv(8, 16, heads=4, edge_dim=3, residual=True)
        >>> conv
        VPGATConv(8, 16, heads=4)
        >>> x, edge_index = torch.ones(3, 8), torch.tensor([[0, 1], [1, 2]])
        >>> conv(x, edge_index, edge_attr=torch.ones(2, 3)).shape
        torch.Size([3, 64])
    """

    def forward(self, x: Any, edge_index: Adj, *args: Any, **kwargs: Any) -> Any:
        """Run the layer, with the arguments of the PyG layer it stands for."""
        if self._at_once is not None and type(x) is Tensor and self.lin is not None:
            on_host = type(edge_index) is Tensor and is_on_host(edge_index) and is_on_host(x)
            width = self.heads * self.out_channels
            fits = on_host or (is_untraced(x) and may_be_small(edge_index, width))
            if fits and self._keeps_parts(x, edge_index, *args, *kwargs.values()):
                return self._at_once(x, edge_index)
        return super().forward(x, edge_index, *args, **kwargs)

    @property
    def _source_score(self) -> Score:
        return Score(self.att_src)

    @property
    def _target_score(self) -> Score:
        return Score(self.att_dst)

    def _scores(
        self, edge_index: Tensor, alpha: tuple[Score, Score], edge_attr: None, size: None
    ) -> Scores:
        """Stand for ``edge_updater`` where the attention of edges is left to ``propagate``."""
        return Scores(*alpha, self.negative_slope, self.add_self_loops)

    def _keeps_parts(self, x: Any, edge_index: Adj, *others: Any) -> bool:
        return (
            type(edge_index) is Tensor
            and all(other is None for other in others)
            and (isinstance(x, Tensor) or x[1] is not None)
            and self.flow == "source_to_target"
            and not (self.normalizer_grad or (self.training and self.dropout > 0))
            and not (self._edge_update_forward_hooks or self._edge_update_forward_pre_hooks)
            and self._unwatched(None)
            and type(self).edge_update is GATConv.edge_update
            and type(self).edge_updater is VPMessagePassing.edge_updater
            and "edge_updater" not in vars(self)
            and (
                torch.compiler.is_compiling()
                or edge_index.device.type == "cpu"
                or may_be_small(edge_index, self.heads * self.out_channels)
            )
        )

    def _parts(
        self, edge_index: Tensor, alpha: tuple[Tensor, Tensor], edge_attr: None, size: Size
    ) -> Parts:
        """Stand for ``edge_updater`` where the attention of edges is left to ``propagate``."""
        source, target = alpha
        times = None
        if torch.compiler.is_compiling() and self.add_self_loops:
            # Self-loops that were there are still there, in front of those that were added.
            num_loops = min(len(source), len(target)) if size is None else min(size)
            times = counting(edge_index, num_loops)
        return Parts(source, target, self.negative_slope, times)


class VPGATv2Conv(VPAttention, GATv2Conv):  # type: ignore[misc]
    r"""Variance-preserving dynamic attention, a drop-in for PyG's ``GATv2Conv``.

    ``out_i = sum_j c_ij z_j / sqrt(sum_j c_ij^2)`` per head, with the parent's ``c_ij`` and
    ``z_j``; see ``VPGATConv``.

    Args:
        *args: Those of ``GATv2Conv``.
        normalizer_grad: Whether gradients flow through the normaliser; not in the paper.
        **kwargs: Those of ``GATv2Conv``.

    Example:
        >>> conv = VPGATv2Conv(8, 16, heads=2, share_weights=True)
        >>> conv(torch.ones(3, 8), torch.tensor([[0, 1], [1, 2]])).shape
        torch.Size([3, 32])
    """


def _has_parallel(adj_t: Tensor) -> bool:
    """Tell whether a sparse matrix has several values at one place."""
    edges, _ = plain_edges(adj_t)
    different: int = torch.unique(edges, dim=1).shape[1]
    return different < edges.shape[1]
