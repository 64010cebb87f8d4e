"""Telling a recorder what a model does: hooks, all of which are taken back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import wraps
from threading import get_ident
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from torch_geometric import EdgeIndex
from torch_geometric.nn import MessagePassing

from ...errors import UsageError
from ...ops import observe
from ...pyg import VPTransformerConv
from ...pyg.internal import VPMessagePassing, plain_edges
from ._edges import Atlas, Edges
from ._recorder import OPAQUE, Recorder


def layers(model: nn.Module) -> dict[nn.Module, str]:
    """Return the modules to be watched, and their paths: not the inside of what is compiled."""
    found: dict[nn.Module, str] = {}
    hidden: set[nn.Module] = set()
    for path, module in model.named_modules():
        if module in hidden:
            continue
        found[module] = path
        inside = module if isinstance(module, OPAQUE) else None
        if isinstance(module, MessagePassing):
            inside = module.aggr_module  # its work is the layer's aggregation
        if inside is not None:
            hidden.update(inside.modules())
            hidden.discard(module)
    return found


def unseen(model: nn.Module) -> list[str]:
    """Return a sentence for each module whose inside cannot be watched."""
    return [
        f"{path or 'The model'} ({type(module).__name__}) is compiled: what comes out of it is "
        "shown, what happens inside cannot be seen. "
        + (
            "Probe its _orig_mod for that."
            if hasattr(module, "_orig_mod")
            else "Probe the module before torch.jit.script or trace for that."
        )
        for module, path in layers(model).items()
        if isinstance(module, OPAQUE)
    ]


@contextmanager
def watched(model: nn.Module, recorder: Recorder, atlas: Atlas) -> Iterator[None]:
    """Let a recorder follow a model while the block runs."""
    found = layers(model)
    scripted: set[nn.Module] = {m for m in found if isinstance(m, torch.jit.ScriptModule)}
    with ExitStack() as handles:
        for module in found.keys() - scripted:
            for handle in _hooked(module, recorder, atlas):
                handles.callback(handle.remove)
        for handle in _hooked_everywhere(scripted, recorder):
            handles.callback(handle.remove)
        handles.enter_context(observe.observed(recorder.aggregated))
        yield


def of_this_thread(hook: Callable[..., None]) -> Callable[..., None]:
    """Return a hook that ignores calls from other threads, which may run the same model."""
    thread = get_ident()

    @wraps(hook)
    def heard(*given: Any) -> None:
        if get_ident() == thread:
            hook(*given)

    return heard


def _hooked_everywhere(scripted: set[nn.Module], recorder: Recorder) -> Iterator[Any]:
    """Scripted modules take no hooks of their own: hooks on all modules, for these alone."""

    def enter(module: nn.Module, args: Any) -> None:
        if module in scripted:
            recorder.enter(module, args)

    def leave(module: nn.Module, args: Any, result: Any) -> None:
        if module in scripted:
            recorder.leave(module, result)

    if scripted:
        yield register_module_forward_pre_hook(of_this_thread(enter))
        yield register_module_forward_hook(of_this_thread(leave), always_call=True)


def _hooked(module: nn.Module, recorder: Recorder, atlas: Atlas) -> Iterator[Any]:
    def enter(module: nn.Module, args: Any, kwargs: Any) -> None:
        recorder.enter(module, (args, kwargs))

    def leave(module: nn.Module, args: Any, result: Any) -> None:
        recorder.leave(module, result)

    yield module.register_forward_pre_hook(of_this_thread(enter), with_kwargs=True)
    yield module.register_forward_hook(of_this_thread(leave), always_call=True)
    if isinstance(module, MessagePassing) and not _is_fused(module):
        yield from _hooked_steps(module, recorder, atlas)


def _is_fused(layer: MessagePassing) -> bool:
    """Tell whether a layer of ours aggregates through ``gnn_vpa.ops``, which is observed.

    PyG's hooks would have it make its messages one by one, which is much slower.
    """
    if isinstance(layer, VPTransformerConv) and layer.lin_edge is not None:
        return False
    watched = layer.explain or layer.decomposed_layers > 1
    return isinstance(layer, VPMessagePassing) and layer._linear and not watched


def _hooked_steps(layer: MessagePassing, recorder: Recorder, atlas: Atlas) -> Iterator[Any]:
    def start(layer: MessagePassing, given: Any) -> None:
        edge_index, size, kwargs = given
        source, target = _ends(layer, kwargs)
        edges = _edges(layer, edge_index, size, source, target, atlas)
        recorder.propagating(layer, edges, source)

    def message(layer: MessagePassing, _: Any, out: Any) -> None:
        recorder.message(layer, out, layer.node_dim)

    def aggregation(layer: MessagePassing, _: Any, out: Any) -> None:
        recorder.aggregation(layer, out, layer.node_dim)

    def end(layer: MessagePassing, *_: Any) -> None:
        recorder.propagated(layer)

    yield layer.register_propagate_forward_pre_hook(of_this_thread(start))
    yield layer.register_message_forward_hook(of_this_thread(message))
    yield layer.register_aggregate_forward_hook(of_this_thread(aggregation))
    yield layer.register_message_and_aggregate_forward_hook(of_this_thread(aggregation))
    yield layer.register_propagate_forward_hook(of_this_thread(end))


def _ends(layer: MessagePassing, kwargs: dict[str, Any]) -> tuple[Tensor | None, Tensor | None]:
    """Return the features that the messages are made of, and some of the nodes they go to."""
    found: dict[str, Tensor | None] = {"_j": None, "_i": None}
    # x and value before others, such as the terms of an attention
    for name in sorted(layer._user_args, key=lambda name: name not in ("x_j", "value_j")):
        end = name[-2:]
        value = kwargs.get(name[:-2])
        if isinstance(value, tuple | list) and len(value) == 2:
            value = value[0 if end == "_j" else 1]
        if end in found and found[end] is None and isinstance(value, Tensor):
            found[end] = value
    pair = kwargs.get("x")
    if found["_i"] is None and isinstance(pair, tuple | list) and len(pair) == 2:
        found["_i"] = pair[1]
    return found["_j"], found["_i"]


def _edges(
    layer: MessagePassing,
    edge_index: Any,
    size: Any,
    source: Tensor | None,
    target: Tensor | None,
    atlas: Atlas,
) -> Edges | None:
    i, j = (1, 0) if layer.flow == "source_to_target" else (0, 1)
    counts: list[int | None] = [None, None] if size is None else list(size)
    for dim, end in ((j, source), (i, target)):
        if counts[dim] is None and end is not None and end.dim() >= -layer.node_dim:
            counts[dim] = end.shape[layer.node_dim]
    sources, targets = counts[j], counts[j] if counts[i] is None else counts[i]
    if sources is None or targets is None:
        return None
    with suppress(UsageError, RuntimeError, TypeError):
        index, _ = plain_edges(edge_index)
        index = index.as_tensor() if isinstance(index, EdgeIndex) else index
        return atlas.edges(index[j], index[i], (sources, targets))
    return None
