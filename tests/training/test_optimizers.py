"""Which optimiser serves lanes, and how the learning rate goes by epoch."""

from dataclasses import replace

import pytest
import torch

from gnn_vpa.training import Protocol
from gnn_vpa.training.lane_optimizer import LaneOptimizer
from gnn_vpa.training.optimizers import optimizer_for, rate_factor


@pytest.mark.parametrize("schedule", ["constant", "cosine", "step"])
def test_the_rate_is_that_of_torchs_schedulers(schedule: str) -> None:
    protocol = Protocol(epochs=170, schedule=schedule, learning_rate=0.2)  # type: ignore[arg-type]
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.2)
    theirs: torch.optim.lr_scheduler.LRScheduler = torch.optim.lr_scheduler.StepLR(
        optimizer, 50, gamma=0.5 if schedule == "step" else 1.0
    )
    if schedule == "cosine":
        theirs = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=170)
    for epoch in range(protocol.epochs):
        expected = optimizer.param_groups[0]["lr"]
        assert 0.2 * rate_factor(protocol, epoch) == pytest.approx(expected, abs=1e-12)
        optimizer.step()
        theirs.step()


def test_torchs_own_serves_where_lanes_are_alike() -> None:
    weights, usual = [torch.zeros(2, 3, requires_grad=True)], Protocol()
    alike, apart = [usual, usual], [usual, replace(usual, learning_rate=0.1)]
    for captured in (False, True):
        assert not isinstance(optimizer_for(weights, alike, captured), LaneOptimizer)
        assert isinstance(optimizer_for(weights, apart, captured), LaneOptimizer)
    # A captured step reads a rate that changes from a tensor.
    falling = [replace(usual, schedule="step")] * 2
    assert isinstance(optimizer_for(weights, falling, captured=True), LaneOptimizer)
    assert not isinstance(optimizer_for(weights, falling, captured=False), LaneOptimizer)
