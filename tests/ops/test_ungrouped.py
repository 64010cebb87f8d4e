"""Edges that are not grouped: the numbers of grouped ones, forward, backward, and once more."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from gnn_vpa.errors import UsageError
from gnn_vpa.ops import Graph, aggregate
from gnn_vpa.ops.internal import Ungrouped, attend_by_parts
from gnn_vpa.pyg import vp_gcn_norm

NODES = 9
TYPES = [torch.float32, torch.float64]


def some_edges(device: str, count: int = 25, seed: int = 0) -> Tensor:
    """Return edges with parallel ones and self-loops; the last nodes hear from nobody."""
    draw = torch.Generator().manual_seed(seed)
    return torch.randint(NODES - 2, (2, count), generator=draw).to(device)


def ungrouped(edges: Tensor, sources: int = NODES, targets: int = NODES) -> Ungrouped:
    """Return edges that are not grouped."""
    return Ungrouped(edges[0], edges[1], sources, targets)


def said(compute: Callable[..., Tensor], *given: Tensor) -> list[Tensor]:
    """Return what comes out, its gradients, and those of a function of the gradients."""
    leaves = [one.clone().requires_grad_() for one in given]
    out = compute(*leaves)
    first = torch.autograd.grad((out.sin() * out).sum(), leaves, create_graph=True)
    squares = torch.stack([one.square().sum() for one in first])
    second = torch.autograd.grad(squares.sum(), leaves)
    return [one.detach() for one in (out, *first, *second)]


def assert_same(found: list[Tensor], right: list[Tensor]) -> None:
    """Raise unless all are equal: in float32 sums of many numbers that partly cancel are rough."""
    is_rough = right[0].dtype == torch.float32
    rtol, atol = (1e-4, 1e-3) if is_rough else (1e-9, 1e-9)
    torch.testing.assert_close(found, right, rtol=rtol, atol=atol)


def random(*shape: int, dtype: torch.dtype, device: str, seed: int = 0) -> Tensor:
    """Return normal numbers."""
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=draw).to(device, dtype)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("width", [1, 5, 70])
@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 0.3])
def test_sums_are_those_of_grouped_edges(
    kernel_device: str, dtype: torch.dtype, width: int, exponent: float
) -> None:
    edges = some_edges(kernel_device)
    x = random(NODES, width, dtype=dtype, device=kernel_device)
    way, name = ungrouped(edges), f"power({exponent})"
    found = said(lambda x: way.sum(x, exponent), x)
    right = said(lambda x: aggregate(x, Graph(edges, NODES), name), x)
    assert_same(found, right)
    eps = torch.tensor([0.25], dtype=dtype, device=kernel_device)
    found = said(lambda x: way.sum_keeping(x, exponent, eps), x)
    right = said(lambda x: (1 + eps) * x + aggregate(x, Graph(edges, NODES), name), x)
    assert_same(found, right)


def test_sums_may_have_other_sources_than_targets(kernel_device: str) -> None:
    edges = some_edges(kernel_device)
    x = random(NODES, 2, 3, dtype=torch.float64, device=kernel_device)
    way = ungrouped(edges, targets=7)
    found = said(lambda x: way.sum(x, 0.5), x)
    right = said(lambda x: aggregate(x.flatten(1), Graph(edges, (NODES, 7))).view(7, 2, 3), x)
    assert_same(found, right)


def test_a_readout_lists_no_sources(kernel_device: str) -> None:
    batch = torch.tensor([0, 0, 2, 1, 2, 2, 0, 0, 0], device=kernel_device)
    x = random(NODES, 4, dtype=torch.float64, device=kernel_device)
    way = Ungrouped(None, batch, NODES, 4)
    found = said(lambda x: way.sum(x, 0.5), x)
    right = said(lambda x: aggregate(x, Graph.readout(batch, 4)), x)
    assert_same(found, right)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("fill", [1.0, 2.0, None])
def test_degree_normalisation_is_that_of_its_weights(
    kernel_device: str, dtype: torch.dtype, fill: float | None
) -> None:
    edges = some_edges(kernel_device)
    x = random(NODES, 5, dtype=dtype, device=kernel_device)
    looped, weight = vp_gcn_norm(edges, None, NODES, fill == 2.0, fill is not None, dtype=dtype)
    found = said(lambda x: ungrouped(edges).normalised_sum(x, fill), x)
    right = said(lambda x: aggregate(x, Graph(looped, NODES), "sum", weight), x)
    assert_same(found, right)


def with_loops(edges: Tensor) -> Tensor:
    """Return the edges with one self-loop for each node, and no other."""
    others = edges[:, edges[0] != edges[1]]
    return torch.cat([others, torch.arange(NODES, device=edges.device).expand(2, NODES)], 1)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("width", [4, 70])
@pytest.mark.parametrize("has_loops", [False, True])
def test_attention_by_vectors_is_that_of_grouped_edges(
    kernel_device: str, dtype: torch.dtype, heads: int, width: int, has_loops: bool
) -> None:
    edges = some_edges(kernel_device)
    shapes = ((NODES, heads, width), (1, heads, width), (1, heads, width))
    # Logits of some units: those of very large ones have derivatives that are 0.
    x, s, t = (
        width**-0.25 * random(*shape, dtype=dtype, device=kernel_device, seed=i)
        for i, shape in enumerate(shapes)
    )
    graph = Graph(with_loops(edges) if has_loops else edges, NODES)

    def theirs(x: Tensor, s: Tensor, t: Tensor) -> Tensor:
        return attend_by_parts(x, graph, (x * s).sum(-1), (x * t).sum(-1), 0.2, None)

    def ours(x: Tensor, s: Tensor, t: Tensor) -> Tensor:
        return ungrouped(edges).attend_by_vectors(x, s, t, 0.2, has_loops)

    assert_same(said(ours, x, s, t), said(theirs, x, s, t))


@pytest.mark.parametrize("targets", [7, NODES])
def test_attention_by_parts_is_that_of_grouped_edges(kernel_device: str, targets: int) -> None:
    edges = some_edges(kernel_device)
    x = random(NODES, 2, 5, dtype=torch.float64, device=kernel_device)
    s = random(NODES, 2, dtype=torch.float64, device=kernel_device, seed=1)
    t = random(targets, 2, dtype=torch.float64, device=kernel_device, seed=2)
    graph = Graph(edges, (NODES, targets))

    def theirs(x: Tensor, s: Tensor, t: Tensor) -> Tensor:
        return attend_by_parts(x, graph, s, t, 0.2, None)

    def ours(x: Tensor, s: Tensor, t: Tensor) -> Tensor:
        return ungrouped(edges, targets=targets).attend_by_parts(x, s, t, 0.2)

    assert_same(said(ours, x, s, t), said(theirs, x, s, t))
    # Of some alone.
    leaf = s.clone().requires_grad_()
    alone = torch.autograd.grad(ours(x, leaf, t).sum(), leaf)[0]
    torch.testing.assert_close(alone, torch.autograd.grad(theirs(x, leaf, t).sum(), leaf)[0])


def test_logits_of_any_size_are_attended_to(kernel_device: str) -> None:
    edges = some_edges(kernel_device)
    x = random(NODES, 1, 3, dtype=torch.float32, device=kernel_device)
    s = torch.linspace(-900, 900, NODES, device=kernel_device).unsqueeze(1)
    found = ungrouped(edges).attend_by_parts(x, s, -s, 0.2)
    right = attend_by_parts(x, Graph(edges, NODES), s, -s, 0.2, None)
    assert right.isfinite().all()
    torch.testing.assert_close(found, right)


@pytest.mark.parametrize("nodes", [0, 3])
def test_nothing_is_summed_where_there_are_no_edges(kernel_device: str, nodes: int) -> None:
    none = torch.empty(2, 0, dtype=torch.int64, device=kernel_device)
    x = torch.ones(nodes, 4, device=kernel_device)
    way = ungrouped(none, nodes, nodes)
    assert torch.equal(way.sum(x, 0.5), torch.zeros_like(x))
    assert torch.equal(way.normalised_sum(x, 1.0), x)  # each node's self-loop
    vector = torch.ones(1, 1, 4, device=kernel_device)
    heads = x.unsqueeze(1)
    assert torch.equal(way.attend_by_vectors(heads, vector, vector, 0.2, True), heads)
    found = way.attend_by_vectors(heads, vector, vector, 0.2, False)
    assert torch.equal(found, torch.zeros_like(heads))


@pytest.mark.parametrize("row", [0, 1])
@pytest.mark.parametrize("wrong", [-1, NODES])
def test_an_edge_out_of_range_makes_nan_and_is_told(
    kernel_device: str, row: int, wrong: int
) -> None:
    edges = some_edges(kernel_device)
    right = ungrouped(edges.clone())
    assert edges[1 - row, 3] > 0  # not the first node: that of its graph
    edges[row, 3] = wrong
    x = torch.ones(NODES, 4, device=kernel_device)
    way = ungrouped(edges)
    # The node at its other end, in whose graph something is missing.
    assert way.sum(x, 0.5).isnan().any(1).nonzero().flatten().tolist() == [int(edges[1 - row, 3])]
    with pytest.raises(UsageError, match="names a node that is not there"):
        way.sum(x, 0.5)
    assert right.sum(x, 0.5).isfinite().all()  # told once
    vector = torch.ones(1, 1, 4, device=kernel_device)
    way = ungrouped(edges)
    found = way.attend_by_vectors(x.unsqueeze(1), vector, vector, 0.2, True)
    assert found.isnan().flatten(1).any(1).nonzero().flatten().tolist() == [int(edges[1 - row, 3])]
    with pytest.raises(UsageError, match="names a node that is not there"):
        right.attend_by_vectors(x.unsqueeze(1), vector, vector, 0.2, True)
    way = ungrouped(edges)
    found = way.normalised_sum(x, 1.0 if row == 0 else None)
    assert found.isnan().any(1).nonzero().flatten().tolist() == [int(edges[1 - row, 3])]
    with pytest.raises(UsageError, match="names a node that is not there"):
        right.sum(x, 0.5)


def test_a_constant_that_changes_before_the_backward_pass_is_refused(kernel_device: str) -> None:
    x = torch.ones(NODES, 4, device=kernel_device, requires_grad=True)
    eps = torch.zeros(1, device=kernel_device)
    out = ungrouped(some_edges(kernel_device)).sum_keeping(x, 0.5, eps)
    eps += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()
