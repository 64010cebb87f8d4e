"""An optimiser with settings for each lane does to each lane what torch's does to one."""

from typing import Any

import pytest
import torch
from torch import Tensor

from gnn_vpa.training import Protocol
from gnn_vpa.training.lane_optimizer import LaneOptimizer, clip_by_lane

SHAPES = [(4, 3), (3,), (1, 2, 5), ()]
LANES = [(1e-3, 0.0), (0.1, 0.0), (0.01, 0.3)]  # learning rate, weight decay


def torchs(params: list[Tensor], kind: str, rate: float, decay: float) -> torch.optim.Optimizer:
    made: dict[str, Any] = {"lr": rate, "weight_decay": decay}
    if kind == "sgd":
        return torch.optim.SGD(params, momentum=0.9, **made)
    return (torch.optim.Adam if kind == "adam" else torch.optim.AdamW)(params, **made)


def gradients(step: int) -> list[Tensor]:
    draw = torch.Generator().manual_seed(step)
    return [
        torch.randn(len(LANES), *shape, generator=draw, dtype=torch.float64) for shape in SHAPES
    ]


@pytest.mark.parametrize("clip", [None, 1.0, 100.0])
@pytest.mark.parametrize("kind", ["adam", "adamw", "sgd"])
def test_each_lane_is_torchs(kind: Any, clip: float | None) -> None:
    stacked = [weight.requires_grad_() for weight in gradients(99)]
    protocols = [Protocol(learning_rate=r, weight_decay=d, optimizer=kind) for r, d in LANES]
    ours = LaneOptimizer(stacked, protocols)
    alone = [
        [weight[lane].detach().clone().requires_grad_() for weight in stacked] for lane in range(3)
    ]
    theirs = [torchs(p, kind, *own) for p, own in zip(alone, LANES, strict=True)]
    for step in range(20):
        factor = 1.0 if step < 5 else 0.3
        ours.zero_grad()
        ours.set_rate(factor)
        for weight, gradient in zip(stacked, gradients(step), strict=True):
            weight.grad = gradient.clone()
        if clip is not None:
            clip_by_lane(stacked, clip)
        ours.step()
        for lane, (params, optimizer) in enumerate(zip(alone, theirs, strict=True)):
            for group in optimizer.param_groups:
                group["lr"] = LANES[lane][0] * factor
            for weight, gradient in zip(params, gradients(step), strict=True):
                weight.grad = gradient[lane].clone()
            if clip is not None:
                torch.nn.utils.clip_grad_norm_(params, clip)
            optimizer.step()
        for number, weight in enumerate(stacked):
            for lane in range(len(LANES)):
                torch.testing.assert_close(weight[lane], alone[lane][number], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["adam", "adamw", "sgd"])
def test_it_goes_on_from_its_state(kind: Any) -> None:
    protocols = [Protocol(learning_rate=r, weight_decay=d, optimizer=kind) for r, d in LANES]

    def trained(optimizer: LaneOptimizer, weights: list[Tensor], steps: range) -> None:
        for step in steps:
            for weight, gradient in zip(weights, gradients(step), strict=True):
                weight.grad = gradient
            optimizer.step()

    whole = [weight.requires_grad_() for weight in gradients(99)]
    trained(LaneOptimizer(whole, protocols), whole, range(6))
    first = [weight.requires_grad_() for weight in gradients(99)]
    begun = LaneOptimizer(first, protocols)
    trained(begun, first, range(3))
    again = [weight.detach().clone().requires_grad_() for weight in first]
    later = LaneOptimizer(again, protocols)
    later.load_state_dict(begun.state_dict())
    trained(later, again, range(3, 6))
    assert all(torch.equal(a, b) for a, b in zip(whole, again, strict=True))


def test_a_weight_without_gradient_stays() -> None:
    moved, kept = (torch.ones(2, 3, requires_grad=True) for _ in range(2))
    optimizer = LaneOptimizer([moved, kept], [Protocol(weight_decay=0.5)] * 2)
    moved.grad = torch.ones(2, 3)
    optimizer.step()
    assert not torch.equal(moved, torch.ones(2, 3))
    assert torch.equal(kept, torch.ones(2, 3))
