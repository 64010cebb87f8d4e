"""The graph of a tensor is remembered until the tensor changes, or goes."""

import gc
import weakref
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric import EdgeIndex

from gnn_vpa.ops import Graph, aggregate, forget_graphs
from gnn_vpa.ops._cache import Memory, as_graph

X = torch.tensor([[1.0], [2.0], [4.0]])


def new() -> Tensor:
    return torch.tensor([[0, 0], [1, 1]])


CHANGES = {
    "in place": lambda t: t.copy_(new()),
    "an entry": lambda t: t.__setitem__((0, 0), 1),
    "data": lambda t: setattr(t, "data", new()),
    "set_": lambda t: t.set_(new()),
    "resize_": lambda t: t.resize_(2, 1),
    "data of another shape": lambda t: setattr(t, "data", new()[:, :1]),
    "data in another order": lambda t: setattr(t, "data", t.data.t()),
    "data of another type": lambda t: setattr(t, "data", new().int()),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("aggr", ["sum", "vpa"])
def test_a_change_is_seen(change: Callable[[Tensor], object], aggr: str) -> None:
    edge_index = torch.tensor([[0, 1], [2, 0]])
    before = aggregate(X, edge_index, aggr)
    change(edge_index)
    after = aggregate(X, edge_index, aggr)
    assert torch.equal(after, aggregate(X, edge_index.clone(), aggr))
    assert not torch.equal(after, before)


def test_memory_that_was_given_back_is_not_taken_for_the_old() -> None:
    # Without a hold on it, the third tensor would soon be where the first one was.
    edge_index = new()
    for _ in range(100):
        edge_index.data = new()
        aggregate(X, edge_index, "sum")
        edge_index.data = new()
        edge_index.data = torch.tensor([[0, 1], [2, 0]])
        assert aggregate(X, edge_index, "sum").flatten().tolist() == [2, 0, 1]


def test_an_edge_index_of_pyg_is_remembered_too() -> None:
    edge_index = EdgeIndex([[0, 1], [2, 0]], sparse_size=(3, 3))
    graph = as_graph(edge_index, 3)
    assert as_graph(edge_index, 3) is graph
    edge_index[0, 0] = 1
    assert as_graph(edge_index, 3).by_target.col.tolist() == [1, 1]


def test_a_graph_is_made_once_for_an_unchanged_edge_index() -> None:
    edge_index = torch.tensor([[0, 1], [1, 0]])
    graph = as_graph(edge_index, 2)
    assert as_graph(edge_index, 2) is graph
    assert as_graph(edge_index, 3) is not graph
    edge_index[0, 0] = 1
    assert as_graph(edge_index, 2).by_target.col.tolist() == [1, 1]


@pytest.mark.parametrize("order", [[[0, 1], [1, 0]], [[1, 0], [0, 1]]], ids=["unsorted", "sorted"])
def test_the_memory_does_not_keep_a_tensor_alive(order: list[list[int]]) -> None:
    edge_index = torch.tensor(order)
    graph = weakref.ref(as_graph(edge_index, 2))
    assert graph() is not None
    del edge_index
    gc.collect()
    assert graph() is None


@pytest.mark.parametrize("change", ["numpy", "data"])
def test_what_cannot_be_seen_can_be_told(change: str) -> None:
    edges = np.array([[0, 1], [2, 0]])
    edge_index = torch.from_numpy(edges)
    aggregate(X, edge_index, "sum")
    if change == "numpy":
        edges[1] = 1
    else:
        edge_index.data[1] = 1
    forget_graphs()
    assert aggregate(X, edge_index, "sum").flatten().tolist() == [0, 3, 0]


def test_another_tensor_in_the_place_of_one_that_is_gone_is_not_taken_for_it() -> None:
    memory, first, second = Memory(), new(), new()
    memory.put(first, "first")
    memory._known[id(second)] = memory._known[id(first)]  # as if it had come to lie there
    assert memory.get(second) is None
    assert memory.get(second, "nothing") == "nothing"
    assert memory.get(first) == "first"
    memory.put(second, "second")
    del first
    gc.collect()
    assert memory.get(second) == "second"
    assert len(memory._known) == 1


def test_a_graph_that_a_transform_is_the_first_to_group_serves_others() -> None:
    edge_index = torch.randint(6, (2, 20), generator=torch.Generator().manual_seed(0))
    graph = as_graph(edge_index, (6, 6))
    x = torch.randn(6, 2, dtype=torch.float64)

    def cubes(x: Tensor) -> Tensor:
        return aggregate(x, graph, "vpa").pow(3).sum()

    found = torch.func.hessian(cubes)(x)
    torch.testing.assert_close(torch.func.jacrev(torch.func.jacrev(cubes))(x), found)
    again = Graph(edge_index, (6, 6))
    right = torch.autograd.functional.hessian(lambda x: aggregate(x, again, "vpa").pow(3).sum(), x)
    torch.testing.assert_close(found, right)
    torch.testing.assert_close(aggregate(x, graph, "vpa"), aggregate(x, again, "vpa"))
