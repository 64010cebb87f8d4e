"""A layer's attention as one operation against its definition, target by target."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from gnn_vpa.nn import GAT, Hop, WeightedGraph
from gnn_vpa.ops import Graph, use_backend

SLOPE = 0.2
ROWS = {
    "few": [3, 0, 1, 8, 2, 5, 0],  # rows side by side
    "one among few": [1, 0, 50, 2, *[0] * 20],  # … and a longer one alone
    "many": [20, 0, 33, 9],  # a program a row
}


def graph_of(
    lengths: list[int], num_sources: int, device: str, multiplicity: Tensor | None = None
) -> tuple[Graph, Tensor]:
    """Return a random graph of these in-degrees, its edges in the order of their targets."""
    draw = torch.Generator().manual_seed(0)
    target = torch.repeat_interleave(torch.tensor(lengths))
    source = torch.randint(num_sources, (len(target),), generator=draw)
    edges = torch.stack([source, target]).to(device)
    return Graph(edges, (num_sources, len(lengths)), multiplicity), edges


def by_definition(
    x: Tensor, sent: Tensor, received: Tensor, edges: Tensor, counts: Tensor, power: Tensor
) -> Tensor:
    source, target = edges
    logits = torch.nn.functional.leaky_relu(sent[source] + received[target], SLOPE).squeeze(1)
    out = []
    for i, p in enumerate(power):
        mine = (target == i) & (counts > 0)
        if not bool(mine.any()):
            out.append(x[:0].sum(0))
            continue
        times = counts[mine].to(x)
        mass = torch.exp(logits[mine] - logits[mine].max().detach())
        share = mass / (times * mass).sum()
        scale = (times * share**2).sum().detach() ** -p
        out.append(scale * (times * share) @ x[source[mine]])
    return torch.stack(out)


def fused(x: Tensor, sent: Tensor, received: Tensor, graph: Graph, power: Tensor) -> Tensor:
    from gnn_vpa.nn._fused_attention import FusedAttention

    return FusedAttention.apply(x, sent, received, graph, power, SLOPE)


def check(
    graph: Graph,
    edges: Tensor,
    counts: Tensor,
    width: int,
    dtype: torch.dtype,
    change: Callable[[Tensor, Tensor, Tensor], object] = lambda x, sent, received: None,
) -> None:
    """Compare values and gradients; ``change`` may put special values into the inputs."""
    draw = torch.Generator().manual_seed(1)
    sizes = (graph.num_sources, width), (graph.num_sources, 1), (graph.num_targets, 1)
    inputs = [torch.randn(size, generator=draw, dtype=dtype).to(edges.device) for size in sizes]
    change(*inputs)
    power = torch.rand(graph.num_targets, generator=draw, dtype=dtype).to(edges.device)
    direction = torch.randn(graph.num_targets, width, generator=draw, dtype=dtype)
    results = []
    ways: list[Any] = [(fused, (graph,)), (by_definition, (edges, counts))]
    for function, structure in ways:
        leaves = [t.clone().requires_grad_() for t in inputs]
        out = function(*leaves, *structure, power)
        gradients = torch.autograd.grad(out, leaves, direction.to(out), materialize_grads=True)
        results.append([out.detach(), *gradients])
    # Sums of up to 50 terms; the exponent function of a GPU is exact to two units.
    tolerance = 1e-10 if dtype == torch.float64 else 1e-4
    for got, expected in zip(*results, strict=True):
        torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("rows", list(ROWS))
@pytest.mark.parametrize("width", [1, 5, 128])
@pytest.mark.parametrize("counted", [False, True], ids=["single", "multiple"])
@pytest.mark.sampled(12)
def test_values_and_gradients(
    kernel_device: str, rows: str, width: int, counted: bool, dtype: torch.dtype
) -> None:
    lengths = ROWS[rows]
    counts = torch.ones(sum(lengths), dtype=torch.long)
    if counted:
        counts = torch.randint(0, 3, (sum(lengths),), generator=torch.Generator().manual_seed(7))
    counts = counts.to(kernel_device)
    graph, edges = graph_of(lengths, 6, kernel_device, counts if counted else None)
    check(graph, edges, counts, width, dtype)


@pytest.mark.parametrize("rows", list(ROWS))
def test_rows_in_bfloat16_are_attended_in_float32(kernel_device: str, rows: str) -> None:
    lengths = ROWS[rows]
    graph, edges = graph_of(lengths, 6, kernel_device)
    draw = torch.Generator().manual_seed(1)
    x = torch.randn(6, 5, generator=draw).bfloat16().to(kernel_device)
    sent, received = (
        torch.randn(size, 1, generator=draw).to(kernel_device) for size in (6, len(lengths))
    )
    power = torch.rand(len(lengths), generator=draw).to(kernel_device)
    direction = torch.randn(len(lengths), 5, generator=draw).bfloat16().to(kernel_device)
    counts = torch.ones(sum(lengths), dtype=torch.long, device=kernel_device)
    results = []
    ways: list[Any] = [
        (fused, (graph,), torch.bfloat16),
        (by_definition, (edges, counts), torch.float64),
    ]
    for function, structure, kind in ways:
        leaves = [
            x.to(kind),
            *(t.to(t.dtype if kind == torch.bfloat16 else kind) for t in (sent, received)),
        ]
        leaves = [leaf.detach().clone().requires_grad_() for leaf in leaves]
        out = function(*leaves, *structure, power)
        gradients = torch.autograd.grad(out, leaves, direction.to(out))
        results.append([out.detach(), *gradients])
    for got, expected in zip(*results, strict=True):
        torch.testing.assert_close(got.double(), expected, rtol=2**-7, atol=2**-7)


@pytest.mark.parametrize("logit", [88.0, 89.0, 1e4])
@pytest.mark.parametrize("rows", list(ROWS))
@pytest.mark.sampled(6)
def test_an_edge_that_does_not_count_is_none_whatever_its_logit(
    kernel_device: str, rows: str, logit: float, dtype: torch.dtype
) -> None:
    # exp(89) is infinite in float32, and infinity times a multiplicity of 0 is NaN.
    lengths = ROWS[rows]
    counts = torch.ones(sum(lengths), dtype=torch.long, device=kernel_device)
    graph, edges = graph_of(lengths, 6, kernel_device, counts)
    counts[edges[0] == 2] = 0
    graph.multiplicity = counts

    def change(x: Tensor, sent: Tensor, received: Tensor) -> None:
        sent[2] = logit

    check(graph, edges, counts, 5, dtype, change)


@pytest.mark.parametrize("rows", list(ROWS))
def test_features_behind_an_edge_that_does_not_count_are_not_read(
    kernel_device: str, rows: str
) -> None:
    lengths = ROWS[rows]
    counts = torch.ones(sum(lengths), dtype=torch.long, device=kernel_device)
    graph, edges = graph_of(lengths, 6, kernel_device, counts)
    counts[edges[0] == 2] = 0
    graph.multiplicity = counts

    def change(x: Tensor, sent: Tensor, received: Tensor) -> None:
        x[2] = torch.inf

    check(graph, edges, counts, 5, torch.float64, change)


@pytest.mark.parametrize("big", [1e4, -1e4])
def test_large_logits_do_not_overflow(kernel_device: str, big: float, dtype: torch.dtype) -> None:
    graph, edges = graph_of(ROWS["few"], 6, kernel_device)
    counts = torch.ones(graph.num_edges, dtype=torch.long, device=kernel_device)
    check(graph, edges, counts, 5, dtype, lambda x, sent, received: received.add_(big))


def test_a_target_whose_edges_do_not_count_gets_zero(kernel_device: str) -> None:
    graph, edges = graph_of([3, 2], 4, kernel_device)
    counts = torch.zeros(5, dtype=torch.long, device=kernel_device)
    graph.multiplicity = counts
    check(graph, edges, counts, 3, torch.float64)


@pytest.mark.parametrize("aggr", ["default", "vpa", "power(0.3)"])
def test_a_layer_of_gat_gives_what_the_reference_path_gives(kernel_device: str, aggr: str) -> None:
    torch.manual_seed(0)
    conv = GAT(3, 2, width=4, depth=1).to(kernel_device, torch.float64).convs[0]
    graph, _ = graph_of([4, 2, 1, 3], 4, kernel_device)
    results = []
    for reference in (False, True):
        x = torch.linspace(-1, 1, 12, dtype=torch.float64, device=kernel_device).view(4, 3)
        x.requires_grad_()
        if reference:
            with use_backend("reference"):
                out = conv(x, Hop(WeightedGraph(graph, loops=True)), aggr)
        else:
            out = conv(x, Hop(WeightedGraph(graph, loops=True)), aggr)
            assert "FusedAttention" in str(out.grad_fn.next_functions)
        leaves = [x, *conv.parameters()]
        results.append([out.detach(), *torch.autograd.grad(out.square().sum(), leaves)])
    for got, expected in zip(*results, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-11, atol=1e-11)
