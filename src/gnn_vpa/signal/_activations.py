"""Which activation a Linear layer's input comes from, and what it does to a variance of 1."""

import copy
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FunctionType

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn.dense import Linear as PyGLinear

from ..errors import UsageError
from ._weights import is_layer

Activation = Callable[[Tensor], Tensor]

_MODULES = (
    nn.CELU, nn.ELU, nn.GELU, nn.Hardswish, nn.Hardtanh, nn.LeakyReLU, nn.Mish, nn.PReLU, nn.ReLU,
    nn.ReLU6, nn.SELU, nn.Sigmoid, nn.SiLU, nn.Softplus, nn.Softsign, nn.Tanh, nn.Tanhshrink,
)  # fmt: skip
_NAMES = {cls.__name__.lower() for cls in _MODULES} | {"leaky_relu"}
_FUNCTIONS: dict[str, Activation] = {
    name: getattr(F, name) for name in sorted(_NAMES - {"prelu"}) if hasattr(F, name)
}
_PROBABILITY = "sigmoid"  # beside another activation it makes probabilities, at the end


def gain(activation: Activation) -> float:
    """Return the factor that gives a normal variable of variance 1, activated, mean square 1.

    ``1 / sqrt(E f(z)^2)``: ``sqrt(2)`` for ReLU (He), 1 for the identity (LeCun). Of an activation
    with a slope for each channel it is the mean over them that counts: a sum over all of them does.
    """
    weights = activation.parameters() if isinstance(activation, nn.Module) else iter(())
    device = getattr(next(weights, None), "device", None)
    z = torch.linspace(-10, 10, 4001, dtype=torch.float64, device=device)
    density = torch.exp(-z.square() / 2)
    with torch.no_grad():
        squares = _activated(activation, z.float()).double().square()
    mean_square = (squares * density).sum() / density.sum()
    if not mean_square > 0:
        raise UsageError("activation: it makes everything 0, so that no weights could help.")
    return float(mean_square.rsqrt())


def _activated(activation: Activation, z: Tensor) -> Tensor:
    """Return the root mean square, over the channels that it has, of ``f(z)``, in float32."""
    if isinstance(activation, nn.PReLU) and type(activation).forward is nn.PReLU.forward:
        slope = activation.weight.float()
        return torch.where(z > 0, z, z * slope.square().mean().sqrt())
    if isinstance(activation, nn.Module):
        activation = copy.deepcopy(activation).float()  # its own type may have three digits
    try:
        out = activation(z)
    except Exception as error:
        raise UsageError(
            f"activation: {name_of(activation)} fails on {len(z):,} numbers in a row with "
            f"{type(error).__name__}: {error}. Pass a function of a tensor of any shape, entry by "
            "entry, such as init_(model, activation='relu')."
        ) from error
    if not isinstance(out, Tensor) or out.shape != z.shape:
        got = list(out.shape) if isinstance(out, Tensor) else type(out).__name__
        raise UsageError(
            f"activation: {name_of(activation)} makes {got} of a tensor of the shape "
            f"{list(z.shape)}. Pass a function that keeps the shape, entry by entry."
        )
    return out


def named(activation: str) -> Activation:
    """Return the activation of a name, such as ``"relu"``."""
    if activation in ("identity", "linear"):
        return nn.Identity()
    if activation not in _FUNCTIONS:
        raise UsageError(
            f"activation: {activation!r} is unknown, expected one of identity, "
            f"{', '.join(_FUNCTIONS)}, or a function."
        )
    return _FUNCTIONS[activation]


def name_of(activation: Activation) -> str:
    """Return what an activation is called."""
    name = getattr(activation, "__name__", type(activation).__name__)
    return str(name).lower()


def activation_around(model: nn.Module, path: str) -> Activation:
    """Find the activation that acts on what the Linear layer at ``path`` is given.

    Of two Linear layers in a row in an ``nn.Sequential`` the second has none. Otherwise it is that
    of the nearest module around it which has one: as a child, or by name in its ``forward``; or
    the only one that the model has at all. What a message-passing layer calls is its attention's
    affair.
    """
    parents = [model.get_submodule(path[:end]) for end in _ends(path)]
    if parents and isinstance(parents[0], nn.Sequential):
        before = list(parents[0].children())
        before = before[: before.index(model.get_submodule(path))]
        for module in reversed(before):
            if isinstance(module, _MODULES):
                return module
            if isinstance(module, nn.Linear | PyGLinear):
                return nn.Identity()
    for module in parents:
        found = _found([module])
        if len(found) > 1:
            raise UsageError(
                f"model: {type(module).__name__} has several activations ({', '.join(found)}); say "
                "which one the layers' inputs come from: init_(model, activation=...)."
            )
        if found:
            return next(iter(found.values()))
    anywhere = _found(model.modules())
    return next(iter(anywhere.values())) if len(anywhere) == 1 else nn.Identity()


def _found(modules: Iterable[nn.Module]) -> dict[str, Activation]:
    found = {name_of(act): act for module in modules for act in _held(module)}
    if len(found) > 1:
        found.pop(_PROBABILITY, None)
    return found


def _ends(path: str) -> list[int]:
    """Return where the paths of a module's parents end, the nearest first."""
    dots = [place for place, letter in enumerate(path) if letter == "."]
    return [*reversed(dots), 0] if path else []


def _held(module: nn.Module) -> Iterator[Activation]:
    for child in module.children():
        if isinstance(child, _MODULES):
            yield child
    forward = getattr(type(module), "forward", None)
    if isinstance(forward, FunctionType) and not is_layer(module):
        for name in sorted(_called(forward.__code__) & _FUNCTIONS.keys()):
            yield _FUNCTIONS[name]


def _called(code: CodeType) -> set[str]:
    inner = (_called(const) for const in code.co_consts if isinstance(const, CodeType))
    return set(code.co_names).union(*inner)
