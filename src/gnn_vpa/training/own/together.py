"""One call of a user's model for all lanes, and the proof that it is right."""

from collections.abc import Mapping
from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from .adapter import Adapter, shortened
from .alone import Alone
from .batches import Inputs, Source
from .modes import NotSideBySide, SideBySide
from .padded import Padded, cut_padded, size_for

_CLOSE = 1e-8  # how far lanes side by side may be from lanes alone, in float64, relative
_GARBAGE = 3.7  # features of padding while that is tested
State = Mapping[str, Tensor]


class Together:
    """Calls a model for all lanes at once: `torch.func.vmap` over stacked weights."""

    def __init__(self, model: nn.Module, adapter: Adapter, outputs: int, device: torch.device):
        self.model, self.adapter, self.outputs = model, adapter, outputs
        self.mode = SideBySide(device)

    def __call__(self, params: State, buffers: State, batch: Padded, seeds: Tensor) -> Tensor:
        """Return the scores of every lane's graphs, ``[L, B, outputs]``."""
        zero = torch.zeros_like(seeds)
        given = {k: v for k, v in batch.inputs._asdict().items() if v is not None}
        with self.mode:
            scores: Tensor = vmap(self._of_lane, randomness="error")(
                params, buffers, given, (seeds, zero, batch.node, batch.edge, batch.graph)
            )
        return scores[:, :-1]  # the last graph is padding

    def _of_lane(
        self, params: State, buffers: State, given: dict[str, Tensor], real: tuple[Tensor, ...]
    ) -> Tensor:
        self.mode.begin_lanes(*real)

        def model(*args: object, **kwargs: object) -> object:
            return functional_call(self.model, (dict(params), dict(buffers)), args, kwargs)

        out = self.adapter(model, Inputs(**given))
        return self.adapter.checked(out, len(real[-1]), self.outputs)


def check_together(
    together: Together, params: State, buffers: State, source: Source, ids: Tensor, seeds: Tensor
) -> None:
    """Compare lanes side by side with the same lanes alone: scores, gradients and statistics.

    In float64, in training and in evaluation, with features of padding that would show.

    Args:
        together: What is tested; it then knows the answers to the model's questions.
        params: Stacked weights.
        buffers: Stacked statistics.
        source: The data, in float64.
        ids: A step's graphs, ``[L, B]``.
        seeds: The step's seeds for dropout, ``[L]``.

    Raises:
        NotSideBySide: They differ, or the model cannot be called so.
    """
    try:
        _check(together, params, buffers, source, ids, seeds)
    except NotSideBySide:
        raise
    except Exception as error:  # whatever it is, a loop may do without
        raise NotSideBySide(f"{type(error).__name__}: {shortened(error)}") from error


def _check(
    together: Together, params: State, buffers: State, source: Source, ids: Tensor, seeds: Tensor
) -> None:
    double = Together(_double(together.model), together.adapter, together.outputs, ids.device)
    alone = Alone(_double(together.model), together.adapter, together.outputs)
    batch = cut_padded(source, ids, size_for(source, ids), _GARBAGE)
    for training in (True, False):
        double.model.train(training)
        alone.model.train(training)
        double.mode.learn()
        own = {n: t.detach().double().requires_grad_(t.requires_grad) for n, t in params.items()}
        kept = {n: _copied(t) for n, t in buffers.items()}
        scores = double(own, kept, batch, seeds)
        found = gradients(scores, batch.graph[:, :-1], own) if training else {}
        for lane, graphs in enumerate(ids):
            mine = {n: t[lane].detach().requires_grad_(t.requires_grad) for n, t in own.items()}
            statistics = {n: _copied(t[lane]) for n, t in buffers.items()}
            real = graphs[graphs >= 0]
            expected = alone.functional(mine, statistics, source.cut(real), seeds[lane])
            _compare("scores", scores[lane, : len(real)], expected)
            for name, tensor in statistics.items():
                _compare(name, kept[name][lane], tensor)
            everywhere = torch.ones_like(real, dtype=torch.bool)
            alone_gradients = gradients(expected, everywhere, mine) if training else {}
            for name, gradient in alone_gradients.items():
                _compare(f"the gradient of {name}", found[name][lane], gradient)
        if not bool(double.mode.ok):
            raise NotSideBySide("it asks for values that differ between folds")
    if {name for name, _ in double.model.named_buffers()} != set(buffers):
        raise NotSideBySide("it makes buffers while it runs")


def gradients(scores: Tensor, is_real: Tensor, params: State) -> dict[str, Tensor]:
    """Return the gradients of a loss in which every score of a graph has its own weight."""
    names = [name for name, tensor in params.items() if tensor.requires_grad]
    if not names:
        return {}
    place, column = (torch.arange(n, device=scores.device) for n in scores.shape[-2:])
    weights = (1.0 + place.double()).rsqrt().unsqueeze(1) + column
    loss = (scores.sin() * weights * is_real.unsqueeze(-1)).sum()
    found = torch.autograd.grad(loss, [params[n] for n in names], allow_unused=True)
    return {
        name: torch.zeros_like(params[name]) if g is None else g
        for name, g in zip(names, found, strict=True)
    }


def _compare(what: str, found: Tensor, expected: Tensor) -> None:
    if differ(found, expected):
        raise NotSideBySide(f"side by side {what} would differ")


def differ(found: Tensor, expected: Tensor) -> bool:
    """Say whether numbers are further apart than rounding in float64 explains."""
    found, expected = found.detach().double(), expected.detach().double()
    scale = expected.abs().max().clamp(min=1.0) if expected.numel() else expected.new_ones(())
    return not bool(((found - expected).abs() <= _CLOSE * scale).all())


def _double(model: nn.Module) -> nn.Module:
    return deepcopy(model).double()


def _copied(tensor: Tensor) -> Tensor:
    tensor = tensor.detach().clone()
    return tensor.double() if tensor.is_floating_point() else tensor
