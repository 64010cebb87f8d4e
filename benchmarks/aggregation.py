"""One aggregation: ours against PyG's layer on ``edge_index`` and on a cached CSR matrix.

The layer is PyG's ``SimpleConv``, which does nothing but aggregate.
"""

import warnings
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch_geometric.nn import SimpleConv
from torch_geometric.nn.aggr import VariancePreservingAggregation

from gnn_vpa.ops import Graph, aggregate, backend
from gnn_vpa.pyg import convert

from ._measure import Cost, captured, compare
from .history import Ratios
from .workloads import Workload, random_graph, standard

WIDTH = 64
OURS, DROP_IN = "ours: aggregate(x, graph)", "ours: convert(layer)(x, edge_index)"
PEER, CSR_PEER = "PyG: vpa on edge_index", "PyG: sum on CSR"


def layers(
    work: Workload, device: str, dtype: torch.dtype
) -> dict[str, Callable[[Tensor], Tensor]]:
    edge_index = work.edge_index.to(device)
    graph = Graph(edge_index, work.num_nodes)
    # The order matters: made after a layer of the same class with vpa, PyG's sum fails on CSR.
    plain = SimpleConv(aggr="sum")
    peer = SimpleConv(aggr=VariancePreservingAggregation())
    drop_in, _ = convert(SimpleConv(aggr="sum"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        values = torch.ones(edge_index.shape[1], dtype=dtype, device=device)
        shape = (work.num_nodes, work.num_nodes)
        # Not through PyG's to_torch_csr_tensor, which would drop parallel edges.
        matrix = torch.sparse_csr_tensor(
            graph.by_target.rowptr, graph.by_target.col, values, shape, check_invariants=False
        )
        matrix = matrix.requires_grad_(False)
    return {
        OURS: lambda x: aggregate(x, graph, "vpa"),
        DROP_IN: lambda x: drop_in(x, edge_index),
        PEER: lambda x: peer(x, edge_index),
        CSR_PEER: lambda x: plain(x, matrix),
    }


def check_equal(work: Workload, device: str) -> None:
    """Values and gradients agree in float64 before any speed counts."""
    x = torch.randn(work.num_nodes, WIDTH, dtype=torch.float64, device=device)
    probe = torch.randn_like(x)
    results = {}
    for name, layer in layers(work, device, torch.float64).items():
        leaf = x.clone().requires_grad_()
        out = layer(leaf)
        out.backward(probe)
        results[name] = (out.detach(), leaf.grad)
    for name in (OURS, DROP_IN):
        torch.testing.assert_close(results[name], results[PEER])
    degree = torch.bincount(work.edge_index[1], minlength=work.num_nodes).to(device)
    scale = degree.clamp(min=1).sqrt().unsqueeze(1)
    torch.testing.assert_close(results[OURS][0] * scale, results[CSR_PEER][0])


def measure(work: Workload, device: str, seconds: float) -> dict[str, dict[str, Cost]]:
    x = torch.randn(work.num_nodes, WIDTH, device=device)
    leaf, probe = x.clone().requires_grad_(), torch.randn_like(x)
    contenders = layers(work, device, torch.float32)

    def forward(layer: Callable[[Tensor], Tensor]) -> None:
        with torch.no_grad():
            layer(x)

    def both(layer: Callable[[Tensor], Tensor]) -> None:
        torch.autograd.grad(layer(leaf), leaf, probe)

    passes = {"forward": forward, "forward + backward": both}
    costs = {}
    for name, run in passes.items():
        works = {n: partial(run, layer) for n, layer in contenders.items()}
        costs[name] = compare(works, device, seconds)
        if device == "cuda":
            # PyG's sparse product copies from the host when it is differentiated: no capture.
            able = [n for n in works if n != CSR_PEER or name == "forward"]
            replays = {n: captured(works[n]) for n in able}
            again = compare(replays, device, seconds)
            costs[f"{name}, captured"] = {
                n: Cost(cost.seconds, costs[name][n].bytes) for n, cost in again.items()
            }
    return costs


def grouping(work: Workload, device: str, seconds: float) -> Cost:
    """What making the graph costs: once for an ``edge_index``, whatever the number of layers."""
    edge_index = work.edge_index.to(device)
    return compare({"": lambda: Graph(edge_index, work.num_nodes).by_source}, device, seconds)[""]


def report(device: str, seconds: float, ratios: Ratios) -> str:
    lines = [
        f"Width {WIDTH}, float32, backend {backend(device)}.",
        "",
        "| graph | pass | contender | time | slower than ours | peak memory | of the peer's |",
        "|---|---|---|---|---|---|---|",
    ]
    notes = []
    for work in standard(device):
        check_equal(work, device)
        for name, costs in measure(work, device, seconds).items():
            for ours, peer in ((OURS, PEER), (DROP_IN, PEER), (OURS, CSR_PEER)):
                if peer in costs:
                    times = {"ours": costs[ours].seconds, "peer": costs[peer].seconds}
                    ratios.add(work.name, name, f"{ours} over {peer}", **times)
            for contender, cost in costs.items():
                lines.append(
                    f"| {work.name} | {name} | {contender} | {cost.seconds * 1e3:.3f} ms "
                    f"| {cost.seconds / costs[OURS].seconds:.2f}x | {cost.bytes / 1e6:.1f} MB "
                    f"| {cost.bytes / costs[PEER].bytes:.2f} |"
                )
                print(lines[-1], flush=True)
        cost = grouping(work, device, seconds / 3)
        notes.append(
            f"- {work.name}: both groupings of the edges {cost.seconds * 1e3:.2f} ms, once."
        )
    return "\n".join([*lines, "", *notes])


def bandwidth(num_nodes: int = 4_000_000, degree: int = 16) -> str:
    """Set the traffic of one aggregation, on a graph larger than the cache, against a copy's.

    Bytes that must move: for each edge its source's row (the graph is random and its features
    are many times the cache, so a row is not there from the edge before) and its index; for
    each target its row, pointer and scale.
    """
    work = random_graph(num_nodes, num_nodes * degree)
    graph = Graph(work.edge_index.cuda(), num_nodes)
    x = torch.randn(num_nodes, WIDTH, device="cuda", requires_grad=True)
    probe, other = torch.randn_like(x), torch.empty_like(x)
    one_way = graph.num_edges * (WIDTH * 4 + 4) + num_nodes * (WIDTH * 4 + 4 + 4)

    def both() -> None:
        torch.autograd.grad(aggregate(x, graph, "vpa"), x, probe)

    def forward() -> None:
        with torch.no_grad():
            aggregate(x, graph, "vpa")

    contenders = {"copy": lambda: other.copy_(probe), "forward": forward, "both": both}
    costs = compare(contenders, "cuda")
    copy = 2 * x.numel() * 4 / costs["copy"].seconds
    lines = [
        f"{num_nodes:,} nodes, {graph.num_edges:,} edges, width {WIDTH}, float32 "
        f"({x.numel() * 4 / 1e9:.1f} GB of features).",
        "",
        "| what | time | bytes that must move | rate | of the copy's |",
        "|---|---|---|---|---|",
        f"| copy | {costs['copy'].seconds * 1e3:.2f} ms | {2 * x.numel() * 4 / 1e9:.2f} GB "
        f"| {copy / 1e12:.2f} TB/s | 1 |",
    ]
    for name, size in (("forward", one_way), ("both", 2 * one_way)):
        rate = size / costs[name].seconds
        label = "forward" if name == "forward" else "forward + backward"
        lines.append(
            f"| {label} | {costs[name].seconds * 1e3:.2f} ms | {size / 1e9:.2f} GB "
            f"| {rate / 1e12:.2f} TB/s | {rate / copy:.0%} |"
        )
    return "\n".join(lines)
