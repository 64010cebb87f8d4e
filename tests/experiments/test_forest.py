import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gnn_vpa.experiments.forest import degree_numbers, forest, pooled_features
from gnn_vpa.graphs import FeatureKind, GraphSet, Split, load


@pytest.mark.parametrize("kind", ["auto", "degree", "ones"])
def test_pooled_features_are_sums_and_means_of_the_matrix(kind: FeatureKind) -> None:
    from gnn_vpa.graphs import features

    graphs = load("MUTAG")
    numbers, own = pooled_features(graphs, kind), features(graphs, kind)
    for graph in (0, 7, 187):
        x = own.matrix(slice(*graphs.node_ptr[graph : graph + 2].tolist())).double()
        expected = torch.cat([torch.tensor([len(x)]), x.sum(dim=0), x.mean(dim=0)])
        assert numbers[graph] == pytest.approx(expected.numpy())


def test_attributes_and_labels_are_both_pooled() -> None:
    graphs = GraphSet(
        name="both",
        node_ptr=torch.tensor([0, 2]),
        rowptr=torch.tensor([0, 1, 2]),
        col=torch.tensor([1, 0], dtype=torch.int32),
        y=torch.tensor([0]),
        node_labels=torch.tensor([[1], [1]]),
        node_attributes=torch.tensor([[0.5], [2.5]]),
    )
    assert pooled_features(graphs, "auto").tolist() == [[2, 3, 0, 2, 1.5, 0, 1]]


def test_no_edges_means_no_edges() -> None:
    edges = torch.tensor([[0, 1], [1, 0]])
    x = torch.tensor([[1.0], [2.0], [3.0]])
    first, second = (
        pooled_features(GraphSet.from_pyg([Data(x=x, edge_index=e, y=0)]), "auto")
        for e in (edges, edges + 1)
    )
    assert first.tolist() == second.tolist()


def test_no_features_means_no_features() -> None:
    edges = torch.tensor([[0, 1], [1, 0]])
    first, second = (
        degree_numbers(GraphSet.from_pyg([Data(x=x, edge_index=edges, y=0)]))
        for x in (torch.zeros(3, 2), torch.rand(3, 2))
    )
    assert first.tolist() == second.tolist()


def test_degrees_are_counted_in_boxes_that_grow() -> None:
    degrees = [0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 15]
    source = torch.cat([torch.arange(degree) for degree in degrees])
    target = torch.arange(len(degrees)).repeat_interleave(torch.tensor(degrees))
    edges = torch.stack([source, target])
    (numbers,) = degree_numbers(GraphSet.from_pyg([Data(edge_index=edges, num_nodes=15, y=0)]))
    nodes, total, mean, deviation, most, *shares = numbers
    assert (nodes, total, most) == (15, sum(degrees), 15)
    every = degrees + [0] * 3
    assert (mean, deviation) == pytest.approx((np.mean(every), np.std(every)))
    assert np.array(shares) * 15 == pytest.approx([4, 1, 1, 1, 2, 2, 2, 2])


def test_validation_chooses_and_the_test_graphs_are_not_looked_at() -> None:
    draw = np.random.default_rng(0)
    numbers, y = draw.normal(size=(60, 3)), torch.from_numpy(draw.integers(0, 2, 60))
    split = Split(*torch.arange(60).split([30, 15, 15]))
    other = y.clone()
    other[45:] = 1 - other[45:]
    for one, two in zip(forest(numbers, y, split), forest(numbers, other, split), strict=True):
        assert torch.equal(one, two)
