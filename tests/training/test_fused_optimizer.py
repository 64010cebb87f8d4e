"""Torch's kernels called without its classes: the same bits."""

from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor

from gnn_vpa.training import Protocol
from gnn_vpa.training.fused_optimizer import MOMENTUM, FusedOptimizer

KINDS = ("adam", "adamw", "sgd")
SHAPES = ((3, 4, 5), (2,), (3, 1, 7))


def weights(dtype: torch.dtype = torch.float32) -> list[Tensor]:
    draw = torch.Generator().manual_seed(1)
    return [torch.randn(s, generator=draw, dtype=dtype).requires_grad_() for s in SHAPES]


def give(params: list[Tensor], step: int, missing: tuple[int, ...] = ()) -> None:
    """Give weights the gradients of a step; in every second one some are missing.

    In the first none is: torch's fused SGD fails on a weight whose gradient comes later.
    """
    draw = torch.Generator().manual_seed(100 + step)
    for place, param in enumerate(params):
        grad = torch.randn(param.shape, generator=draw, dtype=param.dtype)
        param.grad = None if place in missing and step % 2 == 1 else grad


def theirs(params: list[Tensor], protocol: Protocol) -> torch.optim.Optimizer:
    made: dict[str, Any] = {"lr": protocol.learning_rate, "fused": True}
    made["weight_decay"] = protocol.weight_decay
    if protocol.optimizer == "sgd":
        return torch.optim.SGD(params, momentum=MOMENTUM, **made)
    return {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[protocol.optimizer](
        params, **made
    )


@pytest.mark.parametrize("missing", [(), (1,), (0, 1, 2)], ids=["all", "but one", "none at times"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("decay", [0.0, 0.3])
@pytest.mark.parametrize("kind", KINDS)
def test_the_bits_are_those_of_torch_optim(
    kind: str, decay: float, dtype: torch.dtype, missing: tuple[int, ...]
) -> None:
    protocol = Protocol(learning_rate=0.1, weight_decay=decay, optimizer=kind)  # type: ignore[arg-type]
    mine, others = weights(dtype), weights(dtype)
    ours, reference = FusedOptimizer(mine, protocol), theirs(others, protocol)
    for step in range(6):
        for params in (mine, others):
            give(params, step, missing)
        ours.set_rate(0.5**step)
        reference.param_groups[0]["lr"] = 0.1 * 0.5**step
        ours.step()
        reference.step()
        for one, other in zip(mine, others, strict=True):
            assert torch.equal(one, other)


@pytest.mark.parametrize("kind", KINDS)
def test_it_goes_on_from_a_state_to_the_same_bits(kind: str) -> None:
    protocol = Protocol(learning_rate=0.1, weight_decay=0.3, optimizer=kind)  # type: ignore[arg-type]
    params = weights()
    optimizer = FusedOptimizer(params, protocol)
    for step in range(3):
        give(params, step, missing=(1,))
        optimizer.step()
    state, copies = deepcopy(optimizer.state_dict()), deepcopy([p.detach() for p in params])
    other = FusedOptimizer([copy.requires_grad_() for copy in copies], protocol)
    other.load_state_dict(state)
    for step in range(3, 6):
        for own in (params, copies):
            give(own, step, missing=(1,))
        optimizer.step()
        other.step()
    for one, same in zip(params, copies, strict=True):
        assert torch.equal(one, same)


def test_gradients_are_forgotten() -> None:
    params = weights()
    give(params, 1)
    FusedOptimizer(params, Protocol()).zero_grad()
    assert all(param.grad is None for param in params)
