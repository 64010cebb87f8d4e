"""A bias and a ReLU at once against one after the other."""

from typing import Any

import pytest
import torch

from gnn_vpa.nn._bias_relu import bias_relu

SHAPES = pytest.mark.parametrize(("lanes", "rows", "width"), [(3, 130, 6), (1, 1, 1), (2, 64, 130)])


@SHAPES
def test_values_and_gradients(lanes: int, rows: int, width: int, dtype: torch.dtype) -> None:
    check(lanes, rows, width, {"device": "cpu", "dtype": dtype})


@SHAPES
def test_values_and_gradients_of_the_kernels(
    kernel_device: str, lanes: int, rows: int, width: int, dtype: torch.dtype
) -> None:
    check(lanes, rows, width, {"device": kernel_device, "dtype": dtype})


@SHAPES
def test_rows_in_bfloat16_meet_a_bias_in_float32(
    kernel_device: str, lanes: int, rows: int, width: int
) -> None:
    torch.manual_seed(0)
    x = torch.randn(lanes * rows, width, device=kernel_device, dtype=torch.bfloat16)
    bias = torch.randn(lanes, width, device=kernel_device)
    direction = torch.randn_like(x)
    own_x, own_bias = x.clone().requires_grad_(), bias.clone().requires_grad_()
    out = bias_relu(own_x, own_bias)
    out.backward(direction)
    assert own_x.grad is not None
    assert own_bias.grad is not None
    assert (out.dtype, own_x.grad.dtype, own_bias.grad.dtype) == (
        torch.bfloat16, torch.bfloat16, torch.float32,
    )  # fmt: skip
    wide = (x.float().view(lanes, rows, width) + bias.unsqueeze(1)).relu()
    # Triton's interpreter cuts digits off where a GPU rounds.
    torch.testing.assert_close(out.float(), wide.flatten(0, 1), rtol=2**-7, atol=0)
    expected = torch.where(wide > 0, direction.view_as(wide), 0)
    assert torch.equal(own_x.grad, expected.flatten(0, 1))
    torch.testing.assert_close(own_bias.grad, expected.float().sum(1))


def check(lanes: int, rows: int, width: int, options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    x, bias = torch.randn(lanes * rows, width, **options), torch.randn(lanes, width, **options)
    direction = torch.randn_like(x)
    results = []
    for together in (True, False):
        own_x, own_bias = x.clone().requires_grad_(), bias.clone().requires_grad_()
        if together:
            out = bias_relu(own_x, own_bias)
        else:
            out = (own_x.view(lanes, rows, width) + own_bias.unsqueeze(1)).relu().flatten(0, 1)
        out.backward(direction)
        results.append([out.detach(), own_x.grad, own_bias.grad])
    for got, expected in zip(*results, strict=True):
        torch.testing.assert_close(got, expected)


def test_nan_stays_nan() -> None:
    out = bias_relu(torch.tensor([[float("nan")], [-1.0]]), torch.zeros(2, 1))
    assert out.isnan().tolist() == [[True], [False]]


def test_nan_stays_nan_in_the_kernel(kernel_device: str) -> None:
    x = torch.tensor([[float("nan")], [-1.0]], device=kernel_device)
    out = bias_relu(x, torch.zeros(2, 1, device=kernel_device))
    assert out.isnan().tolist() == [[True], [False]]


def test_one_model_is_differentiable_twice() -> None:
    x = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(bias_relu, (x, bias))
