"""Which layer takes which variance-preserving form, and why the others are left."""

import inspect
from collections.abc import Collection
from types import CodeType, FunctionType

import torch
from torch import nn
from torch_geometric.nn import MessagePassing, aggr, conv
from torch_geometric.nn.aggr import Aggregation

from ._aggregation import VPA, LinearAggregation, VPAggregation
from ._forms import VPNormalised, VPSum, VPWeightedSum
from ._propagate import VPMessagePassing
from ._table import RULES
from ._variants import Form

# Names by which a normalisation or an attention gives itself away.
_ARGUMENTS = {"alpha", "att", "attn", "attention", "coeff", "deg", "degree", "norm", "score"}
_FUNCTIONS = {"degree", "gcn_norm", "get_laplacian", "scatter_softmax", "softmax"}
_STEPS = ("message", "aggregate", "update", "edge_update")
_SUMS = (
    aggr.SumAggregation,
    aggr.MeanAggregation,
    aggr.VariancePreservingAggregation,
    VPAggregation,
    VPA,
    LinearAggregation,
)


def form_of(layer: MessagePassing, include: Collection[type]) -> Form | str:
    """Return the form that a layer takes, or the reason why it is left."""
    cls = type(layer)
    if issubclass(cls, VPMessagePassing):
        return "preserves the variance already"
    if type(cls) is not type:
        return f"its class is a {type(cls).__name__}, of which no variance-preserving class is made"
    known = next((base for base in cls.__mro__ if base in RULES), None)
    changed = [] if known is None else _changed_steps(cls, known)
    if known is None or (changed and RULES[known] in (VPSum, VPWeightedSum)):
        form = _guess(cls, include)
    elif changed:
        return f"changes {known.__name__}.{changed[0]}, so that its form may not be the right one"
    else:
        rule = RULES[known]
        form = rule(layer) if isinstance(rule, FunctionType) else rule  # type: ignore[assignment]
    if isinstance(form, str):
        return form
    return _fitting(layer, form, include)


def form_of_aggregation(module: Aggregation, include: Collection[type]) -> str | None:
    """Return the reason why an aggregation cannot be a VPAggregation, or None if it can."""
    if type(module) in _SUMS or type(module) in include:
        return None
    name = type(module).__name__
    if isinstance(module, aggr.MaxAggregation | aggr.MinAggregation):
        return f"an extremum is no rescaled sum; convert(model, include=[{name}]) replaces it"
    return f"{name} is no sum or mean"


def reason_for_module(module: nn.Module) -> str | None:
    """Return the reason why a module that is no MessagePassing is left, if it aggregates."""
    if isinstance(module, conv.HeteroConv) and module.aggr in ("sum", "mean"):
        return (
            f"takes the {module.aggr} over edge types in code of its own; its layers are converted"
        )
    if isinstance(module, torch.jit.ScriptModule):
        return "is compiled by TorchScript; convert the model before that"
    rule = RULES.get(type(module))
    return rule if isinstance(rule, str) else None


def _fitting(layer: MessagePassing, form: Form, include: Collection[type]) -> Form | str:
    """Return ``form`` if the layer aggregates in a way that it can replace."""
    module = layer.aggr_module
    if module is None:
        return "aggregates in code of its own"
    if issubclass(form, VPSum | VPWeightedSum):
        reason = None if type(layer) in include else form_of_aggregation(module, include)
        return form if reason is None else f"aggr={layer.aggr!r}: {reason}"
    if issubclass(form, VPNormalised) and not getattr(layer, "normalize", True):
        return "normalize=False: its weights come from outside; give it those of vp_gcn_norm"
    # The common mistake is mended too: vpa on top of attention or a degree normalisation.
    if type(module) in _SUMS and not isinstance(module, aggr.MeanAggregation):
        return form
    return f"aggr={layer.aggr!r} on top of weights of its own has no variance-preserving form"


def _guess(cls: type[MessagePassing], include: Collection[type]) -> Form | str:
    """Return a form for a layer that PyG does not export."""
    if cls.aggregate is not MessagePassing.aggregate or _has_own_propagate(cls):
        return "aggregates in code of its own"
    arguments = set(cls.message.__code__.co_varnames[1 : cls.message.__code__.co_argcount])
    form = VPWeightedSum if "edge_weight" in arguments else VPSum
    stems = {name.removesuffix("_i").removesuffix("_j") for name in arguments}
    functions = [
        f for base in _bases(cls) for f in vars(base).values() if isinstance(f, FunctionType)
    ]
    names = {name for f in functions for name in _names(inspect.unwrap(f).__code__)}
    signs = sorted(stems & _ARGUMENTS | names & _FUNCTIONS)
    if not signs or cls in include:
        return form
    return (
        f"{signs[0]!r} looks like a normalisation or attention of its own; if it is none, "
        f"convert(model, include=[{cls.__name__}])"
    )


def _changed_steps(cls: type, known: type) -> list[str]:
    """Return the methods on which the form of ``known`` rests, and which ``cls`` overrides."""
    form = RULES[known]
    normalises = isinstance(form, type) and issubclass(form, VPNormalised)
    steps = (*_STEPS, "forward") if normalises else _STEPS  # forward calls the normalisation
    return [name for name in steps if getattr(cls, name, None) is not getattr(known, name, None)]


def _bases(cls: type) -> list[type]:
    return [base for base in cls.__mro__ if base not in MessagePassing.__mro__]


def _has_own_propagate(cls: type) -> bool:
    """Tell whether a class overrides what calls its steps, by more than code that PyG wrote."""
    callers = ((base, name) for base in _bases(cls) for name in ("propagate", "edge_updater"))
    own = (vars(base)[name] for base, name in callers if name in vars(base))
    return any(not f.__module__.endswith(("_propagate", "_edge_updater")) for f in own)


def _names(code: CodeType) -> set[str]:
    inner = (_names(const) for const in code.co_consts if isinstance(const, CodeType))
    return set(code.co_names).union(*inner)
