"""Batch normalisation and ReLU as one operation against the formula."""

import pytest
import torch
from torch import Tensor

from gnn_vpa.nn import LaneRows
from gnn_vpa.nn._batch_norm import BatchNorm
from gnn_vpa.ops import use_backend

SIZES = [(1, 5, 3), (3, 64, 64), (3, 700, 3), (1, 200, 130), (1, 4200, 3)]  # lanes, rows, width


@pytest.mark.parametrize(("lanes", "rows", "width"), SIZES)
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.sampled(6)
def test_values_gradients_and_statistics_are_those_of_the_formula(
    kernel_device: str, lanes: int, rows: int, width: int, relu: bool, dtype: torch.dtype
) -> None:
    draw = torch.Generator().manual_seed(0)
    nodes = torch.randint(0, 4, (lanes * rows,), generator=draw).float()
    if lanes == 3:
        nodes[rows : 2 * rows] = 0  # an idle lane
    check(nodes.to(kernel_device), lanes, lanes * rows, width, relu, dtype, kernel_device)


def test_lanes_may_own_blocks_of_rows(kernel_device: str, dtype: torch.dtype) -> None:
    # The second lane has no node, the third two blocks; the last block is idle.
    lane = torch.tensor([0, 1, 2, 2, 2], dtype=torch.int32, device=kernel_device)
    ptr = torch.tensor([0, 1, 2, 4], dtype=torch.int32, device=kernel_device)
    nodes = torch.randint(0, 4, (5, 16), generator=torch.Generator().manual_seed(0)).float()
    nodes[1] = nodes[4] = 0
    blocks = LaneRows(nodes.flatten().to(kernel_device), lane, ptr, 2)
    check(blocks, 3, 80, 5, True, dtype, kernel_device)


def test_rows_in_bfloat16_are_normalised_in_float32(kernel_device: str) -> None:
    lane = torch.tensor([0, 1, 1], dtype=torch.int32, device=kernel_device)
    ptr = torch.tensor([0, 1, 3], dtype=torch.int32, device=kernel_device)
    draw = torch.Generator().manual_seed(0)
    nodes = torch.randint(0, 4, (96,), generator=draw).float().to(kernel_device)
    x, direction = (torch.randn(96, 5, generator=draw).bfloat16() for _ in range(2))
    results = []
    for backend in ("triton", "reference"):
        norm, rows = BatchNorm(5).to(kernel_device), x.to(kernel_device).requires_grad_()
        own = {
            name: w.detach().repeat(2, 1).requires_grad_() for name, w in norm.named_parameters()
        }
        buffers = {name: b.repeat(2, *(1,) * b.dim()) for name, b in norm.named_buffers()}
        with use_backend(backend):
            blocks = LaneRows(nodes, lane, ptr, 2)
            out = torch.func.functional_call(norm, (own, buffers), (rows, blocks), {"relu": True})
            out.backward(direction.to(kernel_device))
        statistics = [buffers["running_mean"], buffers["running_var"]]
        results.append([out.detach(), rows.grad, *(w.grad for w in own.values()), *statistics])
    for got, expected in zip(*results, strict=True):
        assert got.dtype == expected.dtype
        # The formula in plain PyTorch rounds its gradients on the way, a kernel at the end.
        tolerance = 2**-7 if got.dtype == torch.bfloat16 else 1e-2
        torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("mean", [0.0, 1e3])
def test_a_variance_far_from_zero_keeps_its_digits(kernel_device: str, mean: float) -> None:
    draw = torch.Generator().manual_seed(0)
    x = mean + torch.randn(1000, 3, generator=draw, dtype=torch.float64)
    nodes = torch.randint(0, 3, (1000,), generator=draw).double()
    nodes[:200] = 0  # the first that are read count nothing
    norm = BatchNorm(3).to(kernel_device)
    with use_backend("triton"):
        norm(x.float().to(kernel_device), nodes.float().to(kernel_device))
    exact = x.float().double()
    centre = (nodes @ exact) / nodes.sum()
    variance = (nodes @ (exact - centre).square()) / (nodes.sum() - 1)
    now = (norm.running_var.double().cpu() - 0.9) / 0.1
    torch.testing.assert_close(now, variance, rtol=1e-4, atol=0)


def check(
    nodes: Tensor | LaneRows,
    lanes: int,
    rows: int,
    width: int,
    relu: bool,
    dtype: torch.dtype,
    device: str,
) -> None:
    draw = torch.Generator().manual_seed(1)

    def random(*shape: int) -> Tensor:
        return torch.randn(shape, generator=draw, dtype=dtype).to(device)

    x, direction, offset = random(rows, width) * 3 + 5, random(rows, width), random(width)
    if isinstance(nodes, LaneRows):
        direction[int(nodes.ptr[-1]) * (rows // nodes.lane.numel()) :] = (
            0  # idle: nothing reads them
        )
    weights = {name: random(lanes, width) for name in ("weight", "bias")}
    results = []
    for backend in ("triton", "reference"):
        norm = BatchNorm(width).to(device, dtype)
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
