"""What a probe costs: against a plain forward and backward pass, and on a very deep network."""

import time
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor, nn
from torch_geometric.nn import GIN

import gnn_vpa

from ._measure import compare
from .workloads import Workload, standard

WIDTH, DEPTH, DEEP = 64, 5, 128


def networks(device: str, depth: int = DEPTH) -> Iterator[tuple[str, nn.Module]]:
    """Yield PyG's network, the same converted, and one of the paper's, nodes in and out."""
    torch.manual_seed(0)
    plain = GIN(WIDTH, WIDTH, depth).to(device)
    yield "PyG's GIN", plain
    yield "the same, converted", gnn_vpa.convert(plain)[0]
    yield "the paper's GCN+vpa", gnn_vpa.build_model("gcn", WIDTH, 2, depth=depth).to(device)


def inputs(work: Workload, model: nn.Module, device: str) -> tuple[Tensor, ...]:
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(work.num_nodes, WIDTH, generator=draw).to(device)
    edge_index = work.edge_index.to(device)
    if isinstance(model, GIN):
        return x, edge_index
    batch = torch.arange(work.num_nodes, device=device) * 64 // work.num_nodes
    return x, edge_index, batch


def both_passes(model: nn.Module, given: tuple[Tensor, ...]) -> None:
    out = model(*given)
    torch.autograd.grad(out, list(model.parameters()), torch.ones_like(out), allow_unused=True)


def report(device: str = "cpu", seconds: float = 6.0) -> str:
    lines = [
        f"Width {WIDTH}, {DEPTH} layers, float32. Peak memory is what PyTorch allocates.",
        "",
        "| graph | network | forward + backward | probe | of it | memory | with the probe |",
        "|---|---|---|---|---|---|---|",
    ]
    works = standard("cpu")
    for work in works:
        for name, model in networks(device):
            given = inputs(work, model, device)
            contenders: dict[str, Callable[[], object]] = {
                "plain": partial(both_passes, model, given),
                "probe": partial(gnn_vpa.probe, model, *given),
            }
            costs = compare(contenders, device, seconds)
            plain, probed = costs["plain"], costs["probe"]
            lines.append(
                f"| {work.name} | {name} | {plain.seconds * 1e3:.1f} ms "
                f"| {probed.seconds * 1e3:.1f} ms | {probed.seconds / plain.seconds:.2f}x "
                f"| {plain.bytes / 1e6:.0f} MB | {probed.bytes / 1e6:.0f} MB |"
            )
            print(lines[-1], flush=True)
    deep = next((work for work in works if "REDDIT" in work.name), works[0])
    return "\n".join([*lines, "", *(line for line in depth(deep, device))])


def depth(work: Workload, device: str) -> Iterator[str]:
    """Time the probe of a network of 128 layers once, and its verdict, remedies tried."""
    for name, model in networks(device, DEEP):
        given = inputs(work, model, device)
        begin = time.perf_counter()
        found = gnn_vpa.probe(model, *given)
        probed = time.perf_counter()
        found.verdict  # noqa: B018 - remedies are tried here
        end = time.perf_counter()
        line = (
            f"- {name}, {DEEP} layers on {work.name}: {probed - begin:.1f} s, "
            f"{len(found.steps):,} steps; the verdict {end - probed:.1f} s more."
        )
        print(line, flush=True)
        yield line
