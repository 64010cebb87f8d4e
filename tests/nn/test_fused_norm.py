"""The fused kernels on a GPU against the formula."""

from typing import Any

import pytest
import torch

from gnn_vpa.nn._batch_norm import BatchNorm
from gnn_vpa.ops import use_backend

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine"),
]


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("rows", [5, 64, 9001])
@pytest.mark.parametrize("width", [3, 64, 130])
@pytest.mark.parametrize("relu", [False, True])
def test_values_gradients_and_statistics_are_those_of_the_formula(
    lanes: int, rows: int, width: int, relu: bool, dtype: torch.dtype
) -> None:
    draw = torch.Generator("cuda").manual_seed(0)
    options: dict[str, Any] = {"device": "cuda", "dtype": dtype, "generator": draw}
    x = torch.randn(lanes * rows, width, **options) * 3 + 5
    nodes = torch.randint(0, 4, (lanes * rows,), device="cuda", generator=draw).float()
    if lanes == 3:
        nodes[rows : 2 * rows] = 0  # an idle lane
    direction, offset = torch.randn(lanes * rows, width, **options), torch.randn(width, **options)
    weights = {name: torch.randn(lanes, width, **options) for name in ("weight", "bias")}
    results = []
    for backend in ("triton", "reference"):
        norm = BatchNorm(width).to("cuda", dtype)
        own = {name: w.clone().requires_grad_() for name, w in weights.items()}
        buffers = {name: b.repeat(lanes, *(1,) * b.dim()) for name, b in norm.named_buffers()}
        rows_in = x.clone().requires_grad_()
        with use_backend(backend):
            arguments, options = (
                (rows_in, nodes),
                {"offset": offset.expand(lanes, -1), "relu": relu},
            )
            for _ in range(2):
                out = torch.func.functional_call(norm, (own, buffers), arguments, options)
            out.backward(direction)
            norm.eval()
            judged = torch.func.functional_call(norm, (own, buffers), arguments, options)
        gradients = [rows_in.grad, *(w.grad for w in own.values())]
        results.append([out.detach(), judged.detach(), *gradients, *buffers.values()])
    rtol, atol = (2e-4, 2e-3) if dtype == torch.float32 else (1e-9, 1e-9)
    for got, expected in zip(*results, strict=True):
        torch.testing.assert_close(got, expected, rtol=rtol, atol=atol)
