"""Masks are fair, and depend on nothing but what they are of."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gnn_vpa.training.own.dropout import kept, row_numbers, step_seeds

CPU = torch.device("cpu")


def mask(rows: int, columns: int, p: float = 0.5, seed: int = 1, call: int = 0) -> torch.Tensor:
    numbers = row_numbers(rows, 0, 0, CPU)
    own = torch.tensor(seed, dtype=torch.int32)
    return kept(torch.Size([rows, columns]), p, own, call, numbers)


@given(
    p=st.floats(0.01, 0.99), seed=st.integers(-(2**31), 2**31 - 1), call=st.integers(0, 500)
)  # fmt: skip
def test_the_share_that_stays_is_as_asked(p: float, seed: int, call: int) -> None:
    stay = mask(400, 64, p, seed, call).double()
    assert abs(stay.mean() - (1 - p)) < 6 * math.sqrt(p * (1 - p) / stay.numel())


@given(seed=st.integers(-(2**31), 2**31 - 1))
def test_rows_columns_calls_and_seeds_are_independent(seed: int) -> None:
    one = mask(400, 64, seed=seed).double() - 0.5
    bound = 6 * 0.25 / math.sqrt(399 * 63)
    others = [mask(400, 64, seed=seed, call=1), mask(400, 64, seed=seed ^ 1)]
    assert abs((one[1:] * one[:-1]).mean()) < bound
    assert abs((one[:, 1:] * one[:, :-1]).mean()) < bound
    for other in others:
        assert abs((one * (other.double() - 0.5)).mean()) < bound


def test_more_rows_and_columns_leave_the_mask_as_it_is() -> None:
    assert torch.equal(mask(50, 8), mask(80, 16)[:50, :8])


def test_self_loops_have_the_same_mask_however_many_edges_are_in_front() -> None:
    few, many = (row_numbers(e + 5, 5, e, CPU) for e in (7, 20))
    assert torch.equal(few[:7], many[:7])
    assert torch.equal(few[7:], many[20:])
    assert len(set(many.tolist())) == 25


def test_steps_and_lanes_have_seeds_of_their_own() -> None:
    seeds = step_seeds([0, 1, 2**63 - 1], steps=100)
    assert seeds.dtype == torch.int32
    assert len(seeds.unique()) == 300
    assert torch.equal(seeds[:50], step_seeds([0, 1, 2**63 - 1], steps=50))


@pytest.mark.parametrize("p", [1e-12, 1 - 1e-12])
def test_nearly_never_and_nearly_always(p: float) -> None:
    assert mask(50, 50, p).double().mean() == (0.0 if p > 0.5 else 1.0)
