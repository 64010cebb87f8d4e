"""The short way of a sum with constant weights, against the reference."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gnn_vpa.ops import Graph, aggregate, use_backend
from gnn_vpa.ops._bags import Factored
from gnn_vpa.ops._short import constant_sum, normalised_sum, power_sum
from gnn_vpa.ops.internal import weighted_sum

NODES = 6
FEW = st.integers(1, 40)
MANY = st.integers(16 * NODES + 1, 150)  # for which nodes have factors instead of edges weights


def edges(draw: torch.Generator, count: int = 15) -> Tensor:
    return torch.randint(NODES, (2, count), generator=draw)


def short(
    x: Tensor, graph: Graph, exponent: float, weight: Tensor | None = None, own: float = 0.0
) -> Tensor:
    out = power_sum(x, graph, exponent, weight, own)
    assert out is not None
    return out


@given(st.integers(0, 2**31), FEW | MANY, st.sampled_from([0.0, 0.25, 0.5, 1.0]))
@settings(max_examples=30, deadline=None)
def test_values_and_gradients_are_those_of_the_formula(
    seed: int, count: int, exponent: float
) -> None:
    draw = torch.Generator().manual_seed(seed)
    edge_index = edges(draw, count)
    own = float(torch.randn((), generator=draw))
    for weight in (None, torch.randn(count, generator=draw, dtype=torch.float64)):
        x = torch.randn(NODES, 3, generator=draw, dtype=torch.float64, requires_grad=True)
        out = short(x, Graph(edge_index, NODES), exponent, weight, own)
        matrix = torch.zeros(NODES, NODES, dtype=torch.float64)
        ones = torch.ones(count, dtype=torch.float64) if weight is None else weight
        matrix.index_put_((edge_index[1], edge_index[0]), ones, accumulate=True)
        degree = edge_index[1].bincount(minlength=NODES).clamp(min=1).double()
        matrix = matrix * degree.pow(-exponent)[:, None] + own * torch.eye(NODES).double()
        torch.testing.assert_close(out, matrix @ x)
        g = torch.randn(out.shape, generator=draw, dtype=torch.float64)
        torch.testing.assert_close(torch.autograd.grad(out, x, g)[0], matrix.t() @ g)


@given(st.integers(0, 2**31), st.integers(1, 40), st.booleans())
@settings(max_examples=20, deadline=None)
def test_a_readout_is_that_of_the_reference(seed: int, count: int, is_sorted: bool) -> None:
    draw = torch.Generator().manual_seed(seed)
    batch = torch.randint(5, (count,), generator=draw)
    batch = batch.sort().values if is_sorted else batch
    x = torch.randn(count, 3, generator=draw, dtype=torch.float64, requires_grad=True)
    out = short(x, Graph.readout(batch, 6), 0.5)  # the last group is empty
    with use_backend("reference"):
        expected = aggregate(x, Graph.readout(batch, 6))
    torch.testing.assert_close(out, expected)
    g = torch.randn(out.shape, generator=draw, dtype=torch.float64)
    found, wanted = (torch.autograd.grad(o, x, g)[0] for o in (out, expected))
    torch.testing.assert_close(found, wanted)


@given(st.integers(0, 2**31), FEW | MANY, st.sampled_from([1, 2, None]), st.booleans())
@settings(max_examples=40, deadline=None)
def test_a_degree_normalisation_is_that_of_the_formula(
    seed: int, count: int, fill: int | None, may_loop: bool
) -> None:
    draw = torch.Generator().manual_seed(seed)
    edge_index = edges(draw, count)
    if not may_loop:
        edge_index[1] = (edge_index[0] + 1 + edge_index[1] % (NODES - 1)) % NODES
    x = torch.randn(NODES, 3, generator=draw, dtype=torch.float64, requires_grad=True)
    out = normalised_sum(x, Graph(edge_index, (NODES, NODES)), fill)
    assert out is not None
    times = torch.zeros(NODES, NODES, dtype=torch.float64)  # of each pair, how often it is an edge
    times.index_put_((edge_index[1], edge_index[0]), torch.ones(count).double(), accumulate=True)
    loops = torch.zeros(NODES, dtype=torch.float64)
    if fill is not None:
        loops = torch.where(times.diagonal() > 0, 1.0, float(fill))
        times.fill_diagonal_(0)
    mass = times.sum(1) + loops.square()
    root = torch.where(mass > 0, mass, torch.inf).pow(-0.25)
    matrix = root[:, None] * (times + loops.diag()) * root
    torch.testing.assert_close(out, matrix @ x)
    g = torch.randn(out.shape, generator=draw, dtype=torch.float64)
    torch.testing.assert_close(torch.autograd.grad(out, x, g, create_graph=True)[0], matrix.t() @ g)
    torch.testing.assert_close(torch.autograd.grad(out, x, g)[0], matrix.t() @ g)


def test_a_degree_normalisation_needs_nodes_that_are_sources_and_targets() -> None:
    graph = Graph(torch.tensor([[0, 1], [1, 1]]), (3, 2))
    assert normalised_sum(torch.ones(3, 2), graph, 1) is None


@pytest.mark.parametrize("count", [15, 140])
def test_nodes_have_factors_where_they_have_many_edges(
    count: int, generator: torch.Generator
) -> None:
    edge_index = edges(generator, count)
    edge_index = edge_index[:, edge_index[0] != edge_index[1]]
    graph, x = Graph(edge_index, (NODES, NODES)), torch.ones(NODES, 2)
    short(x, graph, 0.5, own=2.0)
    normalised_sum(x, graph, 1)
    assert {isinstance(way, Factored) for way in graph.ways.values()} == {count == 140}
    if count == 140:
        x = torch.randn(NODES, 2, generator=generator, dtype=torch.float64, requires_grad=True)
        ways = (
            lambda x: short(x, graph, 0.5, own=1.5),
            lambda x: normalised_sum(x, graph, 2),
            lambda x: normalised_sum(x, graph, None),
        )
        for way in ways:
            assert torch.autograd.gradgradcheck(lambda x, way=way: way(x) ** 2, x)


@pytest.mark.parametrize("own", [0.0, 1.5])
def test_a_graph_that_is_kept_gets_weights_after_some_uses(
    own: float, generator: torch.Generator
) -> None:
    edge_index = edges(generator, 140)
    edge_index = edge_index[:, edge_index[0] != edge_index[1]]
    graph = Graph(edge_index, (NODES, NODES))
    x = torch.randn(NODES, 2, generator=generator, dtype=torch.float64, requires_grad=True)
    sums = [lambda: short(x, graph, 0.5, own=own), lambda: normalised_sum(x, graph, 2)]
    for a_sum in sums:
        first = a_sum()
        outs = [a_sum() for _ in range(20)]
        for out in outs:
            torch.testing.assert_close(out, first)
        gradients = [torch.autograd.grad(o.sin().sum(), x)[0] for o in (first, outs[0], outs[-1])]
        torch.testing.assert_close(gradients[1:], gradients[:1] * 2)
    assert not any(isinstance(way, Factored) for way in graph.ways.values())


def test_derivatives_of_higher_order(generator: torch.Generator) -> None:
    graph = Graph(edges(generator), NODES)
    weight = torch.randn(15, generator=generator, dtype=torch.float64)
    x = torch.randn(NODES, 2, generator=generator, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: short(x, graph, 0.5, weight, 1.5) ** 2, x)


def test_a_change_of_the_weights_is_seen(generator: torch.Generator) -> None:
    graph, x = Graph(edges(generator), NODES), torch.randn(NODES, 2, generator=generator)
    weight = torch.rand(15, generator=generator)
    before = aggregate(x, graph, "sum", weight)
    weight *= 2
    torch.testing.assert_close(aggregate(x, graph, "sum", weight), 2 * before)
    other = torch.rand(15, generator=generator)
    with use_backend("reference"):
        expected = aggregate(x, graph, "sum", other)
    torch.testing.assert_close(aggregate(x, graph, "sum", other), expected)


def test_what_inference_made_serves_training(generator: torch.Generator) -> None:
    graph = Graph(edges(generator), NODES)
    x = torch.randn(NODES, 2, generator=generator, requires_grad=True)
    with torch.inference_mode():
        before = aggregate(x, graph)
    after = aggregate(x, graph)
    torch.testing.assert_close(after, before)
    (grad,) = torch.autograd.grad(after.square().sum(), x, create_graph=True)
    grad.sum().backward()
    assert x.grad is not None


@pytest.mark.parametrize("case", ["weight with a gradient", "half", "no features", "no edges"])
def test_it_does_not_serve_what_needs_the_long_way(case: str, generator: torch.Generator) -> None:
    graph = Graph(edges(generator, 0 if case == "no edges" else 15), NODES)
    x = torch.ones(NODES, 0 if case == "no features" else 2)
    x = x.half() if case == "half" else x
    weight = torch.ones(15, requires_grad=True) if case.startswith("weight") else None
    assert power_sum(x, graph, 0.5, weight) is None
    assert aggregate(x, graph, "mean", weight).shape == x.shape


@pytest.mark.parametrize("again", [False, True], ids=["once", "to differentiate again"])
@pytest.mark.parametrize("order", [[0, 1], [1, 0]], ids=["in order", "not"])
def test_weights_that_change_before_the_backward_pass_change_no_gradient(
    order: list[int], again: bool
) -> None:
    graph = Graph(torch.tensor([[0, 1], [0, 1]])[:, order], 2)
    x = torch.ones(2, 1, requires_grad=True)
    weight = torch.tensor([2.0, 3.0])[order]
    out = short(x, graph, 0.0, weight)
    weight.zero_()
    (gradient,) = torch.autograd.grad(out.sum(), x, create_graph=again)
    assert gradient.flatten().tolist() == [2.0, 3.0]


@given(st.integers(0, 2**31), st.integers(1, 40), st.booleans())
@settings(max_examples=30, deadline=None)
def test_constant_weights_are_summed_as_the_formula_says(
    seed: int, count: int, in_order: bool
) -> None:
    """Where edges are given by target they keep their order, and otherwise they do not."""
    draw = torch.Generator().manual_seed(seed)
    edge_index = edges(draw, count)
    if in_order:
        edge_index = edge_index[:, edge_index[1].argsort(stable=True)]
    weight = torch.randn(count, generator=draw, dtype=torch.float64)
    x = torch.randn(NODES, 3, generator=draw, dtype=torch.float64, requires_grad=True)
    graph = Graph(edge_index, NODES)
    out = constant_sum(x, graph, weight)
    assert out is not None
    matrix = torch.zeros(NODES, NODES, dtype=torch.float64)
    matrix.index_put_((edge_index[1], edge_index[0]), weight, accumulate=True)
    torch.testing.assert_close(out, matrix @ x)
    assert torch.equal(out, weighted_sum(x.detach(), graph, weight))
    g = torch.randn(out.shape, generator=draw, dtype=torch.float64, requires_grad=True)
    (by_x,) = torch.autograd.grad(out, x, g, create_graph=True)
    torch.testing.assert_close(by_x, matrix.t() @ g)
    (by_g,) = torch.autograd.grad(by_x, g, x.detach())
    torch.testing.assert_close(by_g, matrix @ x.detach())


def test_weights_that_change_before_the_backward_pass_are_refused() -> None:
    weight, x = torch.ones(2), torch.ones(2, 3, requires_grad=True)
    out = weighted_sum(x, Graph(torch.tensor([[0, 1], [1, 0]]), 2), weight)
    weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_weights_that_learn_and_graphs_without_edges_go_another_way() -> None:
    graph, x = Graph(torch.tensor([[0, 1], [1, 0]]), 2), torch.ones(2, 3)
    assert constant_sum(x, graph, torch.ones(2, requires_grad=True)) is None
    assert constant_sum(x, Graph(torch.empty(2, 0).long(), 2), torch.ones(0)) is None
    assert constant_sum(x.half(), graph, torch.ones(2).half()) is None
    with use_backend("reference"):
        assert constant_sum(x, graph, torch.ones(2)) is None
