"""Attention with logits in two parts, against attention with logits of edges."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import leaky_relu

from gnn_vpa.ops import Graph, attend
from gnn_vpa.ops._parts import attend_by_parts, attend_by_vectors

# Heads, sources, targets, edges: also with targets, and sources, that have none.
SHAPES = [(1, 7, 7, 20), (3, 7, 5, 20), (1, 30, 40, 10), (2, 4, 4, 60)]


def inputs(shape: tuple[int, ...], draw: torch.Generator) -> tuple[Graph, Tensor, list[Tensor]]:
    heads, sources, targets, count = shape
    ends = [torch.randint(size, (count,), generator=draw) for size in (sources, targets)]
    edge_index = torch.stack(ends)
    sizes = [(sources, heads, 4), (sources, heads), (targets, heads)]
    parts = [torch.randn(s, generator=draw, dtype=torch.float64, requires_grad=True) for s in sizes]
    return Graph(edge_index, (sources, targets)), edge_index, parts


def by_edges(graph: Graph, edge_index: Tensor, parts: list[Tensor]) -> Tensor:
    x, source, target = parts
    return attend(x, graph, leaky_relu(source[edge_index[0]] + target[edge_index[1]], 0.2))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_and_gradients_of_both_orders(
    shape: tuple[int, ...], generator: torch.Generator
) -> None:
    graph, edge_index, parts = inputs(shape, generator)
    x, source, target = parts
    out = attend_by_parts(x, graph, source, target, 0.2, None)
    assert "Attention" in type(out.grad_fn).__name__
    expected = by_edges(graph, edge_index, parts)
    torch.testing.assert_close(out, expected)
    g = torch.randn(out.shape, generator=generator, dtype=torch.float64)
    found = torch.autograd.grad(out, parts, g, retain_graph=True)
    torch.testing.assert_close(found, torch.autograd.grad(expected, parts, g, retain_graph=True))
    found, wanted = (torch.autograd.grad(o, parts, g, create_graph=True) for o in (out, expected))
    torch.testing.assert_close(
        torch.autograd.grad([t.square().sum() for t in found], parts),
        torch.autograd.grad([t.square().sum() for t in wanted], parts),
    )


@pytest.mark.parametrize("needed", range(3))
def test_one_gradient_alone(needed: int, generator: torch.Generator) -> None:
    graph, edge_index, parts = inputs(SHAPES[1], generator)
    parts = [part.detach().requires_grad_(k == needed) for k, part in enumerate(parts)]
    x, source, target = parts
    attend_by_parts(x, graph, source, target, 0.2, None).square().sum().backward()
    found = parts[needed].grad
    parts[needed].grad = None
    by_edges(graph, edge_index, parts).square().sum().backward()
    torch.testing.assert_close(found, parts[needed].grad)


def test_logits_far_apart_neither_overflow_nor_vanish() -> None:
    graph = Graph(torch.tensor([[0, 1, 2], [0, 0, 1]]), (3, 2))
    source = torch.tensor([[900.0], [-900.0], [-3000.0]])
    out = attend_by_parts(torch.ones(3, 1, 1), graph, source, torch.zeros(2, 1), 0.2, None)
    assert out.flatten().tolist() == [1.0, 1.0]


def test_a_long_row_takes_the_careful_way() -> None:
    count = 3000
    edge_index = torch.stack([torch.arange(count), torch.zeros(count, dtype=torch.int64)])
    source, target = torch.zeros(count, 1), torch.zeros(1, 1)
    graph = Graph(edge_index, (count, 1))
    out = attend_by_parts(torch.ones(count, 1, 1), graph, source, target, 0.2, None)
    torch.testing.assert_close(out.flatten(), torch.tensor([count**0.5]))


@pytest.mark.parametrize("normed", [True, False])
@pytest.mark.parametrize("slope", [0.2, -0.5, 3.0])
@pytest.mark.parametrize("heads", [1, 3])
def test_parts_that_are_products_with_vectors(
    heads: int, slope: float, normed: bool, generator: torch.Generator
) -> None:
    edge_index = torch.randint(9, (2, 30), generator=generator)
    graph = Graph(edge_index, (11, 11))  # two nodes have no edge
    sizes = [(11, heads, 4), (1, heads, 4), (1, heads, 4)]
    given = [torch.randn(s, generator=generator, dtype=torch.float64) for s in sizes]
    x, source, target = leaves = [one.requires_grad_() for one in given]
    out = attend_by_vectors(x, graph, source, target, slope, normed=normed)
    assert "AttentionByVectors" in type(out.grad_fn).__name__
    parts = [(x * vector).sum(-1) for vector in (source, target)]
    logits = leaky_relu(parts[0][edge_index[0]] + parts[1][edge_index[1]], slope)
    if normed:
        expected = attend(x, graph, logits)
    else:
        mass = logits.exp()
        total = torch.zeros(11, heads).double().index_add(0, edge_index[1], mass)
        share = (mass / total[edge_index[1]]).unsqueeze(2) * x[edge_index[0]]
        expected = torch.zeros(11, heads, 4).double().index_add(0, edge_index[1], share)
    torch.testing.assert_close(out, expected)
    g = torch.randn(out.shape, generator=generator, dtype=torch.float64)
    found, wanted = (torch.autograd.grad(o, leaves, g, create_graph=True) for o in (out, expected))
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(torch.autograd.grad(out, leaves, g, retain_graph=True), wanted)
    torch.testing.assert_close(
        torch.autograd.grad([t.square().sum() for t in found], leaves),
        torch.autograd.grad([t.square().sum() for t in wanted], leaves),
    )


@pytest.mark.parametrize("needed", range(3))
def test_one_gradient_of_x_and_vectors_alone(needed: int, generator: torch.Generator) -> None:
    graph = Graph(torch.randint(9, (2, 30), generator=generator), (9, 9))
    sizes = [(9, 2, 4), (1, 2, 4), (1, 2, 4)]
    given = [torch.randn(s, generator=generator, dtype=torch.float64) for s in sizes]
    given[needed].requires_grad_()
    x, *vectors = given
    parts = [(x * vector).sum(-1) for vector in vectors]
    by_parts = attend_by_parts(x, graph, parts[0], parts[1], 0.2, None)
    by_vectors = attend_by_vectors(x, graph, vectors[0], vectors[1], 0.2)
    torch.testing.assert_close(
        torch.autograd.grad(by_vectors.square().sum(), given[needed]),
        torch.autograd.grad(by_parts.square().sum(), given[needed]),
    )


@pytest.mark.parametrize("when", ["forward", "backward"])
def test_autocast_makes_no_product_with_vectors_less_precise(
    when: str, generator: torch.Generator
) -> None:
    graph = Graph(torch.randint(9, (2, 30), generator=generator), (9, 9))
    leaves = [torch.randn(s, 1, 16, generator=generator).requires_grad_() for s in (9, 1, 1)]
    x, source, target = leaves
    expected = attend_by_vectors(x, graph, source, target, 0.2)
    wanted = torch.autograd.grad(expected.square().sum(), leaves)
    with torch.autocast("cpu", torch.bfloat16, enabled=when == "forward"):
        out = attend_by_vectors(x, graph, source, target, 0.2)
    torch.testing.assert_close(out, expected)
    with torch.autocast("cpu", torch.bfloat16, enabled=when == "backward"):
        found = torch.autograd.grad(out.square().sum(), leaves)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)  # of bfloat16 it would be 1e-2


def test_what_is_made_may_be_changed_in_place() -> None:
    graph = Graph(torch.tensor([[0, 1, 2], [1, 1, 0]]), (3, 3))
    x, vector = torch.randn(3, 1, 4, requires_grad=True), torch.ones(1, 1, 4)
    attend_by_vectors(x, graph, vector, vector, 0.2).relu_().sum().backward()
    assert x.grad is not None
    assert bool(x.grad.isfinite().all())


@pytest.mark.parametrize("far", [0.0, 40.0, 2000.0])
def test_logits_of_any_size_give_the_weights_of_their_differences(far: float) -> None:
    graph = Graph(torch.tensor([[0, 1, 2], [0, 0, 0]]), (3, 1))
    source = torch.tensor([[0.0], [1.0], [-2.0]]) + far
    x = torch.eye(3).unsqueeze(1)
    out = attend_by_parts(x, graph, source, torch.zeros(1, 1), 1.0, None, normed=False)
    torch.testing.assert_close(out.flatten(), torch.tensor([0.0, 1.0, -2.0]).softmax(0))
