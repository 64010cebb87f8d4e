import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Data

from gnn_vpa.errors import GnnVpaError, UsageError
from gnn_vpa.graphs import GraphSet, Numbering, read_tu


def parts() -> dict[str, Any]:
    """A path of three nodes and a pair."""
    return {
        "node_ptr": torch.tensor([0, 3, 5]),
        "rowptr": torch.tensor([0, 1, 3, 4, 5, 6]),
        "col": torch.tensor([1, 0, 2, 1, 4, 3], dtype=torch.int32),
        "y": torch.tensor([1, 0]),
    }


def test_classes_are_called_as_the_data_call_them() -> None:
    assert GraphSet("numbers", **parts()).classes == (0, 1)
    assert GraphSet("labels", **parts(), numbering=Numbering(classes=(-1, 1))).classes == (-1, 1)
    assert GraphSet("text", **parts(), class_names=("no", "yes")).classes == ("no", "yes")
    assert GraphSet("sizes", **{**parts(), "y": torch.tensor([[0.5], [1.5]])}).classes == ()


def test_counts_and_statistics() -> None:
    graphs = GraphSet("paths", **parts())
    assert (graphs.num_graphs, graphs.num_nodes, graphs.num_edges, graphs.num_classes) == (
        2,
        5,
        6,
        2,
    )
    assert graphs.degree().tolist() == [1, 2, 1, 1, 1]
    statistics = graphs.statistics()
    assert (statistics.nodes, statistics.edges) == (2.5, 1.5)
    assert (statistics.node_labels, statistics.node_attributes) == (0, 0)


def test_a_graph_has_its_own_node_numbers() -> None:
    pair = GraphSet("paths", **parts()).graph(1)
    assert pair.edge_index.tolist() == [[0, 1], [1, 0]]
    assert pair.num_nodes == 2
    assert pair.y.tolist() == [0]


@pytest.mark.parametrize("index", [-1, 2])
def test_a_graph_that_is_not_there(index: int) -> None:
    with pytest.raises(UsageError, match=f"no graph {index}: it has 2"):
        GraphSet("paths", **parts()).graph(index)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("node_ptr", torch.tensor([0, 3, 4]), "node_ptr must rise from 0 to 5"),
        ("node_ptr", torch.tensor([0, 5]), "node_ptr must rise from 0 to 5 in 3"),
        ("rowptr", torch.tensor([0, 3, 1, 4, 5, 6]), "rowptr must rise from 0 to 6"),
        ("rowptr", torch.tensor([1, 1, 3, 4, 5, 6]), "rowptr must rise from 0"),
        ("col", torch.tensor([1, 0, 3, 1, 4, 3], dtype=torch.int32), "edge of graph 0 leaves"),
        ("col", torch.tensor([1, 0, 2, 1, 4, 2], dtype=torch.int32), "edge of graph 1 leaves"),
        ("col", torch.tensor([1, 0, 2, 1, 4, 5], dtype=torch.int32), "edge of graph 1 leaves"),
        ("col", torch.tensor([1, -1, 2, 1, 4, 3], dtype=torch.int32), "edge of graph 0 leaves"),
        ("y", torch.tensor([-2, 1]), r"y must count from 0 \(-1: missing\), but has -2"),
        ("y", torch.tensor([[0], [2]], dtype=torch.int8), "y must be 0 or 1 for each label"),
        ("y", torch.tensor([[0.5], [math.inf]]), "y of graph 1, column 0 .* is inf"),
        ("y", torch.zeros(2, 0), "y has no column"),
        ("node_labels", torch.arange(-1, 4)[:, None], "node_labels must count from 0"),
        ("node_labels", torch.zeros(4, 1, dtype=torch.int64), "node_labels must have 5 rows"),
        ("node_attributes", torch.zeros(5), "node_attributes must have 5 rows"),
        ("edge_attributes", torch.zeros(5, 1), "edge_attributes must have 6 rows"),
        (
            "y",
            torch.tensor([0.0, float("nan")]),
            r"y must be int64 \[G\] .* is torch.float32 \[2\]",
        ),
        ("graph_attributes", torch.zeros(3, 1), "graph_attributes must have 2 rows"),
        ("graph_attributes", torch.full((2, 1), math.inf), "graph_attributes of graph 0, column 0"),
        ("node_labels", torch.zeros(5, 1), "node_labels must be int64, but is torch.float32"),
    ],
)
def test_parts_that_do_not_fit(field: str, value: Tensor, message: str) -> None:
    with pytest.raises(GnnVpaError, match=f"paths: .*{message}"):
        GraphSet("paths", **(parts() | {field: value}))


