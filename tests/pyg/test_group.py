"""Graphs whose edges are in order."""

import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GraphConv

from gnn_vpa import Graph, GroupEdges, UsageError, convert


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
    with pytest.warns(UserWarning, match="Unable to accurately infer"):
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


@pytest.mark.parametrize("data", [Data(), None, Batch()], ids=["no edges", "none", "batch"])
def test_what_cannot_be_grouped_is_refused(data: object) -> None:
    with pytest.raises(UsageError, match="data: expected a torch_geometric"):
        GroupEdges()(data)
