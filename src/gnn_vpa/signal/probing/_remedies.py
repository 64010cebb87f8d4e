"""What could be done about a signal that does not keep its scale: tried, not promised."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import NamedTuple

from torch_geometric.nn.models.rev_gnn import InvertibleModule

from ...errors import GnnVpaError
from ...nn import Model
from ...pyg import convert
from ...random_state import seeded
from .._inputs import private_inputs
from ..calibration import calibrate
from ..initialise import init_
from ._run import Call


class Trial(NamedTuple):
    """A remedy as users write it, and the call with a model that has been changed by it."""

    name: str
    call: Call


def trials(call: Call) -> Iterator[Trial]:
    """Yield the remedies that can be applied, the gentlest first, each to a copy of the model."""
    better, name = call, "model"
    for written, change in (('aggr="vpa"', _with_vpa), ("convert(model)", _converted)):
        if (changed := _attempt(change, call)) is not None:
            better, name = changed, written
            yield Trial(written, changed)
    then = "" if better is call else f"{name}, then "
    for written, change in (
        ("init_(model)", _initialised),
        ("calibrate(model, inputs)", _calibrated),
    ):
        if (changed := _attempt(change, better)) is not None:
            yield Trial(then + written, changed)


def _attempt(change: Callable[[Call], Call | None], call: Call) -> Call | None:
    try:
        with seeded():
            return change(call)
    except GnnVpaError:
        return None


def _with_vpa(call: Call) -> Call | None:
    """Give one of the paper's models the aggregation that preserves the variance."""
    if not isinstance(call.model, Model) or getattr(call.model, "aggr", "vpa") == "vpa":
        return None
    model = deepcopy(call.model)
    model.aggr = "vpa"
    return call._replace(model=model)


def _converted(call: Call) -> Call | None:
    model, report = convert(call.model)
    return call._replace(model=model) if report.changed else None


def _initialised(call: Call) -> Call:
    model = deepcopy(call.model)
    init_(model)
    return call._replace(model=model)


def _calibrated(call: Call) -> Call | None:
    if call.args and call.kwargs:
        return None  # calibrate takes the one or the other
    if any(isinstance(module, InvertibleModule) for module in call.model.modules()):
        return None  # it frees its inputs, and calibrate needs them again
    model = deepcopy(call.model)
    args, kwargs = private_inputs(call[1:], differentiable=False)
    calibrate(model, kwargs or args)
    return call._replace(model=model)
