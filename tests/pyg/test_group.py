"""Graphs whose edges are in order."""

from typing import Any

import pytest
import torch
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data
from torch_geometric.data.hypergraph_data import HyperGraphData
from torch_geometric.nn import GraphConv

from gnn_vpa import Graph, GroupEdges, MergeAlike, UsageError, convert


def graph(draw: torch.Generator, nodes: int = 7, edges: int = 20) -> Data:
    return Data(
        x=torch.randn(nodes, 3, generator=draw),
        edge_index=torch.randint(nodes, (2, edges), generator=draw),
        edge_attr=torch.randn(edges, 2, generator=draw),
        edge_weight=torch.rand(edges, generator=draw),
        y=torch.tensor([1]),
    )


def test_a_batch_of_grouped_graphs_is_grouped(generator: torch.Generator) -> None:
    batch = Batch.from_data_list([GroupEdges()(graph(generator)) for _ in range(4)])
    assert Graph(batch.edge_index, batch.num_nodes).by_target.edge is None


def test_every_attribute_moves_with_its_edge(generator: torch.Generator) -> None:
    before = graph(generator)
    after = GroupEdges()(before)

    def edges(data: Data) -> list[tuple[float, ...]]:
        columns = [data.edge_index.t().double(), data.edge_attr, data.edge_weight[:, None]]
        return sorted(map(tuple, torch.cat(columns, dim=1).tolist()))

    assert edges(after) == edges(before)
    assert torch.equal(after.x, before.x)
    order = after.edge_index.flip(0).t().tolist()
    assert order == sorted(order)


def test_a_loader_need_not_infer_the_number_of_nodes(generator: torch.Generator) -> None:
    before = graph(generator)
    after = GroupEdges()(before)
    assert "num_nodes" not in before
    assert after["num_nodes"] == 7
    batch = Batch.from_data_list([after, GroupEdges()(graph(generator, nodes=5))])
    assert batch.num_nodes == 12
    assert batch.batch.tolist() == 7 * [0] + 5 * [1]
    assert batch.get_example(1).num_nodes == 5
    assert batch.get_example(1).edge_index.max() < 5


def test_a_number_of_nodes_is_not_guessed_from_edges(generator: torch.Generator) -> None:
    edge_index = torch.randint(7, (2, 20), generator=generator)
    assert "num_nodes" not in GroupEdges()(Data(edge_index=edge_index))
    assert GroupEdges()(Data(edge_index=edge_index, num_nodes=9)).num_nodes == 9


def test_a_converted_layer_computes_the_same(generator: torch.Generator) -> None:
    data = graph(generator)
    layer, _ = convert(GraphConv(3, 4))
    grouped = GroupEdges()(data)
    torch.testing.assert_close(
        layer(grouped.x, grouped.edge_index, grouped.edge_weight),
        layer(data.x, data.edge_index, data.edge_weight),
    )


def test_an_edge_index_of_pyg_stays_one() -> None:
    given = EdgeIndex([[0, 1, 1, 2], [2, 0, 2, 1]], sparse_size=(3, 3), sort_order="row")
    edges = GroupEdges()(Data(x=torch.ones(3, 1), edge_index=given)).edge_index
    assert isinstance(edges, EdgeIndex)
    assert edges.sort_order is None
    assert edges.tolist() == [[1, 2, 0, 1], [0, 1, 2, 2]]


EDGES = torch.tensor([[0, 0, 1], [2, 1, 0]])  # the order of their targets is 2, 1, 0


def test_as_many_labels_as_edges_belong_to_what_is_said() -> None:
    data = Data(edge_index=EDGES, num_nodes=4, y=torch.tensor([1, 0, 0]))
    with pytest.raises(
        UsageError, match=r"y: has 3 .* edges, .* levels=\{'y': 'edge'\}, or 'graph'"
    ):
        GroupEdges()(data)
    assert GroupEdges(levels={"y": "graph"})(data).y.tolist() == [1, 0, 0]
    assert GroupEdges(levels={"y": "edge"})(data).y.tolist() == [0, 0, 1]
    data.y = data.y.unsqueeze(0)  # of the graph, as PyG's batches have it
    assert GroupEdges()(data).y.tolist() == [[1, 0, 0]]


def test_as_many_nodes_as_edges_make_it_no_clearer() -> None:
    data = Data(edge_index=EDGES, x=torch.arange(3.0)[:, None], y=torch.tensor([1, 0, 0]))
    with pytest.raises(
        UsageError, match=r"y: .* edges and nodes, .* 'edge'\}, or 'node' or 'graph'"
    ):
        GroupEdges()(data)
    out = GroupEdges(levels={"y": "node"})(data)
    assert out.y.tolist() == [1, 0, 0]
    assert out.x.squeeze().tolist() == [0, 1, 2]


@pytest.mark.parametrize("value", [torch.eye(3), [1, 2, 3], torch.ones(3).numpy()], ids=type)
def test_no_other_attribute_is_guessed(value: Any) -> None:
    data = Data(edge_index=EDGES, num_nodes=4, lattice=value)
    with pytest.raises(UsageError, match="lattice: has 3 entries"):
        GroupEdges()(data)
    assert GroupEdges(levels={"lattice": "graph"})(data).lattice is value


@pytest.mark.parametrize("nodes", [3, 4])
def test_what_a_name_says_is_not_asked(nodes: int) -> None:
    three = torch.arange(3)
    data = Data(edge_index=EDGES, x=torch.ones(nodes, 1), edge_type=three, edge_kind=three)
    data.e_id, data.node_kind, data.z, data.y = three, three, three, torch.tensor([1])
    out = GroupEdges()(data)
    for key in ("edge_type", "edge_kind", "e_id"):
        assert out[key].tolist() == [2, 1, 0], key
    for key in ("node_kind", "z"):
        assert out[key].tolist() == [0, 1, 2], key


