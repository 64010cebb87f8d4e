"""A model in its variance-preserving form."""

import warnings
from collections.abc import Collection, Iterator
from copy import deepcopy
from typing import TypeVar

from torch import Tensor, nn
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.aggr import Aggregation

from ..errors import UsageError
from ._aggregation import VPAggregation, linear_aggregation
from ._functional import functional_pools
from ._report import Change, ConversionReport
from ._rules import form_of, form_of_aggregation, reason_for_module
from ._trained import signs_of_training
from ._variants import become, is_sum

Model = TypeVar("Model", bound=nn.Module)


def convert(
    model: Model, *, include: Collection[type] = (), aggr: str = "vpa"
) -> tuple[Model, ConversionReport]:
    """Return a copy of a model in variance-preserving form, and a report of what changed.

    Every aggregation, attention, degree normalisation and pooling module that has a
    variance-preserving form takes it: ``GATConv`` becomes ``VPGATConv``, a ``GINConv`` that sums
    becomes a subclass that divides by ``sqrt(N)``, a ``SumAggregation`` a ``VPAggregation``.
    Weights, hooks, modes and sharing are kept. What has no such form is left, and the report says
    why; a pooling function called within ``forward`` cannot be changed from outside, and is named.

    TorchScript (``torch.jit.script``, ``torch.jit.trace``) is not supported by what is converted,
    and refused where it is tried: use ``torch.compile``, or ``torch.export`` for a program to keep.

    The converted model computes something else, so it is to be trained. Where the given one has
    been trained already, a warning says so: its weights fit what it computed before.

    Args:
        model: Any module; a layer or an aggregation by itself too. It is not touched.
        include: Classes to convert where caution would leave them: layers of your own that look
            as if they normalised, layers that take the maximum, ``MaxAggregation``.
        aggr: Another linear aggregation in the place of vpa, such as ``"power(0.3)"``: sums and
            means take it. Attention and degree normalisations have no form but vpa's, and are left.

    Returns:
        The converted model and a ``ConversionReport``.

    Example:
        >>> from torch_geometric.nn import GCN
        >>> model, report = convert(GCN(8, 16, num_layers=2))
        >>> print(report)
        2 changed, 0 left
          changed  convs.0  GCNConv -> VPGCNConv
          changed  convs.1  GCNConv -> VPGCNConv
        The model computes something else now: train it.
    """
    converted, report = convert_quietly(model, include, aggr)
    if report.changed and report.signs:
        warnings.warn(report.advice, stacklevel=2)
    return converted, report


def convert_quietly(
    model: Model, include: Collection[type] = (), aggr: str = "vpa"
) -> tuple[Model, ConversionReport]:
    """Do what ``convert`` does, without a warning."""
    if not isinstance(model, nn.Module):
        raise UsageError(
            f"model: expected a torch.nn.Module, got {type(model).__name__}. "
            "Pass the model itself, not its class or its output."
        )
    if not all(isinstance(cls, type) for cls in include):
        raise UsageError("include: expected classes, such as [MyConv].")
    aggr = linear_aggregation(aggr).aggr if aggr != "vpa" else aggr
    converted = _copy(model)
    signs = tuple(signs_of_training(model))
    return converted, ConversionReport(tuple(_entries(converted, include, aggr)), signs)


def converted_in_place(layer: MessagePassing, include: Collection[type], aggr: str) -> str | None:
    """Give a layer its form, or return the reason why it is left."""
    form = form_of(layer, include)
    if isinstance(form, str):
        return form
    if aggr != "vpa" and not is_sum(form):
        return f"has no form with {aggr}: vpa is the only one"
    become(layer, form, aggr)
    return None


def _called(name: str, aggr: str) -> str:
    return name if aggr == "vpa" else f"{name} with {aggr}"


def _copy(model: Model) -> Model:
    """Return a deep copy, also of a model that keeps results of its last call."""
    values = (value for module in model.modules() for value in vars(module).values())
    parts = (part for v in values for part in (v if isinstance(v, tuple | list) else (v,)))
    results = [part for part in parts if isinstance(part, Tensor) and not part.is_leaf]
    return deepcopy(model, {id(result): result.detach().clone() for result in results})


def _entries(model: nn.Module, include: Collection[type], aggr: str) -> Iterator[Change]:
    owned: set[nn.Module] = set()  # an aggregation's parts, and a layer's aggregation
    for path, module in list(model.named_modules()):
        if module in owned:
            continue
        before, pools = type(module).__name__, list(functional_pools(module))
        reason: str | None
        if isinstance(module, MessagePassing):
            if module.aggr_module is not None:
                owned.update(module.aggr_module.modules())
            reason = converted_in_place(module, include, aggr)
            if reason is None:
                yield Change(path, before, _called(type(module).__name__, aggr))
            else:
                yield Change(path, before, reason=reason)
        elif isinstance(module, Aggregation):
            owned.update(module.modules())
            reason = form_of_aggregation(module, include)
            if isinstance(module, VPAggregation):
                reason = "preserves the variance already"
            if reason is None:
                fresh = linear_aggregation(aggr)
                module.__class__ = type(fresh)
                vars(module).update(vars(fresh))
                yield Change(path, before, _called(type(fresh).__name__, aggr))
            else:
                yield Change(path, before, reason=reason)
        else:
            reason = reason_for_module(module)
            if reason is not None:
                yield Change(path, before, reason=reason)
        for function, place in pools:
            advice = "write global_vpa_pool(x, batch) there to preserve the variance"
            yield Change(path, function, reason=f"called at {place}; {advice}")
