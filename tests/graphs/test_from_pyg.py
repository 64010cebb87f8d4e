"""Graphs that are checked all at once are refused as each by itself is."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data

from gnn_vpa import UsageError
from gnn_vpa.graphs import GraphSet
from gnn_vpa.graphs._from_pyg import _all_fit, _fault, _have_edges, num_nodes, seen
from gnn_vpa.graphs.batches import read_batches

PAIR = torch.tensor([[0, 1], [1, 0]])


def whole(**changed: Any) -> Data:
    usual = {
        "x": torch.ones(2, 3),
        "edge_index": PAIR,
        "edge_attr": torch.ones(2, 2),
        "edge_weight": torch.ones(2),
        "pos": torch.ones(2, 3),
        "y": 1,
    }
    return Data(**{name: value for name, value in (usual | changed).items() if value is not None})


def all_fit(graphs: list[Data], target: str) -> bool:
    """Check graphs all at once."""
    found = [seen(graph) for graph in graphs]
    edges = torch.cat([graph.edge_index for graph in graphs], dim=1)
    sizes, counts = [g.nodes for g in found], [g.edges for g in found]
    return _all_fit([g.store for g in found], sizes, counts, edges, target)


CHANGES: dict[str, Callable[[], Data]] = {
    "nothing": whole,
    "weights as a column": lambda: whole(edge_weight=torch.ones(2, 1)),
    "no target": lambda: whole(y=None),
    "no features": lambda: whole(x=None),
    "other features": lambda: whole(x=torch.ones(2, 4)),
    "features of one more node": lambda: whole(x=torch.ones(3, 3)),
    "features without columns": lambda: whole(x=torch.ones(2)),
    "positions of one more node": lambda: whole(pos=torch.ones(3, 3)),
    "no positions": lambda: whole(pos=None),
    "a node too far": lambda: whole(edge_index=PAIR * 2),
    "a node below": lambda: whole(edge_index=PAIR - 1),
    "edges as a list": lambda: whole(edge_index=PAIR[0]),
    "edges of 32 bits": lambda: whole(edge_index=PAIR.int()),
    "no edges": lambda: whole(edge_index=None),
    "edges that are no tensor": lambda: whole(edge_index=[[0, 1], [1, 0]]),
    "attributes of one edge": lambda: whole(edge_attr=torch.ones(1, 2)),
    "two weights": lambda: whole(edge_weight=torch.ones(2, 2)),
    "a number of nodes": lambda: whole(num_nodes=1),
    "another number of nodes": lambda: whole(feat=torch.ones(5, 1)),
}


@given(names=st.lists(st.sampled_from(list(CHANGES)), min_size=1, max_size=4))
@pytest.mark.parametrize("target", ["y", ""])
def test_all_at_once_passes_nothing_that_a_graph_by_itself_would_not(
    target: str, names: list[str]
) -> None:
    graphs = [CHANGES[name]() for name in names]
    faults = [_fault(graph, graphs[0], target, 0) for graph in graphs]
    if _have_edges([graph.edge_index for graph in graphs]):
        assert not all_fit(graphs, target) or faults == [None] * len(graphs)
    first = next((number for number, fault in enumerate(faults) if fault is not None), None)
    if first is None:
        assert GraphSet.from_pyg(graphs, target=target).num_graphs == len(graphs)
    else:
        with pytest.raises(UsageError) as refused:
            GraphSet.from_pyg(graphs, "mine", target=target)
        assert str(refused.value) == f"mine, graph {first}: {faults[first]}"


def test_usual_graphs_are_checked_all_at_once() -> None:
    assert all_fit([whole(), whole(), whole()], "y")


class Counted(Data):
    """A graph that knows better how many nodes it has."""

    @property
    def num_nodes(self) -> int:
        return 7


@pytest.mark.parametrize(
    "graph",
    [
        whole(),
        whole(x=None),
        whole(num_nodes=4),
        Data(edge_index=PAIR, feat=torch.ones(5, 1), x=torch.ones(2, 1)),
        Counted(edge_index=PAIR, x=torch.ones(2, 1)),
    ],
    ids=str,
)
def test_the_number_of_nodes_is_that_of_pyg(graph: Data) -> None:
    assert num_nodes(graph, graph.to_dict()) == graph.num_nodes


def test_edges_of_a_class_of_pyg_are_read() -> None:
    edges = EdgeIndex(PAIR, sparse_size=(2, 2))
    graphs = GraphSet.from_pyg([whole(), whole(edge_index=edges)])
    assert graphs.col.tolist() == [1, 0, 3, 2]


def test_a_batch_is_not_taken_for_a_graph() -> None:
    pair = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2, y=0)
    batch = Batch.from_data_list([pair, pair])
    for read in (GraphSet.from_pyg, lambda given: list(read_batches(given, 100))):
        with pytest.raises(UsageError, match=r"graph 1: it is a batch of 2 graphs: .*to_data_list"):
            read([pair, batch])
