"""One forward and one backward pass under observation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ...errors import UsageError
from ...random_state import RandomState, seeded
from .._inputs import private_inputs
from ._hooks import layers, unseen, watched
from ._inputs import arguments, atlas_of, real_tensor, tensors
from ._isolation import private_copy, same_place
from ._recorder import Recorder
from ._step import Step, steps_of

Loss = Callable[[Any], Tensor]  # the model's output -> a number


class Call(NamedTuple):
    """A model and what it is called with: ``model(*args, **kwargs)``."""

    model: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Whole(NamedTuple):
    """A network as a whole; NaN is what could not be measured.

    Attributes:
        loss: The loss; without one, how far the outputs are from random targets of variance 1.
        gradient: The norm of its gradient, over all parameters.
    """

    loss: float = math.nan
    gradient: float = math.nan


class Run(NamedTuple):
    """Result of a run: steps, notes about what could not be measured, and the whole network.

    ``random`` is where it drew from, so that another run draws the same.
    """

    steps: tuple[Step, ...]
    notes: tuple[str, ...]
    whole: Whole
    random: RandomState


class Kept:
    """A call as it was: weights and inputs may change before it is made again."""

    def __init__(self, call: Call, run: Run) -> None:
        self.run = run
        self._model = call.model
        self._state = {
            name: value.detach().clone()
            for name, value in call.model.state_dict().items()
            if isinstance(value, Tensor) and not is_lazy(value)
        }
        self._inputs = private_inputs(call[1:], differentiable=False)

    def call(self) -> Call:
        """Return the call, with a model of its own."""
        model = private_copy(self._model, share=False)
        model.load_state_dict(self._state, strict=False)
        return Call(model, *self._inputs)


def observe(call: Call, loss: Loss | None = None, random: RandomState | None = None) -> Run:
    """Run a model on a copy and record its signal; nothing of the caller's changes."""
    model, args, kwargs = call
    if not isinstance(model, nn.Module):
        raise UsageError(
            f"model: expected a torch.nn.Module, got {type(model).__name__}. "
            "Pass the model itself, not its class or its output."
        )
    same_place(model, tensors((args, kwargs)))
    notes = unseen(model)
    trainable = any(p.requires_grad for p in model.parameters())
    copied = private_copy(model)
    with seeded(random), torch.inference_mode(False), torch.enable_grad():
        random = random or RandomState()
        args, kwargs = private_inputs((args, kwargs), differentiable=not trainable)
        named = arguments(copied, args, kwargs)
        recorder = Recorder(layers(copied), atlas := atlas_of(named))
        try:
            with watched(copied, recorder, atlas):
                if (x := real_tensor(list(named.values()))) is not None:
                    recorder.given(x)
                out = _called(copied, args, kwargs)
            more, whole = _differentiated(copied, out, loss, (args, kwargs), recorder)
        finally:
            recorder.close()
    return Run(steps_of(recorder.entries), (*notes, *more), whole, random)


def _called(model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    try:
        return model(*args, **kwargs)
    except Exception as error:
        shapes = ", ".join(
            f"{name}: {list(value.shape) if isinstance(value, Tensor) else type(value).__name__}"
            for name, value in arguments(model, args, kwargs).items()
        )
        raise UsageError(
            f"the model does not run on these inputs ({shapes or 'none'}). {_place(model, error)} "
            f"raised {type(error).__name__}: {error}. Call model(...) with the same inputs to see "
            "where."
        ) from error


def _place(model: nn.Module, error: BaseException) -> str:
    """Return the innermost module in which an error was raised."""
    names, found = {module: path for path, module in model.named_modules()}, model
    trace = error.__traceback__
    while trace is not None:
        module = trace.tb_frame.f_locals.get("self")
        if isinstance(module, nn.Module) and module in names:
            found = module
        trace = trace.tb_next
    return f"{names[found] or 'The model'} ({type(found).__name__})"


def _differentiated(
    model: nn.Module, out: Any, loss: Loss | None, given: Any, recorder: Recorder
) -> tuple[list[str], Whole]:
    """Send a gradient back through the model; return what is to be said about it, and the whole."""
    notes = []
    terms = 1  # of the loss, each of which has a gradient of its own
    if loss is not None:
        value = _loss_of(loss, out)
        ends: list[Tensor] = [value]
        whole = Whole(value.item())
        if not math.isfinite(whole.loss):
            notes.append(f"The loss is {whole.loss}.")
        gradients: list[Tensor] | None = None
    else:
        floating = [t for t in tensors(out) if t.is_floating_point() or t.is_complex()]
        ends = [t for t in floating if t.requires_grad]
        if not ends:
            what = f"returned {type(out).__name__}" if not floating else "has nothing to train"
            note = (
                f"The model {what}, so no gradient could be sent back: the forward signal is all "
                "there is. Pass loss=, a function of what the model returns."
            )
            return [note], Whole()
        draw = torch.Generator().manual_seed(0)
        gradients = [torch.randn(t.shape, generator=draw, dtype=torch.float32).to(t) for t in ends]
        terms = max(1, sum(t.numel() for t in ends))
        apart = (t.detach() - target for t, target in zip(ends, gradients, strict=True))
        whole = Whole(_norm(apart) / math.sqrt(terms))
    weights = {path: p for path, p in model.named_parameters() if p.requires_grad}
    starts = [*weights.values(), *(t for t in tensors(given) if t.requires_grad)]
    try:
        # Not backward(): that would add to .grad, and call the hooks that wait for it.
        found = torch.autograd.grad(ends, starts, gradients, allow_unused=True)
    except RuntimeError as error:
        return [*notes, f"The backward pass failed, so its signal is missing: {error}"], whole
    known = {path: g.to_dense() for path, g in zip(weights, found, strict=False) if g is not None}
    for path, gradient in known.items():
        if not bool(gradient.isfinite().all()):
            recorder.parameter(path, weights[path], gradient)
    return notes, whole._replace(gradient=_norm(known.values()) / terms)


def _norm(parts: Iterable[Tensor]) -> float:
    """Return the root of the sum of all squares; infinite unless all of them are finite."""
    norm = math.sqrt(sum(x.abs().double().square().sum().item() for x in parts))
    return math.inf if math.isnan(norm) else norm


def _loss_of(loss: Loss, out: Any) -> Tensor:
    try:
        value = loss(out)
    except Exception as error:
        raise UsageError(
            f"loss: failed on what the model returned ({type(out).__name__}) with "
            f"{type(error).__name__}: {error}. It is called as loss(model(*inputs))."
        ) from error
    if not isinstance(value, Tensor) or value.numel() != 1 or not value.requires_grad:
        raise UsageError(
            f"loss: expected a single number that depends on the model, got "
            f"{list(value.shape) if isinstance(value, Tensor) else type(value).__name__}."
        )
    return value
