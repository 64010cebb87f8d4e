"""Attention with logits in two parts, against attention with logits of edges."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import leaky_relu

from gnn_vpa.ops import Graph, attend
from gnn_vpa.ops._parts import attend_by_parts

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
