"""Converted models under torch.compile: one graph, for batches of any size."""

import pytest
import torch
from torch import nn
from torch._dynamo.utils import counters
from torch_geometric.nn import GAT, GCN, GIN, GraphSAGE

from gnn_vpa import convert


@pytest.mark.parametrize("model", [GIN, GraphSAGE, GCN, GAT], ids=lambda model: model.__name__)
def test_no_break_and_no_compilation_for_each_size(
    model: type[nn.Module], generator: torch.Generator
) -> None:
    torch.manual_seed(0)
    layers, _ = convert(model(4, 8, num_layers=1).double())
    # Once before: where lines are counted, a compiler sees each that was never reached before.
    for warm in (torch.compile(layers, backend="eager"), layers):
        edges_before = torch.tensor([[0, 1, 1], [1, 0, 1]])
        warm(torch.randn(3, 4).double(), edges_before).sum().backward()
    torch.compiler.reset()
    counters.clear()
    compiled = torch.compile(layers, fullgraph=True, dynamic=True, backend="eager")
    for nodes, edges in ((11, 30), (19, 50), (7, 23)):
        x = torch.randn(nodes, 4, generator=generator, dtype=torch.float64)
        edge_index = torch.randint(nodes, (2, edges), generator=generator)  # with self-loops
        found, expected = compiled(x, edge_index), layers(x, edge_index)
        torch.testing.assert_close(found, expected)
        weights = list(layers.parameters())
        torch.testing.assert_close(
            torch.autograd.grad(found.square().sum(), weights),
            torch.autograd.grad(expected.square().sum(), weights),
        )
    assert not counters["graph_break"]
    assert counters["stats"]["unique_graphs"] == 1
