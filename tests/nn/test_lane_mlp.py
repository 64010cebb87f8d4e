"""A layer of lanes as one operation against its norms and products one after the other."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.nn import functional as F

from gnn_vpa.nn import LaneRows
from gnn_vpa.nn._batch_norm import BatchNorm
from gnn_vpa.nn._fused_mlp import MLP, is_fusible
from gnn_vpa.nn._lane_mlp import LaneMLP
from gnn_vpa.nn._linear import Linear

LANES, ROWS, WIDTH, OUT = 3, 5, 4, 6
COUNTS = [[3, 1, 0, 2, 1], [0, 1, 1, 0, 4], [0, 0, 0, 0, 0]]  # the last lane is idle
EPS = (1e-3, 1e-2)


def random(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64).requires_grad_()


def rows_of_lanes() -> LaneRows:
    return LaneRows.even(torch.tensor(COUNTS, dtype=torch.float64).flatten(), LANES)


def arguments(goes_on: bool, offset: float = 0.0) -> tuple[Any, ...]:
    x = (random(LANES, ROWS, WIDTH) + offset).detach().requires_grad_()
    norms = [random(LANES, 1, WIDTH) for _ in range(4)]
    following = random(LANES, OUT, WIDTH) if goes_on else None
    weight = random(LANES, WIDTH, WIDTH)
    return x, rows_of_lanes().share, *norms[:2], weight, *norms[2:], following, EPS


def formula(*given: Any) -> tuple[Tensor, Tensor | None]:
    """Write the layer down, and leave its derivative to autograd."""
    x, share, scale, shift, weight, outer_scale, outer_shift, following, eps = given

    def norm(rows: Tensor, scale: Tensor, shift: Tensor, eps: float) -> Tensor:
        mean = (share * rows).sum(1, keepdim=True)
        var = (share * (rows - mean) ** 2).sum(1, keepdim=True)
        return F.relu(scale * (rows - mean) / (var + eps).sqrt() + shift)

    out = norm(norm(x, scale, shift, eps[0]) @ weight.mT, outer_scale, outer_shift, eps[1])
    return out, None if following is None else out @ following.mT


def results(function: Callable[..., Any], given: tuple[Any, ...], used: str) -> list[Tensor]:
    """Return both results and all gradients, of those results that are ``used``."""
    out, ahead, *_ = function(*given)
    there = {"h": out} if ahead is None else {"h": out, "y": ahead}
    loss = sum((there[name].pow(3).sum() for name in used), torch.zeros(()))
    leaves = [t for t in given if isinstance(t, Tensor) and t.requires_grad]
    grads = torch.autograd.grad(loss, leaves, allow_unused=True)
    zeros = [torch.zeros_like(t) if g is None else g for t, g in zip(leaves, grads, strict=True)]
    return [*there.values(), *zeros]


@pytest.mark.parametrize("offset", [0.0, 100.0])
@pytest.mark.parametrize(
    ("goes_on", "used"), [(False, "h"), (True, "hy"), (True, "h"), (True, "y")]
)
def test_values_and_gradients_are_those_of_the_formula(
    goes_on: bool, used: str, offset: float
) -> None:
    given = arguments(goes_on, offset)
    got, expected = (results(function, given, used) for function in (LaneMLP.apply, formula))
    torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("goes_on", [False, True])
def test_derivatives_are_those_of_differences(goes_on: bool) -> None:
    def both(*given: Any) -> tuple[Tensor, ...]:
        return tuple(t for t in LaneMLP.apply(*given)[:2] if t is not None)

    assert gradcheck(both, arguments(goes_on))


def test_nothing_that_was_given_is_changed() -> None:
    given = arguments(goes_on=True)
    before = [t.detach().clone() for t in given[:-1]]
    direction = [torch.ones(LANES, ROWS, width, dtype=torch.float64) for width in (WIDTH, OUT)]
    torch.autograd.backward(LaneMLP.apply(*given)[:2], direction)
    assert all(torch.equal(t, kept) for t, kept in zip(given[:-1], before, strict=True))
    assert all(bool((part == 1).all()) for part in direction)


def test_running_statistics_are_those_of_norms_one_after_the_other() -> None:
    def part() -> MLP:
        norms = [BatchNorm(WIDTH).double() for _ in range(2)]
        for norm in norms:
            norm.weight, norm.bias = (torch.nn.Parameter(own[norms.index(norm)]) for own in affine)
            norm.running_mean, norm.running_var = torch.zeros(2, LANES, WIDTH).double().unbind()
            norm.num_batches_tracked = torch.zeros(LANES, dtype=torch.int64)
        last = Linear(WIDTH, WIDTH).double()
        last.weight, last.bias = torch.nn.Parameter(weight), torch.nn.Parameter(bias)
        return MLP(offset, norms[0], last, norms[1], None)

    affine = torch.randn(2, 2, LANES, WIDTH).double()
    weight, bias = torch.randn(LANES, WIDTH, WIDTH).double(), torch.randn(LANES, WIDTH).double()
    x, offset = torch.randn(LANES * ROWS, WIDTH).double(), torch.randn(LANES, WIDTH).double()
    rows, one, two = rows_of_lanes(), part(), part()
    assert is_fusible(rows, one.last.weight, None)
    for _ in range(2):
        out, _ = one(x, rows)
        first = two.inner(x, rows, offset=two.offset, relu=True)
        expected = two.outer(two.last(first, bias=False), rows, offset=two.last.bias, relu=True)
        torch.testing.assert_close(out, expected, rtol=1e-9, atol=1e-9)
    for got, norm in ((one.inner, two.inner), (one.outer, two.outer)):
        for name, kept in norm.named_buffers():
            torch.testing.assert_close(got.get_buffer(name), kept, rtol=1e-9, atol=1e-9)
    assert one.inner.num_batches_tracked.tolist() == [2, 2, 0]


def test_layers_that_a_transform_looks_into_are_not_one_operation() -> None:
    rows, weight = rows_of_lanes(), torch.zeros(LANES, WIDTH, WIDTH)
    seen: list[bool] = []

    def inside(weight: Tensor) -> Tensor:
        seen.append(is_fusible(rows, weight, None))
        return weight.sum()

    torch.func.grad(inside)(weight)
    assert seen == [False]
    assert is_fusible(rows, weight, None)
    assert not is_fusible(rows, weight[:, :2], None)  # another width behind the product
    assert not is_fusible(rows.multiplicity, weight, None)