@settings(max_examples=30, deadline=None)
@given(
    field=st.sampled_from(["node_attributes", "edge_attributes"]),
    row=st.integers(0, 4),
    column=st.integers(0, 2),
    value=st.sampled_from([math.nan, math.inf, -math.inf]),
)
def test_a_number_that_is_not_finite_is_named(
    field: str, row: int, column: int, value: float
) -> None:
    rows = 5 if field == "node_attributes" else 6
    tensor = torch.zeros(rows, 3)
    tensor[row, column] = value
    nodes = ["graph 0, node 0", "graph 0, node 1", "graph 0, node 2"]
    nodes += ["graph 1, node 0", "graph 1, node 1"]
    edges = [f"{nodes[0]}, its edge from node 1", f"{nodes[1]}, its edge from node 0"]
    edges += [f"{nodes[1]}, its edge from node 2", f"{nodes[2]}, its edge from node 1"]
    edges += [f"{nodes[3]}, its edge from node 1", f"{nodes[4]}, its edge from node 0"]
    where = (nodes if field == "node_attributes" else edges)[row]
    message = rf"paths: {field} of {where}, column {column} .* is {value}: give a finite"
    with pytest.raises(GnnVpaError, match=message):
        GraphSet("paths", **(parts() | {field: tensor}))


@pytest.mark.parametrize("x", [math.nan, math.inf, 1e300])
def test_ones_own_numbers_must_be_finite_in_32_bits(x: float) -> None:
    rows = torch.tensor([[0.0], [x]], dtype=torch.float64)
    bad = Data(x=rows, edge_index=EDGES, y=0)
    with pytest.raises(UsageError, match=r"mine: node_attributes of graph 0, node 1, column 0"):
        GraphSet.from_pyg([bad], "mine")
    bad = Data(edge_attr=rows[1:], num_nodes=2, edge_index=EDGES, y=0)
    with pytest.raises(UsageError, match=r"mine: edge_attributes of graph 0, node 1, its edge"):
        GraphSet.from_pyg([bad], "mine")


def test_a_graph_without_nodes_goes_through_pyg_and_back() -> None:
    none = torch.empty(2, 0).long()
    empty = Data(x=torch.empty(0, 3), edge_index=none, y=1)
    graphs = GraphSet.from_pyg([empty, GOOD, empty], "mine")
    assert graphs.node_ptr.tolist() == [0, 0, 2, 2]
    assert graphs.graph(0).num_nodes == 0
    assert GraphSet.from_pyg(graphs.to_pyg()).checksum() == graphs.checksum()


def test_the_checksum_sees_every_part() -> None:
    base = GraphSet("paths", **parts())
    others = [
        {"y": torch.tensor([0, 1])},
        {"node_labels": torch.zeros(5, 1, dtype=torch.int64)},
        {"node_attributes": torch.zeros(5, 1)},
        {"node_ptr": torch.tensor([0, 0, 5])},
    ]
    sums = {GraphSet("paths", **(parts() | other)).checksum() for other in others}
    assert len(sums | {base.checksum()}) == 5
    assert GraphSet("renamed", **parts()).checksum() == base.checksum()


