"""Layers of PyG whose sums our kernels compute say what PyG's own steps say."""

from collections.abc import Callable
from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import (
    GIN,
    PNA,
    GATConv,
    GATv2Conv,
    GCNConv,
    GINConv,
    GraphConv,
    GraphSAGE,
    LEConv,
    MessagePassing,
    SAGEConv,
)

from gnn_vpa.pyg import VPGATConv, convert
from gnn_vpa.pyg.internal import VPMessagePassing, sum_by_kernels

NODES, EDGES = 12, 40
SERVED: dict[str, Callable[[], nn.Module]] = {
    "gin": lambda: GINConv(nn.Linear(4, 6), train_eps=True),
    "gin, mean": lambda: GINConv(nn.Linear(4, 6), aggr="mean"),
    "sage": lambda: SAGEConv(4, 6),
    "sage, sum": lambda: SAGEConv(4, 6, aggr="sum", project=True),
    "graph": lambda: GraphConv(4, 6),
    "graph, mean": lambda: GraphConv(4, 6, aggr="mean"),
    "gat": lambda: GATConv(4, 3, heads=2),
    "gat, one head": lambda: GATConv(4, 6, add_self_loops=False),
    "gat, mean of heads": lambda: GATConv(4, 6, heads=3, concat=False, residual=True),
    "gat, edge features": lambda: GATConv(4, 3, heads=2, edge_dim=1),
    "stack": lambda: GIN(4, 6, 2, norm="batch_norm"),
    "stack of means": lambda: GraphSAGE(4, 6, 2),
}
LEFT: dict[str, Callable[[], nn.Module]] = {
    "gatv2": lambda: GATv2Conv(4, 6),
    "gcn": lambda: GCNConv(4, 6),
    "le": lambda: LEConv(4, 6),
    "max": lambda: SAGEConv(4, 6, aggr="max"),
    "several": lambda: SAGEConv(4, 6, aggr=["sum", "mean"]),
    "pna": lambda: PNA(
        4, 6, 1, aggregators=["mean"], scalers=["identity"], deg=torch.tensor([1, 2])
    ),
    "vpa": lambda: convert(GINConv(nn.Linear(4, 6)))[0],
    "vpa of attention": lambda: VPGATConv(4, 6),
}


@pytest.fixture
def graph(generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Features, edges (two nodes have none that arrives), and a weight for each edge."""
    x = torch.randn(NODES, 4, generator=generator, dtype=torch.float64)
    edges = torch.randint(0, NODES - 2, (2, EDGES), generator=generator)
    return x, edges, torch.rand(EDGES, generator=generator, dtype=torch.float64)


def said(model: nn.Module, x: Tensor, edges: Tensor, *more: Tensor) -> list[Tensor]:
    """Return scores and all gradients."""
    x = x.clone().requires_grad_()
    out = model(x, edges, *more)
    weights = list(model.parameters())
    return [out, *torch.autograd.grad(out.sin().sum(), [x, *weights], allow_unused=True)]


def pair(make: Callable[[], nn.Module]) -> tuple[nn.Module, nn.Module]:
    torch.manual_seed(3)
    plain = make().double()
    changed = deepcopy(plain)
    assert sum_by_kernels(changed)
    layers = [layer for layer in changed.modules() if isinstance(layer, MessagePassing)]
    assert all(isinstance(layer, VPMessagePassing) for layer in layers)
    return plain, changed


@pytest.mark.parametrize("name", SERVED)
def test_values_and_gradients_are_those_of_the_layer(
    graph: tuple[Tensor, Tensor, Tensor], name: str
) -> None:
    x, edges, _ = graph
    plain, changed = pair(SERVED[name])
    assert list(changed.state_dict()) == list(plain.state_dict())
    for _ in range(2):  # the second time the edges are known
        torch.testing.assert_close(said(changed, x, edges), said(plain, x, edges))
    plain.eval()
    changed.eval()
    torch.testing.assert_close(said(changed, x, edges), said(plain, x, edges))


@pytest.mark.parametrize("name", ["graph", "graph, mean"])
def test_weights_of_edges_count(graph: tuple[Tensor, Tensor, Tensor], name: str) -> None:
    plain, changed = pair(SERVED[name])
    torch.testing.assert_close(said(changed, *graph), said(plain, *graph))


def test_features_of_edges_take_part_in_attention(graph: tuple[Tensor, Tensor, Tensor]) -> None:
    plain, changed = pair(SERVED["gat, edge features"])
    x, edges, weight = graph
    torch.testing.assert_close(
        said(changed, x, edges, weight[:, None]), said(plain, x, edges, weight[:, None])
    )


def test_dropped_attention_is_dropped_alike(graph: tuple[Tensor, Tensor, Tensor]) -> None:
    x, edges, _ = graph
    plain, changed = pair(lambda: GATConv(4, 3, heads=2, dropout=0.5))
    found = []
    for model in (plain, changed):
        torch.manual_seed(7)
        found.append(said(model, x, edges))
    torch.testing.assert_close(*found)
    kept = [tensor.detach() for tensor in found[0]]
    changed.eval()
    assert not torch.allclose(kept[0], said(changed, x, edges)[0])


def test_attention_that_is_asked_for_is_returned(graph: tuple[Tensor, Tensor, Tensor]) -> None:
    x, edges, _ = graph
    plain, changed = pair(SERVED["gat"])
    got, expected = (m(x, edges, return_attention_weights=True)[1] for m in (changed, plain))
    torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("name", LEFT)
def test_layers_that_do_something_else_are_left(name: str) -> None:
    model = LEFT[name]()
    classes = [type(module) for module in model.modules()]
    assert not sum_by_kernels(model)
    assert [type(module) for module in model.modules()] == classes


def test_a_layer_with_a_message_of_its_own_keeps_it(graph: tuple[Tensor, Tensor, Tensor]) -> None:
    class Loud(SAGEConv):
        def message(self, x_j: Tensor) -> Tensor:
            return 3 * x_j

    torch.manual_seed(3)
    plain = Loud(4, 6).double()
    changed = deepcopy(plain)
    sum_by_kernels(changed)
    torch.testing.assert_close(said(changed, *graph[:2]), said(plain, *graph[:2]))
