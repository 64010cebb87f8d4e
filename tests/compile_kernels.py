"""Compile every kernel for a GPU of compute capability 9.0; none is needed, and nothing is run.

`test_kernels.py` starts this as a program, because Triton either interprets or compiles.
"""

from collections.abc import Callable
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime.jit import JITFunction

from gnn_vpa.nn import LaneRows, _attention_kernels, _bias_kernels, _mlp_kernels, _norm_kernels
from gnn_vpa.ops import _triton, _triton_edge_attention, _triton_edges
from gnn_vpa.ops._csr import CSR
from gnn_vpa.ops._ungrouped import UngroupedEdges
from gnn_vpa.training import _fill_kernels
from gnn_vpa.training.fill import FilledRows
from gnn_vpa.training.plan import LevelSlots, LinkSlots
from gnn_vpa.training.tables import Links


class Target:
    """What Triton asks a driver for before it compiles."""

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


def compile_only(launch: Callable[..., Any]) -> Callable[..., Any]:
    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        kernel = launch(self, *args, grid=grid, warmup=True, **kwargs)
        print(kernel.name if "cubin" in kernel.asm else "")
        return kernel

    return run


def graph(lengths: list[int], longest: int) -> CSR:
    ends = torch.tensor([0, *lengths]).cumsum(0).int()
    edges = torch.zeros(int(ends[-1]), dtype=torch.int32)
    return CSR(ends, edges, edges, longest)


def operators(dtype: torch.dtype) -> None:
    few, many = [2, 1, 3], [20, 30]
    for lengths, longest in ((few, 3), (few, 5000), (many, 30), (many, 5000)):
        csr, rows = graph(lengths, longest), len(lengths)
        edges = sum(lengths)
        w, m = torch.ones(edges, 1, dtype=dtype), torch.ones(edges, dtype=torch.long)
        x = torch.ones(4, 1, 64, dtype=dtype)
        a, b = (torch.ones(n, 1, dtype=dtype) for n in (rows, 4))
        _triton.spmm(x, w, a, b, csr)
        _triton.segmax(x[:, 0], m, csr)
        whole = torch.ones(rows, 64, dtype=dtype)
        _triton.segmax_gradient(whole, x[:, 0], whole, m, csr, csr)
    heads = torch.ones(edges, 2, dtype=dtype)
    x = torch.ones(4, 2, 64, dtype=dtype)
    _triton.spmm(x, heads, None, torch.ones(4, 2, dtype=dtype), csr)
    _triton.sddmm(torch.ones(rows, 2, 64, dtype=dtype), x, a, b, csr)


def attention(dtype: torch.dtype) -> None:
    for lengths in ([2, 1, 3], [20, 30]):
        csr, rows = graph(lengths, 30), len(lengths)
        x, sent, received = (torch.ones(n, f, dtype=dtype) for n, f in ((4, 64), (4, 1), (rows, 1)))
        times, target = torch.ones(sum(lengths), dtype=dtype), received[:, 0]
        _attention_kernels.attend(x, sent, received, csr, times, target, 0.2)
        _attention_kernels.gradients(
            x, x, sent, received, csr, csr, times, target, target, target, 0.2
        )


def norm_and_bias(dtype: torch.dtype) -> None:
    x, nodes, scale = (torch.ones(*shape, dtype=dtype) for shape in ((128, 64), (128,), (2, 64)))
    lane, ptr = (torch.tensor(t, dtype=torch.int32) for t in ([0, 1], [0, 1, 2]))
    tracked = torch.zeros(2, dtype=torch.long)
    running, settings = (scale, scale, tracked), (1e-5, 0.1, True)
    for blocks in (None, LaneRows(nodes, lane, ptr, 1)):
        parts = _norm_kernels.parts_of(128, 2, blocks)
        _norm_kernels.train(x, nodes, scale, scale, scale, running, *settings, parts)
        _norm_kernels.judge(x, scale, scale, scale, scale, scale, 1e-5, True, parts)
        statistics = scale, scale, nodes[:2]
        _norm_kernels.gradients(x, x, nodes, scale, scale, *statistics, 1e-5, True, parts)
    out = _bias_kernels.forward(x.view(2, 64, 64), scale)
    _bias_kernels.backward(out, out, dtype)


