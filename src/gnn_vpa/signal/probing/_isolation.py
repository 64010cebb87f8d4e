"""Running a model without leaving a trace: on a copy."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, TypeVar

from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch_geometric.inspector import Inspector

from ...errors import UsageError

Model = TypeVar("Model", bound=nn.Module)


def private_copy(model: Model, *, share: bool = True) -> Model:
    """Return a copy that shares the parameters if asked to, and nothing that a pass may change."""
    memo: dict[int, Any] = {}
    if share:
        memo = {id(p): p for p in model.parameters() if not is_lazy(p)}
    values = (value for module in model.modules() for value in vars(module).values())
    parts = (part for v in values for part in (v if isinstance(v, tuple | list) else (v,)))
    for part in parts:
        if isinstance(part, Inspector):  # of PyG's layers: large, and never changed by a pass
            memo[id(part)] = part
        elif isinstance(part, Tensor) and not part.is_leaf:  # kept from the last call
            memo[id(part)] = part.detach().clone()
    try:
        return copy.deepcopy(model, memo)
    except Exception as error:
        raise UsageError(
            f"{type(model).__name__} cannot be copied ({type(error).__name__}: {error}), and a "
            "probe runs on a copy so as to change nothing. Watch the model itself instead: with "
            "gnn_vpa.probe.during(model, every=1) as signal: model(...)"
        ) from error


def same_place(model: nn.Module, tensors: Iterator[Tensor]) -> None:
    """Raise unless the model and what it is given are on the same device, with numbers in them."""
    own = {t.device for t in (*model.parameters(), *model.buffers())}
    for device in (*own, *(given := {t.device for t in tensors})):
        if device.type == "meta":
            where = "the model" if device in own else "an input"
            raise UsageError(
                f"{where} is on the device meta, where tensors have shapes and no numbers: there "
                "is nothing to measure. Make it anew on a real device, such as cpu."
            )
    if own and given and own.isdisjoint(given):
        here, there = min(map(str, own)), min(map(str, given))
        raise UsageError(
            f"the model is on {here}, the inputs on {there}. Move them: "
            f"x.to({here!r}), or the model: model.to({there!r})."
        )
