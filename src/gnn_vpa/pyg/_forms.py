"""The variance-preserving forms: what each kind of layer becomes, to be mixed in before it."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch_geometric.typing import Adj, Size

from ..aggregations import aggregation
from ..errors import UsageError
from ..ops import Graph
from ..ops.internal import power_sum
from ._along import Edges, aggregate
from ._norm import vp_gcn_norm, vp_softmax
from ._propagate import VPMessagePassing
from ._rebind import reads, rebound, same_code
from ._small import Small
from ._traced import Traced
from ._types import OptInt, OptTensor


class VPSum(VPMessagePassing):
    """A sum or mean of messages, as ``sum / sqrt(N)``; its ``aggr_module`` is a VPAggregation."""

    _takes_small = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Let a layer that adds each node to its sum, as GIN does, do both at once."""
        super().__init_subclass__(**kwargs)
        if cls._linear and same_code(cls.forward, _gin):
            cls.forward = _gin_at_once(cls.forward)

    def _fused(self, source: Tensor, graph: Edges, kwargs: dict[str, Any]) -> Tensor:
        exponent = aggregation(self.aggr).exponent
        if exponent is not None:
            if not isinstance(graph, Graph):
                return graph.sum(source, exponent)
            out = power_sum(source, graph, exponent)
            if out is not None:
                return out
        return aggregate(source, graph, self.aggr)


class VPWeightedSum(VPMessagePassing):
    """A sum or mean of messages times ``edge_weight``, as ``sum / sqrt(sum w^2)``."""

    _takes_small = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Let the aggregation see the weights."""

        def aggregate(
            self: VPWeightedSum,
            inputs: Tensor,
            index: Tensor,
            ptr: OptTensor = None,
            dim_size: OptInt = None,
            edge_weight: OptTensor = None,
        ) -> Tensor:
            if edge_weight is not None and edge_weight.dim() == 2 and edge_weight.shape[1] == 1:
                edge_weight = edge_weight.squeeze(1)
            out: Tensor = self.aggr_module(
                inputs, index, ptr, dim_size, self.node_dim, weight=edge_weight
            )
            return out

        # PyG wants an argument of two steps to have the same type in both.
        declared = inspect.signature(cls.message).parameters["edge_weight"].annotation
        aggregate.__annotations__["edge_weight"] = declared
        linear = cls._linear
        cls.aggregate = aggregate
        super().__init_subclass__(**kwargs)
        cls._linear = linear

    def _fused(self, source: Tensor, graph: Edges, kwargs: dict[str, Any]) -> Tensor:
        weight = kwargs.get("edge_weight")
        weight = None if weight is None else weight.view(-1)
        return aggregate(source, graph, self.aggr, weight)


class VPWeights(VPMessagePassing):
    """A layer that sums with weights of its own; another aggregation would scale twice."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("aggr", "sum") not in ("add", "sum"):
            raise UsageError(
                f"aggr: {kwargs['aggr']!r} is not for {type(self).__name__}, which sums with "
                "weights that preserve the variance already. Leave aggr out."
            )
        super().__init__(*args, **kwargs)


class VPNormalised(VPWeights):
    """A layer that normalises by degree, with fourth roots in the place of square roots."""

    _takes_small = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Let ``forward`` call ``vp_gcn_norm`` where it calls ``gcn_norm``."""
        super().__init_subclass__(**kwargs)
        if "forward" not in vars(cls):
            cls.forward = rebound(cls.forward, gcn_norm=vp_gcn_norm)

    def _fused(self, source: Tensor, graph: Edges, kwargs: dict[str, Any]) -> Tensor:
        weight = kwargs["edge_weight"]
        return aggregate(source, graph, "sum", None if weight is None else weight.view(-1))


class VPSoftmax(VPMessagePassing):
    """A layer with attention inside its message, whose weights are divided by their norm."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Let the message call ``vp_softmax`` where it calls ``softmax``."""
        for name in ("message", "get_attention"):
            step = getattr(cls, name, None)
            if name not in vars(cls) and step is not None and reads(step, "softmax"):
                setattr(cls, name, rebound(step, softmax=vp_softmax))
        super().__init_subclass__(**kwargs)


def _gin(self, x, edge_index, size=None):  # type: ignore[no-untyped-def]  # as PyG has it
    if isinstance(x, Tensor):
        x = (x, x)

    # propagate_type: (x: OptPairTensor)
    out = self.propagate(edge_index, x=x, size=size)

    x_r = x[1]
    if x_r is not None:
        out = out + (1 + self.eps) * x_r

    return self.nn(out)


def _gin_at_once(forward: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def at_once(self: VPSum, x: Any, edge_index: Adj, size: Size = None) -> Tensor:
        """Run the layer, with the arguments of the PyG layer it stands for."""
        exponent = aggregation(self.aggr).exponent
        fits = type(x) is Tensor and exponent is not None
        ends = self._plain_ends(edge_index, size, x) if fits else None
        if ends is None or exponent is None:
            return forward(self, x, edge_index, size)
        return self.nn(_with_own(self, *ends, exponent))  # type: ignore[no-any-return]

    return at_once


def _with_own(layer: VPSum, x: Tensor, graph: Edges, exponent: float) -> Tensor:
    """Return ``(1 + eps) * x_i + N_i^(-exponent) * sum_j x_j``."""
    eps = layer.eps
    if isinstance(graph, Graph):
        # Of a GPU's number one would have to wait.
        is_readable = x.device.type == "cpu" and not torch.compiler.is_compiling()
        if is_readable and not eps.requires_grad:
            out = power_sum(x, graph, exponent, own=1 + float(eps))
            if out is not None:
                return out
    if isinstance(graph, Small):
        return graph.sum_keeping(x, exponent, eps)
    own: Tensor = (1 + eps) * x
    if isinstance(graph, Traced) and not eps.requires_grad:
        return graph.sum_keeping(x, exponent) + own
    return layer._fused(x, graph, {}) + own