def mlp(dtype: torch.dtype) -> None:
    x, nodes, scale = torch.ones(128, 64, dtype=dtype), torch.ones(128), torch.ones(2, 64)
    lane, ptr = (torch.tensor(t, dtype=torch.int32) for t in ([0, 1], [0, 1, 2]))
    running = (scale, scale, torch.zeros(2, dtype=torch.long))
    norm = _mlp_kernels.Norm(scale, scale, scale, running, 1e-5, 0.1)
    weight = torch.ones(2, 64, 64, dtype=dtype)
    parts = _norm_kernels.parts_of(128, 2, LaneRows(nodes, lane, ptr, 1))
    for following in (None, weight):
        out, ahead, z, seen, behind = _mlp_kernels.train(
            x, nodes, norm, weight, norm, following, parts
        )
        _mlp_kernels.gradients(
            out, ahead, x, nodes, norm, weight, norm, following, z, seen, behind, parts
        )


def fill(dtype: torch.dtype) -> None:
    numbers = torch.zeros(9, dtype=torch.int32)
    slots: dict[str, Any] = dict.fromkeys(LevelSlots._fields, numbers)
    level = LevelSlots(**slots)
    links = LinkSlots(**dict.fromkeys(LinkSlots._fields, numbers))
    row, nodes, slot = _fill_kernels.rows(level, torch.ones(9, dtype=dtype), 40)

    filled = FilledRows(row, nodes, slot)
    fields: dict[str, Any] = dict.fromkeys(Links._fields, numbers)
    weight = torch.ones(2, 9, dtype=dtype)
    table = Links(**fields | {"weight": weight, "stride": 2, "longest": 9, "back_longest": 9})
    _fill_kernels.links(table, links, (level, level), (filled, filled), numbers[:3], 40)


def ungrouped(dtype: torch.dtype) -> None:
    ends, fault = torch.zeros(25, dtype=torch.long), torch.zeros(1, dtype=torch.long)
    edges = UngroupedEdges(ends, ends, 25, 9, 9, is_listed=True)
    of_all = _triton_edges.count(edges, fault, apart=False)
    apart = _triton_edges.count(edges, fault, apart=True)
    for width in (1, 7, 64, 100):
        x = torch.ones(9, width, dtype=dtype)
        for is_back in (False, True):
            for exponent in (0.0, 0.5, 1.0, 0.3):
                for own, eps in (("none", None), ("eps", x[0])):
                    _triton_edges.sum_along(x, edges, of_all, exponent, own, eps, 1.0, is_back)
            _triton_edges.sum_along(x, edges, apart, 0.0, "normalised", None, 1.0, is_back)
            _triton_edges.sum_along(x, edges, of_all, 0.0, "roots", None, 1.0, is_back)
        readout = edges._replace(num_sources=25, is_listed=False)
        _triton_edges.sum_along(x, readout, of_all, 0.5, "none", None, 1.0, False)
        heads = x.unsqueeze(1)
        for has_loops in (False, True):
            parts = _triton_edge_attention.scores(heads, heads, heads)
            kept = _triton_edge_attention.attend(heads, parts, edges, 0.2, has_loops)
            _triton_edge_attention.attend_back(heads, heads, parts, kept, edges, 0.2, has_loops)


if __name__ == "__main__":
    triton.runtime.driver.set_active(Target())
    JITFunction.run = compile_only(JITFunction.run)
    for part in (operators, attention, norm_and_bias, fill):
        part(torch.float32)
    mlp(torch.bfloat16)
    _triton_edges._IS_KNOWN = False  # nothing is launched
    ungrouped(torch.float32)
