"""From data to the arguments of a model: by the names that its ``forward`` gives them."""

import copy
from collections.abc import Iterable, Mapping
from inspect import Parameter, signature
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map
from torch_geometric.data import Batch
from torch_geometric.data.data import BaseData

from ..errors import UsageError

_CALLED = {"graph": "edge_index", "readout": "batch"}  # as in gnn_vpa.nn
_OPTIONAL = ("edge_weight", "edge_attr", "edge_type", "batch", "pos")
_WHOLE = ("data", "batch", "graph", "inputs")  # names of a sole argument that is the data itself


class Call(NamedTuple):
    """What a model is called with."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def call_of(model: nn.Module, data: Any, max_nodes: int) -> Call:
    """Return the call that ``data`` means, on the device of the model.

    Args:
        model: The model.
        data: A tuple or a mapping of arguments, a PyG ``Data``, or a loader or list of them.
        max_nodes: Where there are many, take them until so many nodes are there.
    """
    if isinstance(data, tuple):
        return _moved(Call(data, {}), model)
    if isinstance(data, Tensor):
        return _moved(Call((data,), {}), model)
    if isinstance(data, Mapping) and not isinstance(data, BaseData):
        return _moved(Call((), dict(data)), model)
    joined = data if isinstance(data, BaseData) else _joined(data, max_nodes)
    return _moved(_named(model, joined), model)


def private_inputs(value: Any, *, differentiable: bool) -> Any:
    """Return inputs whose features a model may change in place, with a gradient if asked for."""

    def own(part: Any) -> Any:
        if isinstance(part, BaseData):
            return copy.copy(part).apply(own)
        if not isinstance(part, Tensor) or part.layout != torch.strided:
            return part
        if not (part.is_floating_point() or part.is_complex()):
            return part
        if differentiable:
            part = part.detach().requires_grad_()
        return part.clone()  # no leaf, so that it may be changed in place

    return tree_map(own, value)


def _joined(loader: Any, max_nodes: int) -> BaseData:
    if not isinstance(loader, Iterable):
        raise UsageError(
            f"data: expected a loader of PyG Data, a Data or a tuple of the model's inputs, got "
            f"{type(loader).__name__}."
        )
    graphs: list[BaseData] = []
    nodes = 0
    for part in loader:
        if not isinstance(part, BaseData):
            raise UsageError(
                f"data: expected PyG Data from the loader, got {type(part).__name__}. Pass the "
                "model's inputs as one tuple instead."
            )
        graphs += part.to_data_list() if isinstance(part, Batch) else [part]
        nodes += part.num_nodes or 0
        if nodes >= max_nodes:
            break
    if not graphs:
        raise UsageError("data: the loader is empty.")
    joined: BaseData = Batch.from_data_list(graphs)
    return joined


def _named(model: nn.Module, data: BaseData) -> Call:
    parameters = list(signature(model.forward).parameters.values())
    required = [p for p in parameters if _is_required(p)]
    if len(required) == 1 and required[0].name in _WHOLE:
        return Call((data,), {})
    kwargs = {}
    for parameter in parameters:
        name = _CALLED.get(parameter.name, parameter.name)
        if not _is_required(parameter) and name not in _OPTIONAL:
            continue
        value = getattr(data, name, None)
        if value is None and name == "batch" and data.num_nodes:
            value = torch.zeros(data.num_nodes, dtype=torch.int64)  # one graph
        if value is not None:
            kwargs[parameter.name] = value
        elif _is_required(parameter):
            raise UsageError(
                f"data: the model's forward asks for {parameter.name!r}, and the data has no "
                f"{name!r} ({', '.join(sorted(data.keys()))}). Add it"
                + (", such as by torch_geometric.transforms.Constant()" if name == "x" else "")
                + ", or pass the model's inputs as a tuple."
            )
    return Call((), kwargs)


def _is_required(parameter: Parameter) -> bool:
    plain = parameter.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    return plain and parameter.default is Parameter.empty


def _moved(call: Call, model: nn.Module) -> Call:
    device = next((weight.device for weight in model.parameters()), None)

    def move(value: Any) -> Any:
        return value if device is None or not hasattr(value, "to") else value.to(device)

    args = tuple(move(value) for value in call.args)
    return Call(args, {name: move(value) for name, value in call.kwargs.items()})
