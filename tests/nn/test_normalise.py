from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from gnn_vpa.nn._normalise import normalise

COUNTS = torch.tensor([[3, 1, 0, 2], [0, 1, 1, 0], [0, 0, 0, 0]])  # the last lane is idle


def _plain(
    rows: Tensor, share: Tensor, scale: Tensor, shift: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Write the formula down, and leave its derivative to autograd."""
    mean = (share * rows).sum(1, keepdim=True)
    var = (share * (rows - mean) ** 2).sum(1, keepdim=True)
    return scale * (rows - mean) / (var + eps).sqrt() + shift, mean, var


def _arguments(dtype: torch.dtype, offset: int = 0) -> tuple[Any, ...]:
    counts = COUNTS.to(dtype).unsqueeze(2)
    share = counts / counts.sum(1, keepdim=True).clamp(min=1)
    rows = (torch.randn(3, 4, 2, dtype=dtype) + offset).requires_grad_()
    scale, shift = (torch.randn(3, 1, 2, dtype=dtype, requires_grad=True) for _ in range(2))
    return rows, share, scale, shift, 0.1


def _gradients(
    function: Callable[..., Any], arguments: Any, direction: Tensor
) -> tuple[Tensor, ...]:
    out = function(*arguments)[0]
    inputs = [t for t in arguments[:-1] if t.requires_grad]
    return torch.autograd.grad((out * direction).sum(), inputs)


@pytest.mark.parametrize("offset", [0, 100])
def test_values_and_gradients_are_those_of_the_formula(dtype: torch.dtype, offset: int) -> None:
    arguments = _arguments(dtype, offset)
    loose: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-3} if dtype == torch.float32 else {}
    torch.testing.assert_close(normalise(*arguments), _plain(*arguments), **loose)
    direction = torch.randn(3, 4, 2, dtype=dtype)
    expected = _gradients(_plain, arguments, direction)
    torch.testing.assert_close(_gradients(normalise, arguments, direction), expected, **loose)


def test_derivatives_of_first_and_second_order() -> None:
    arguments = _arguments(torch.float64)
    assert gradcheck(lambda *given: normalise(*given)[0], arguments)
    assert gradgradcheck(lambda *given: normalise(*given)[0], arguments)


def test_mean_and_variance_take_no_gradient() -> None:
    _, mean, var = normalise(*_arguments(torch.float64))
    assert not mean.requires_grad
    assert not var.requires_grad


def test_compiled_it_is_the_same(dtype: torch.dtype) -> None:
    arguments = _arguments(dtype)
    compiled = torch.compile(normalise, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*arguments), normalise(*arguments))
    direction = torch.randn(3, 4, 2, dtype=dtype)
    expected = _gradients(_plain, arguments, direction)
    torch.testing.assert_close(_gradients(compiled, arguments, direction), expected)


def test_under_transforms_of_torch_func() -> None:
    rows, *others = _arguments(torch.float64)
    rows, others = rows.detach(), [t.detach() for t in others[:-1]] + others[-1:]

    def loss(function: Callable[..., Any], rows: Tensor) -> Tensor:
        return function(rows, *others)[0].pow(3).sum()

    gradient = torch.func.grad(loss, argnums=1)
    torch.testing.assert_close(gradient(normalise, rows), gradient(_plain, rows))
    several = torch.stack([rows, 2 * rows + 1])
    batched = torch.func.vmap(lambda rows: gradient(normalise, rows))(several)
    torch.testing.assert_close(batched, torch.stack([gradient(_plain, r) for r in several]))
