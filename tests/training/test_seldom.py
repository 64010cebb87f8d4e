"""What is done beside the work takes a small share of the time."""

import pytest

from gnn_vpa.training.seldom import Seldom


@pytest.mark.parametrize(("cost", "pause"), [(0.001, 1.0), (0.01, 1.0), (0.5, 50.0)])
def test_a_pause_is_long_enough_for_the_share(cost: float, pause: float) -> None:
    clock = [0.0]
    look = Seldom(1.0, clock=lambda: clock[0])
    assert look.is_due()
    with look:
        assert look.is_due()  # as long as it is not done
        clock[0] += cost
    assert look.wait() == pytest.approx(pause)
    clock[0] += pause - 1e-6
    assert not look.is_due()
    clock[0] += 2e-6
    assert look.is_due()
    assert look.wait() == 0.0
