import gc
from collections.abc import Callable

import pytest
import torch
from torch_geometric.utils import add_self_loops, remove_self_loops

from gnn_vpa import UsageError, build_model
from gnn_vpa.nn import with_self_loops
from gnn_vpa.nn._self_loops import _known
from gnn_vpa.ops import Graph, aggregate

from .conftest import Batch


def test_as_pyg_adds_them(make_batch: Callable[..., Batch]) -> None:
    x, edge_index, _ = make_batch(0)
    wanted, _ = add_self_loops(remove_self_loops(edge_index)[0], num_nodes=len(x))
    graph = with_self_loops(edge_index, len(x)).graph
    assert graph.num_edges == wanted.shape[1]
    torch.testing.assert_close(aggregate(x, graph, "sum"), aggregate(x, wanted, "sum"))


def test_twice_is_once(make_batch: Callable[..., Batch]) -> None:
    x, edge_index, _ = make_batch(0)
    looped = with_self_loops(edge_index, len(x))
    assert with_self_loops(looped) is looped
    assert with_self_loops(looped.graph).graph.num_edges == looped.graph.num_edges


def test_remembered_while_the_graph_lives(make_batch: Callable[..., Batch]) -> None:
    x, edge_index, _ = make_batch(0)
    graph = Graph(edge_index, len(x))
    assert with_self_loops(graph) is with_self_loops(graph)
    assert with_self_loops(edge_index, len(x)) is with_self_loops(edge_index, len(x))
    assert graph in _known
    count = len(_known)
    del graph
    gc.collect()
    assert len(_known) < count


@pytest.mark.parametrize("name", ["gat", "sgc"])
def test_a_prepared_graph_gives_the_same(name: str, make_batch: Callable[..., Batch]) -> None:
    x, edge_index, batch = make_batch(0)
    model = build_model(name, 5, 2).double().eval()
    prepared = model(x, with_self_loops(edge_index, len(x)), batch)
    assert torch.equal(prepared, model(x, edge_index, batch))


@pytest.mark.parametrize("name", ["gat", "sgc"])
def test_a_node_without_edges_is_its_own_neighbour(name: str) -> None:
    model = build_model(name, 2, 2).eval()
    x = torch.randn(1, 2)
    batch = torch.zeros(1, dtype=torch.int64)
    none = model(x, torch.empty(2, 0, dtype=torch.int64), batch)
    assert torch.equal(none, model(x, torch.tensor([[0], [0]]), batch))
    assert not torch.equal(none, model(2 * x, torch.empty(2, 0, dtype=torch.int64), batch))


@pytest.mark.parametrize("name", ["gat", "sgc"])
def test_merged_edges_need_their_self_loops(name: str, make_batch: Callable[..., Batch]) -> None:
    x, edge_index, batch = make_batch(0)
    merged = Graph(edge_index, len(x), torch.ones(edge_index.shape[1]))
    with pytest.raises(UsageError, match="must hold the self-loops already"):
        build_model(name, 5, 2).double()(x, merged, batch)


def test_weighted_and_bipartite_graphs_are_refused() -> None:
    with pytest.raises(UsageError, match="GAT and SGC take no edge weights"):
        with_self_loops(torch.eye(3).to_sparse_coo())
    with pytest.raises(UsageError, match="as many sources as targets, got 2 and 1"):
        with_self_loops(Graph(torch.tensor([[0, 1], [0, 0]]), (2, 1)))


def test_gin_does_not_take_a_graph_with_self_loops(make_batch: Callable[..., Batch]) -> None:
    x, edge_index, batch = make_batch(0)
    with pytest.raises(UsageError, match="Pass the graph without self-loops"):
        build_model("gin", 5, 2).double()(x, with_self_loops(edge_index, len(x)), batch)


def test_made_in_inference_mode_they_serve_training_too(
    make_batch: Callable[..., Batch],
) -> None:
    x, edge_index, batch = make_batch(0)
    model = build_model("gat", 5, 2).double()
    graph = Graph(edge_index, len(x))
    with torch.inference_mode():
        model(x, graph, batch)
    model(x, graph, batch).sum().backward()
    assert model.convs[0].lin.weight.grad.isfinite().all()