def test_a_mask_is_of_edges_where_it_cannot_be_of_nodes() -> None:
    mask = torch.tensor([True, False, False])
    out = GroupEdges()(Data(edge_index=EDGES, num_nodes=4, train_mask=mask))
    assert out.train_mask.tolist() == [False, False, True]
    for unclear in (Data(edge_index=EDGES, num_nodes=3), Data(edge_index=EDGES)):
        unclear.train_mask = mask
        with pytest.raises(UsageError, match="train_mask: has 3 entries"):
            GroupEdges()(unclear)


def test_pairs_to_be_predicted_keep_their_labels() -> None:
    """As RandomLinkSplit makes them; there may be as many as there are edges."""
    pairs, labels = torch.tensor([[3, 2, 1], [0, 1, 2]]), torch.tensor([0.0, 1.0, 1.0])
    data = Data(edge_index=EDGES, num_nodes=4, edge_label_index=pairs, edge_label=labels)
    out = GroupEdges()(data)
    assert torch.equal(out.edge_label_index, pairs)
    assert torch.equal(out.edge_label, labels)
    del data.edge_label_index  # now they can only be those of the edges
    assert GroupEdges()(data).edge_label.tolist() == [1, 1, 0]


def test_with_another_list_of_edges_names_say_less() -> None:
    data = Data(edge_index=EDGES, num_nodes=4, edge_index_2=EDGES.flip(0))
    data.edge_attr = torch.arange(3)
    with pytest.raises(UsageError, match="edge_index_2: has 3 entries"):
        GroupEdges()(data)
    out = GroupEdges(levels={"edge_index_2": "graph"})(data)
    assert torch.equal(out.edge_index_2, EDGES.flip(0))
    assert out.edge_attr.tolist() == [2, 1, 0]
    data.edge_sign = torch.ones(3)
    with pytest.raises(UsageError, match="edge_sign: has 3 entries"):
        GroupEdges(levels={"edge_index_2": "graph"})(data)


def test_merged_graphs_are_grouped_too() -> None:
    """Two leaves send to a hub, and as one they are as many nodes as edges were kept."""
    star = torch.tensor([[2, 2, 0, 1], [0, 1, 2, 2]])
    merged = MergeAlike()(Data(x=torch.ones(3, 1), edge_index=star))
    out = GroupEdges()(merged)
    assert out.edge_index.tolist() == [[1, 0], [0, 1]]
    edges = dict(zip(out.edge_index[1].tolist(), out.edge_times.tolist(), strict=True))
    assert edges == dict(
        zip(merged.edge_index[1].tolist(), merged.edge_times.tolist(), strict=True)
    )
    assert torch.equal(out.times, merged.times)
    assert torch.equal(out.merged_index, merged.merged_index)


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (Data(), "data: expected .* with an edge_index"),
        (None, "data: expected a torch_geometric.data.Data, got NoneType"),
        (Batch(), "data: expected a torch_geometric.data.Data, got a Batch"),
        (HyperGraphData(edge_index=EDGES), "got HyperGraphData"),
        (Data(edge_index=EDGES.float()), "edge_index: expected int64 or int32, got torch.float32"),
        (Data(edge_index=EDGES[0]), r"edge_index: expected shape \[2, num_edges\], got \[3\]"),
        (Data(edge_index=EDGES.t()), r"edge_index: expected shape \[2, num_edges\], got \[3, 2\]"),
        (Data(edge_index=EDGES.tolist()), "edge_index: expected a tensor .*, got list"),
        (Data(edge_index=torch.eye(2).to_sparse()), "edge_index: .*, got a sparse one"),
        (Data(edge_index=EDGES, num_nodes=2), "target index 2 is out of range: expected 0 to 1"),
        (Data(edge_index=EDGES - 1), "source index -1 is out of range"),
        (Data(edge_index=EDGES, edge_attr=torch.ones(4, 2)), r"edge_attr: .* 3 edges, .*\[4, 2\]"),
        (Data(edge_index=EDGES, edge_weight=2.0), "edge_weight: .* 3 edges, got float"),
        (Data(edge_index=EDGES, edge_weight=torch.tensor(2.0)), r"edge_weight: .* got shape \[\]"),
        (Data(edge_index=EDGES, edge_name=["a", "b", "c"]), "edge_name: expected .*, got list"),
        (Data(edge_index=EDGES, x=torch.ones(3, 1), num_nodes=4), r"x: .* 4 nodes, got shape"),
    ],
)
def test_what_cannot_be_grouped_is_refused(data: Any, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        GroupEdges()(data)


@pytest.mark.parametrize("levels", [{"y": "graphs"}, {1: "edge"}, ["y"], "y"])
def test_levels_are_names_with_what_they_belong_to(levels: Any) -> None:
    with pytest.raises(UsageError, match="levels: expected names of attributes"):
        GroupEdges(levels=levels)


def test_a_level_that_does_not_fit_is_named() -> None:
    data = Data(edge_index=EDGES, num_nodes=3, y=torch.ones(2))
    with pytest.raises(UsageError, match=r"y: expected an entry for each of the 3 edges, got .*2"):
        GroupEdges(levels={"y": "edge"})(data)


def test_it_says_what_it_is() -> None:
    """By this PyG sees whether a data set was prepared by another transform."""
    assert repr(GroupEdges()) == "GroupEdges()"
    assert repr(GroupEdges(levels={"y": "edge"})) == "GroupEdges(levels={'y': 'edge'})"
