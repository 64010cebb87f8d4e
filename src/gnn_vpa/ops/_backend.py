"""Which kernels run: chosen by device, or by hand for a comparison."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Literal, get_args

import torch
from torch import Tensor

from ..errors import UsageError

Backend = Literal["cpu", "triton", "reference"]

_forced: ContextVar[Backend | None] = ContextVar("gnn_vpa_backend", default=None)


def backend(on: Tensor | torch.device | str = "cpu") -> Backend:
    """Tell which kernels serve a tensor or a device.

    ``"cpu"`` is the segment sum over CSR for the CPU, ``"triton"`` the one for CUDA, and
    ``"reference"`` plain PyTorch for every other device (and for CUDA without Triton).

    Args:
        on: A tensor, a device, or a device's name.

    Example:
        >>> backend("cpu")
        'cpu'
        >>> with use_backend("reference"):
        ...     backend("cpu")
        'reference'
    """
    device = on.device if isinstance(on, Tensor) else torch.device(on)
    forced = _forced.get()
    if forced is not None:
        return forced
    if device.type == "cpu":
        return "cpu"
    if device.type == "cuda" and _has_triton():
        return "triton"
    return "reference"


@contextmanager
def use_backend(name: Backend) -> Iterator[None]:
    """Force one backend inside a ``with`` block, to compare or to debug.

    Args:
        name: ``"cpu"``, ``"triton"`` or ``"reference"``.

    Example:
        >>> import torch
        >>> from gnn_vpa.ops import Graph, aggregate
        >>> graph = Graph(torch.tensor([[0, 1], [1, 1]]), num_nodes=2)
        >>> with use_backend("reference"):
        ...     aggregate(torch.ones(2, 1), graph, "sum")
        tensor([[0.],
                [2.]])
    """
    if name not in get_args(Backend):
        raise UsageError(f"backend {name!r} is unknown: expected one of {get_args(Backend)}")
    token = _forced.set(name)
    try:
        yield
    finally:
        _forced.reset(token)


def kernels(x: Tensor) -> ModuleType:
    """Return the module whose ``spmm``, ``sddmm``, ``segmax`` and ``winners`` serve ``x``."""
    return _module(backend(x))


@cache
def _module(name: Backend) -> ModuleType:
    return import_module(f"{__package__}._{name}")


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None
