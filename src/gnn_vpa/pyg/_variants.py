"""Variance-preserving subclasses of layers, made when a model is converted."""

import copyreg
from functools import cache
from typing import Any

from torch import Tensor
from torch_geometric.nn import MessagePassing

from ._aggregation import linear_aggregation
from ._forms import VPSum, VPWeightedSum
from ._propagate import VPMessagePassing
from ._rebind import same_code

Form = type[VPMessagePassing]


class _Variant(type):
    """The type of the classes made here: pickle finds no name to import, so it makes them again."""

    _made_of: tuple[type[MessagePassing], Form]


@cache
def variant(parent: Any, form: Any) -> Any:
    """Return the class ``VP<parent>``: ``form`` mixed in before ``parent``, made once."""
    if issubclass(form, parent):
        return form
    scope = {
        "__module__": __name__,
        "__doc__": f"The variance-preserving form of ``{parent.__name__}``.",
        "_linear": form._linear or _is_linear(parent),
        "_made_of": (parent, form),
    }
    return _Variant(f"VP{parent.__name__}", (form, parent), scope)


copyreg.pickle(_Variant, lambda made: (variant, made._made_of))


def is_sum(form: Form) -> bool:
    """Say whether a form aggregates by its ``aggr_module``, and has no weights of its own."""
    return issubclass(form, VPSum | VPWeightedSum)


def become(module: MessagePassing, form: Form, aggr: str = "vpa") -> None:
    """Turn a layer into its variance-preserving form, in place: whoever holds it holds the form."""
    cls = variant(type(module), form)  # type: ignore[arg-type]
    sums = is_sum(form)
    fresh = cls.__new__(cls)
    aggregates = linear_aggregation(aggr) if sums else "sum"
    MessagePassing.__init__(fresh, aggregates, node_dim=module.node_dim)
    fresh.explain = module.explain
    module.__class__ = cls
    module.aggr, module.aggr_module = aggr if sums else "sum", fresh.aggr_module
    for name in ("inspector", "fuse", "_user_args", "_fused_user_args", "_edge_user_args"):
        setattr(module, name, getattr(fresh, name))
    vars(module).pop("propagate", None)  # PyG binds that of the former class to some instances
    for name in vars(module):
        if name.startswith("_cached_"):
            setattr(module, name, None)


def _is_linear(cls: type[MessagePassing]) -> bool:
    """Tell whether the message is the source's feature times ``edge_weight``, if it takes any.

    Read from its code: a version of PyG that changes a message must not be computed as if it had
    not.
    """
    known = (_feature, _weighted_feature, _feature_maybe_weighted)
    is_known = any(same_code(cls.message, like) for like in known)
    return cls.update is MessagePassing.update and is_known


def _feature(self: MessagePassing, x_j: Tensor) -> Tensor:
    return x_j


def _weighted_feature(self: MessagePassing, x_j: Tensor, edge_weight: Tensor) -> Tensor:
    return edge_weight.view(-1, 1) * x_j


def _feature_maybe_weighted(self: MessagePassing, x_j: Tensor, edge_weight: Tensor) -> Tensor:
    return x_j if edge_weight is None else edge_weight.view(-1, 1) * x_j
