"""Norm, ReLU, product, norm and ReLU as one operation against the same one after the other."""

import pytest
import torch
from torch import Tensor, nn

from gnn_vpa.nn import LaneRows
from gnn_vpa.nn._batch_norm import BatchNorm
from gnn_vpa.nn._fused_mlp import MLP, is_fusible
from gnn_vpa.nn._linear import Linear
from gnn_vpa.ops import use_backend

LANES = 3


class Part(nn.Module):
    """The part of GIN's layer behind its first product, and the next layer's first product."""

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.inner, self.last, self.outer = BatchNorm(width), Linear(width, out), BatchNorm(out)
        self.next = Linear(out, width, bias=False)

    def forward(
        self, x: Tensor, rows: LaneRows, offset: Tensor, fused: bool, goes_on: bool
    ) -> tuple[Tensor, Tensor | None]:
        following = self.next.weight if goes_on else None
        if fused:
            return MLP(offset, self.inner, self.last, self.outer, following)(x, rows)
        x = self.inner(x, rows, offset=offset, relu=True)
        x = self.outer(self.last(x, bias=False), rows, offset=self.last.bias, relu=True)
        return x, self.next(x) if goes_on else None


def rows_of(size: int, device: str, idle: bool) -> LaneRows:
    # The second lane may have no node, the third has two blocks; the last block is idle.
    lane = torch.tensor([0, 1, 2, 2, 2], dtype=torch.int32, device=device)
    ptr = torch.tensor([0, 1, 2, 4], dtype=torch.int32, device=device)
    nodes = torch.randint(0, 4, (5, size), generator=torch.Generator().manual_seed(0)).float()
    nodes[1] *= not idle
    nodes[4] = 0
    return LaneRows(nodes.flatten().to(device), lane, ptr, 2)


def trained(
    fused: bool,
    rows_in: torch.dtype,
    rounded: bool,
    size: int,
    widths: tuple[int, int],
    device: str,
    goes_on: bool,
) -> dict[str, Tensor]:
    """Return rows, all gradients and running statistics after two steps.

    What is in rows of a type, all else in float32 or float64; numbers are those of bfloat16 where
    they are ``rounded``, whatever the type.
    """
    draw = torch.Generator().manual_seed(1)

    def random(*shape: int, dtype: torch.dtype) -> Tensor:
        drawn = torch.randn(shape, generator=draw, dtype=torch.float64)
        return (drawn.bfloat16() if rounded else drawn).to(device, dtype)

    plain = torch.float32 if rows_in == torch.bfloat16 else rows_in
    blocks = rows_of(size, device, idle=not rounded)
    width, out_width = widths
    x, direction = (
        random(5 * size, width, dtype=rows_in),
        random(5 * size, out_width, dtype=rows_in),
    )
    direction[4 * size :] = 0  # idle: nothing reads them
    offset = random(LANES, width, dtype=plain)
    model = Part(width, out_width).to(device, plain)
    own = {
        name: random(LANES, *w.shape, dtype=plain).requires_grad_()
        for name, w in model.named_parameters()
    }
    for name in ("last.weight", "next.weight"):
        own[name] = random(5, *own[name].shape[1:], dtype=rows_in).requires_grad_()
    buffers = {name: b.repeat(LANES, *(1,) * b.dim()) for name, b in model.named_buffers()}
    x.requires_grad_()
    arguments = (x, blocks, offset, fused, goes_on)
    with use_backend("triton" if fused else "reference"):
        for _ in range(2):
            out, ahead = torch.func.functional_call(model, (own, buffers), arguments)
        if ahead is None:
            out.backward(direction)
        else:
            both = [direction, random(5 * size, width, dtype=rows_in)]
            both[1][4 * size :] = 0
            torch.autograd.backward([out, ahead], both)
    gradients = {name: w.grad for name, w in own.items() if w.grad is not None}
    assert x.grad is not None
    results = {"out": out.detach(), "x": x.grad, **gradients, **buffers}
    return results if ahead is None else results | {"ahead": ahead.detach()}


@pytest.mark.parametrize("goes_on", [False, True])
@pytest.mark.parametrize(("size", "widths"), [(16, (16, 32)), (128, (32, 16)), (64, (64, 64))])
def test_values_gradients_and_statistics_are_those_of_one_after_the_other(
    kernel_device: str, size: int, widths: tuple[int, int], goes_on: bool
) -> None:
    if kernel_device == "cuda" and widths == (64, 64):
        pytest.skip("in float64 a program of this width needs more memory than it has there")
    got, expected = (
        trained(fused, torch.float64, False, size, widths, kernel_device, goes_on)
        for fused in (True, False)
    )
    assert set(got) == set(expected)
    for name in expected:
        torch.testing.assert_close(got[name], expected[name], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("goes_on", [False, True])
@pytest.mark.parametrize(("size", "widths"), [(16, (16, 16)), (256, (64, 64)), (64, (128, 64))])
def test_rows_in_bfloat16_are_as_exact_as_one_after_the_other(
    kernel_device: str, size: int, widths: tuple[int, int], goes_on: bool
) -> None:
    exact, apart, fused = (
        trained(fused, dtype, True, size, widths, kernel_device, goes_on)
        for fused, dtype in (
            (False, torch.float64),
            (False, torch.bfloat16),
            (True, torch.bfloat16),
        )
    )
    for name, expected in exact.items():
        assert fused[name].dtype == apart[name].dtype
        errors = [float((t[name].double() - expected).norm()) for t in (fused, apart)]
        slack = 2**-6 if kernel_device == "cuda" else 2**-3  # the interpreter cuts digits off
        assert errors[0] <= 2 * errors[1] + slack * float(expected.double().norm()), name


def test_what_a_program_cannot_hold_goes_one_after_the_other(kernel_device: str) -> None:
    def says(dtype: torch.dtype, size: int, width: int, lanes: bool = True) -> bool:
        weight = torch.zeros(5, width, width, dtype=dtype)
        blocks = rows_of(size, kernel_device, idle=False)
        with use_backend("triton"):
            return is_fusible(blocks if lanes else blocks.multiplicity, weight, weight)

    half = torch.bfloat16
    assert says(half, 64, 64)
    assert not says(torch.float32, 64, 64)
    assert not says(half, 8, 64)
    assert not says(half, 48, 64)
    assert not says(half, 64, 48)
    assert not says(half, 64, 256)
    assert not says(half, 64, 64, lanes=False)
