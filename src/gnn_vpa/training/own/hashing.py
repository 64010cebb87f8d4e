"""What a model is, as a hash: results belong to it, and an edited model is another one.

It is the text of the files that the model is in and that these import, the versions of installed
packages (`text.py`), and what the model is when freshly built: its ``repr``, its initial weights,
and its scores for two small graphs.
"""

import hashlib
import inspect
import re
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ...random_state import seeded
from .adapter import Adapter
from .alone import Alone
from .text import THIS_PROCESS, texts_of
from .two_graphs import two_graphs

_WIDTH, _OUTPUTS = 8, 2
_COLUMNS = (None, *range(1, 17))  # of edge features: the first with which a model can be called
# In float64 another machine or number of threads rounds to the same digits.
_DIGITS = {torch.float64: 6, torch.float32: 3}
_SEED = 7
_CPU = torch.device("cpu")
_DIFFERS = "differs"
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class Identity(NamedTuple):
    """What a model is known by.

    Attributes:
        source: A hash, 16 hexadecimal digits.
        unknown: In words, what of it is not known; then no other process has this hash.
    """

    source: str
    unknown: str


def source_hash(factory: Callable[..., Any]) -> str:
    """Return a hash of what a factory's model is, 16 hexadecimal digits.

    It is computed anew each time: a factory may read what has changed.

    Example:
        >>> len(source_hash(nn.Linear))
        16
    """
    return identity(factory).source


def modules_of(factory: Callable[..., Any]) -> list[ModuleType]:
    """Return the user's modules that a factory needs, and that other machines may not have.

    Example:
        >>> modules_of(source_hash)
        []
    """
    return texts_of(factory).modules


def identity(factory: Callable[..., Any]) -> Identity:
    """Return the identity of a factory's model.

    Example:
        >>> identity(nn.Linear).unknown
        ''
    """
    texts, unknown = texts_of(factory), ""
    # The first build may differ because it fills a cache. Parts that always differ are left out.
    _, *looks = (_looks(factory) for _ in range(3))
    look = [one if one == other else _DIFFERS for one, other in zip(*looks, strict=True)]
    parts: list[object] = [sorted(texts.by_name.items()), look, _signature(factory)]
    # A factory made within a function or an expression may read values that are in no text.
    has_text = (
        isinstance(factory, type | FunctionType)
        and "<" not in factory.__qualname__
        and not getattr(factory, "__closure__", None)
        and any(texts.by_name.values())
    )
    if texts.unknown:
        unknown = texts.unknown[0]
    elif not has_text and look[1] in ("", _DIFFERS):
        unknown = "it cannot be called with two small graphs, or its scores differ each time"
        parts.append((THIS_PROCESS, id(factory)))
    return Identity(hashlib.sha256(repr(parts).encode()).hexdigest()[:16], unknown)


def _looks(factory: Callable[..., Any]) -> tuple[str, str, str]:
    """Build a model, and return its form, its scores and its weights, as far as there are any."""
    with seeded(_SEED), suppress(Exception):
        model = factory(_WIDTH, _OUTPUTS, **_required(factory))
        scores = weights = ""
        for width, columns, (dtype, digits) in product(
            {_WIDTH: None, _first_width(model): None}, _COLUMNS, _DIGITS.items()
        ):
            with suppress(Exception):
                scores = _scores(model, width, columns, dtype, digits)
                break
        with suppress(Exception):
            weights = repr([(name, _rounded(t, 6)) for name, t in model.state_dict().items()])
        return _ADDRESS.sub("", repr(model)), scores, weights
    return "", "", ""


def _required(factory: Callable[..., Any]) -> dict[str, Any]:
    """Return values for options that have none."""
    with suppress(TypeError, ValueError):
        options = list(inspect.signature(factory).parameters.values())[2:]
        kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
        names = [o.name for o in options if o.kind in kinds and o.default is o.empty]
        return {name: "sum" if name == "aggr" else 1 for name in names}
    return {}


def _signature(factory: Callable[..., Any]) -> str:
    """Return the options and their values where none are given."""
    with suppress(TypeError, ValueError):
        return _ADDRESS.sub("", str(inspect.signature(factory)))
    return ""


def _first_width(model: nn.Module) -> int:
    """Return the inputs of the first layer: a model may be written for those of its data alone."""
    names = product(model.modules(), ("in_channels", "in_features"))
    widths = (getattr(module, name, None) for module, name in names)
    return next((own for own in widths if isinstance(own, int) and own > 0), _WIDTH)


def _scores(
    model: nn.Module, width: int, columns: int | None, dtype: torch.dtype, digits: int
) -> str:
    """Return the scores of two graphs in evaluation and in training."""
    model = getattr(model, "_orig_mod", model)  # it need not be compiled for that
    inputs, found = two_graphs(width, columns, positions=3), list[str]()
    alone = Alone(model, Adapter.of(model, ""), _OUTPUTS)
    if any(map(is_lazy, model.parameters())):  # lazy layers learn their sizes
        alone.adapter(model.eval(), inputs)
    for is_training in (False, True):
        model.train(is_training)
        params, buffers = (
            {name: _copied(tensor, dtype) for name, tensor in named}
            for named in (model.named_parameters(), model.named_buffers())
        )
        seed = torch.tensor(_SEED, dtype=torch.int32)
        out = alone.functional(params, buffers, inputs.to(_CPU, dtype), seed)
        found.append(_rounded(out, digits))
    return repr(found)


def _copied(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """Return a copy, as the model may write to it."""
    return tensor.detach().to(_CPU, dtype if tensor.is_floating_point() else None, copy=True)


def _rounded(tensor: Tensor, digits: int) -> str:
    """Return a tensor's size and two sums over it, in a few digits."""
    flat = tensor.detach().to(_CPU, torch.float64).flatten()
    norm = flat.norm()
    along = torch.arange(len(flat), dtype=torch.float64).cos() @ flat / norm
    return f"{tuple(tensor.shape)} {norm:.{digits}g} {round(float(along), digits) + 0.0}"