def test_there_and_back_through_pyg(write_tu: Callable[..., Path]) -> None:
    attributes = "1.5\n2.5\n3.5\n4.5\n5.5\n"
    graphs = read_tu(write_tu(node_attributes=attributes, edge_labels="1\n2\n1\n1\n2\n1\n"))
    assert GraphSet.from_pyg(graphs.to_pyg()).checksum() == graphs.checksum()


def test_directed_graphs_keep_order_and_attributes() -> None:
    edges = torch.tensor([[2, 0, 0, 1], [0, 2, 1, 2]])
    data = Data(edge_index=edges, edge_attr=torch.arange(4.0), num_nodes=3, y=0)
    graph = GraphSet.from_pyg([data]).graph(0)
    assert graph.edge_index.tolist() == [[0, 0, 1, 2], [1, 2, 2, 0]]
    assert graph.edge_attr.tolist() == [[2.0], [1.0], [3.0], [0.0]]


def test_parallel_edges_and_self_loops_of_ones_own_are_kept() -> None:
    edges = torch.tensor([[0, 0, 1], [1, 1, 1]])
    graphs = GraphSet.from_pyg([Data(edge_index=edges, num_nodes=2, y=3)])
    assert graphs.degree().tolist() == [0, 3]
    assert graphs.graph(0).edge_index.tolist() == [[0, 0, 1], [1, 1, 1]]


def test_classes_are_numbered_in_sorted_order() -> None:
    single = [
        Data(x=torch.ones(1, 1), edge_index=torch.empty(2, 0).long(), y=y) for y in (9, -4, 9)
    ]
    assert GraphSet.from_pyg(single).y.tolist() == [1, 0, 1]


def test_graphs_of_no_edge_and_of_one_node() -> None:
    empty = torch.empty(2, 0).long()
    graphs = GraphSet.from_pyg([Data(edge_index=empty, num_nodes=n, y=0) for n in (1, 2)])
    assert graphs.degree().tolist() == [0, 0, 0]
    assert graphs.graph(1).edge_index.shape == (2, 0)


EDGES = torch.tensor([[0], [1]])
GOOD = Data(x=torch.ones(2, 3), edge_index=EDGES, y=0)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("text", "expected a torch_geometric.data.Data, got str"),
        (Data(x=torch.ones(2, 3), y=0), "edge_index must be"),
        (Data(x=torch.ones(2, 3), edge_index=EDGES.float(), y=0), "edge_index must be"),
        (Data(x=torch.ones(1, 3), edge_index=EDGES, y=0), "from 0 to 1, with 1 nodes"),
        (Data(x=torch.ones(2, 3), edge_index=-EDGES, y=0), "from -1 to 0"),
        (Data(x=torch.ones(2, 3), edge_index=EDGES), "it has no y, which is to be learned"),
        (Data(x=torch.ones(2, 3), edge_index=EDGES, y=torch.ones(1)), "y must be one whole"),
        (Data(x=torch.ones(2, 3), edge_index=EDGES, y=torch.arange(2)), "y has 2 value"),
        (Data(x=torch.ones(2, 4), edge_index=EDGES, y=0), "x has other columns"),
        (Data(num_nodes=2, edge_index=EDGES, y=0), "x has other columns"),
        (Data(x=torch.ones(2, 3), edge_index=EDGES, edge_attr=EDGES, y=0), "edge_attr has other"),
        (Data(x=torch.ones(2, 3), num_nodes=3, edge_index=EDGES, y=0), "x must have 3 rows"),
    ],
)
def test_a_graph_that_cannot_be_used_is_named(bad: object, message: str) -> None:
    with pytest.raises(UsageError, match=f"mine, graph 1: .*{message}"):
        GraphSet.from_pyg([GOOD, bad], "mine")


def test_no_graphs_at_all() -> None:
    with pytest.raises(UsageError, match=r"mine: there is no graph"):
        GraphSet.from_pyg([], "mine")
