"""Merged graphs as such: what they hold, how they are counted and batched, what is refused."""

import re
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
import torch
from torch import nn
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.data.hypergraph_data import HyperGraphData
from torch_geometric.loader import DataLoader
from torch_geometric.nn import global_add_pool, global_max_pool
from torch_geometric.transforms import ToSparseTensor

from gnn_vpa import UsageError, aggregate
from gnn_vpa.pyg import BatchNorm, MergeAlike, merged_readout


def _graph(graph: nx.Graph) -> Data:
    """A graph whose features follow the degree, so that what is alike stays alike."""
    edges = torch.tensor(list(graph.to_directed().edges), dtype=torch.int64).reshape(-1, 2).T
    degree = torch.tensor([degree for _, degree in graph.degree])
    return Data(x=torch.stack([degree.cos(), degree.sin()], dim=1).double(), edge_index=edges)


GRAPHS = [
    _graph(graph)
    for graph in (
        nx.star_graph(5),
        nx.complete_bipartite_graph(3, 4),
        nx.balanced_tree(2, 3),
        nx.disjoint_union(nx.empty_graph(3), nx.path_graph(5)),
    )
]
PAIR = torch.tensor([[0, 1], [1, 0]])
WHOLE = Batch.from_data_list(GRAPHS)
MERGED = Batch.from_data_list([MergeAlike(2)(data) for data in GRAPHS])


@pytest.mark.parametrize("rounds", [None, 30])
def test_until_nothing_changes_is_exact_at_any_depth(rounds: int | None) -> None:
    for data in GRAPHS:
        few, many = (MergeAlike(r)(data) for r in (rounds, 1000))
        assert torch.equal(few.times, many.times)
        assert torch.equal(few.edge_index, many.edge_index)


def test_batch_norm_has_to_count() -> None:
    expected = nn.BatchNorm1d(2).double()(WHOLE.x)
    counted = BatchNorm(2).double()(MERGED.x, MERGED.times)[MERGED.merged_index]
    plain = nn.BatchNorm1d(2).double()(MERGED.x)[MERGED.merged_index]
    torch.testing.assert_close(counted, expected, rtol=1e-9, atol=1e-9)
    assert (plain - expected).abs().max() > 1e-3


def test_pools_of_pyg_with_counts() -> None:
    times = MERGED.times.unsqueeze(1)
    total = global_add_pool(MERGED.x * times, MERGED.batch)
    torch.testing.assert_close(total, global_add_pool(WHOLE.x, WHOLE.batch))
    maximum = global_max_pool(MERGED.x, MERGED.batch)
    torch.testing.assert_close(maximum, global_max_pool(WHOLE.x, WHOLE.batch))
    for aggr in ("sum", "mean", "max", "vpa"):
        outs = [aggregate(d.x, merged_readout(d), aggr) for d in (WHOLE, MERGED)]
        torch.testing.assert_close(outs[0], outs[1], rtol=1e-9, atol=1e-9)


def test_a_batch_keeps_track_of_every_node() -> None:
    graphs = [MergeAlike(2)(data) for data in GRAPHS]
    batch = next(iter(DataLoader(graphs, len(graphs))))
    assert torch.equal(batch.x[batch.merged_index], WHOLE.x)
    assert torch.equal(batch.merged_index.bincount(), batch.times)
    back = batch.to_data_list()
    for one, same in zip(graphs, back, strict=True):
        assert torch.equal(one.merged_index, same.merged_index)
        assert torch.equal(one.edge_times, same.edge_times)


def test_edges_count_for_what_they_are() -> None:
    """Three parallel edges of two kinds and a weight: those that are equal are one that counts."""
    data = Data(
        x=torch.ones(3, 1),
        edge_index=torch.tensor([[0, 1, 1, 0], [2, 2, 2, 2]]),
        edge_weight=torch.tensor([2.0, 2.0, 5.0, 2.0]),
    )
    small = MergeAlike(1)(data)
    assert small.times.tolist() == [2, 1]
    assert small.edge_index.tolist() == [[0, 0], [1, 1]]
    assert sorted(zip(small.edge_times.tolist(), small.edge_weight.tolist(), strict=True)) == [
        (1, 5.0),
        (3, 6.0),
    ]
    many = MergeAlike(1, repeat=True)(data)
    assert sorted(many.edge_weight.tolist()) == [2.0, 2.0, 2.0, 5.0]
    assert "edge_times" not in many


@pytest.mark.parametrize("dtype", [torch.bool, torch.int32, torch.bfloat16, torch.float64])
def test_nodes_that_differ_in_any_attribute_stay_apart(dtype: torch.dtype) -> None:
    leaves = torch.tensor([[1, 2, 3, 4], [0, 0, 0, 0]])
    mask = torch.tensor([0, 1, 0, 0, 1]).to(dtype)
    data = Data(x=torch.ones(5, 2), edge_index=leaves, train_mask=mask, y=torch.tensor([7]))
    small = MergeAlike(3)(data)
    assert small.times.tolist() == [1, 2, 2]
    assert small.train_mask.tolist() == mask[[0, 1, 2]].tolist()
    assert small.y.tolist() == [7]
    numbered = MergeAlike(3)(Data(x=torch.ones(5, 2), edge_index=leaves, pos=torch.arange(5.0)))
    assert numbered.num_nodes == 5  # positional encodings: nothing is alike


def test_many_attributes_of_half_types_do_not_run_together() -> None:
    x = torch.arange(1000.0).unsqueeze(1)
    data = Data(x=x, half=torch.ones(1000, 1).half(), edge_index=torch.empty(2, 0).long())
    assert MergeAlike(1, levels={"half": "node"})(data).num_nodes == 1000


def test_as_many_labels_as_nodes_or_edges_belong_to_what_is_said() -> None:
    """A path: its ends are alike, and its middle is not."""
    path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    data = Data(x=torch.ones(3, 1), edge_index=path, y=torch.tensor([5, 6, 7]))
    with pytest.raises(
        UsageError, match=r"y: has 3 .* nodes, .* levels=\{'y': 'node'\}, or 'graph'"
    ):
        MergeAlike()(data)
    of_graph = MergeAlike(levels={"y": "graph"})(data)
    assert of_graph.num_nodes == 2
    assert of_graph.y.tolist() == [5, 6, 7]
    of_nodes = MergeAlike(levels={"y": "node"})(data)
    assert of_nodes.num_nodes == 3  # labels tell the ends apart
    data.y = torch.tensor([5, 6, 6, 5])
    with pytest.raises(UsageError, match="y: has 4 entries, as many as the graph has edges"):
        MergeAlike()(data)
    of_edges = MergeAlike(levels={"y": "edge"})(data)
    assert of_edges.num_nodes == 2
    label = dict(zip(of_edges.edge_index[1].tolist(), of_edges.y.tolist(), strict=True))
    assert [label[end] for end in of_edges.merged_index[path[1]].tolist()] == [5, 6, 6, 5]


def test_numbers_of_nodes_are_not_left_to_mean_others() -> None:
    star = torch.tensor([[0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0]])
    data = Data(x=torch.ones(4, 1), edge_index=star, center_index=torch.tensor([3]))
    with pytest.raises(UsageError, match=r"center_index: .* data.merged_index\[center_index\]"):
        MergeAlike()(data)
    asked = MergeAlike(levels={"center_index": "graph"})(data)
    assert asked.center_index.tolist() == [3]
    assert asked.merged_index[asked.center_index].tolist() == [1]
    data.center_index = data.center_index == 3  # says of something whether, and numbers nothing
    assert "center_index" in MergeAlike()(data)


def test_a_matrix_of_the_whole_graphs_nodes_is_not_left_beside_merged_ones() -> None:
    star = torch.tensor([[0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0]])
    data = ToSparseTensor(remove_edge_index=False)(Data(x=torch.ones(4, 1), edge_index=star))
    with pytest.raises(UsageError, match=r"adj_t: .* make it from the merged graph"):
        MergeAlike()(data)
    asked = MergeAlike(levels={"adj_t": "graph"})(data)
    assert (asked.num_nodes, asked.adj_t.shape) == (2, (4, 4))


def test_the_users_graph_is_left_alone() -> None:
    data = GRAPHS[0].clone()
    before = {key: value.clone() for key, value in data.to_dict().items()}
    MergeAlike(2)(data)
    assert data.to_dict().keys() == before.keys()
    assert all(torch.equal(data[key], value) for key, value in before.items())


def test_graphs_without_features_edges_or_nodes() -> None:
    nothing = torch.empty(2, 0, dtype=torch.int64)
    lonely = MergeAlike(2)(Data(edge_index=nothing, num_nodes=4))
    assert (lonely.num_nodes, lonely.times.tolist()) == (1, [4])
    empty = MergeAlike(2)(Data(x=torch.empty(0, 3), edge_index=nothing))
    assert (empty.num_nodes, empty.num_edges, empty.times.tolist()) == (0, 0, [])
    marked = MergeAlike(2)(
        Data(x=torch.ones(3, 1), edge_index=nothing, edge_attr=torch.empty(0, 2))
    )
    assert (marked.times.tolist(), list(marked.edge_attr.shape)) == ([3], [0, 2])
    narrow = MergeAlike(2)(Data(x=torch.ones(3, 0), edge_index=nothing))
    assert narrow.times.tolist() == [3]


def test_alone_it_is_a_graph_too() -> None:
    data = MergeAlike(2)(GRAPHS[1])
    whole = GRAPHS[1].x.sum(0, keepdim=True)
    torch.testing.assert_close(aggregate(data.x, merged_readout(data), "sum"), whole)


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (Batch.from_data_list(GRAPHS[:2]), "Batch"),
        (HeteroData(), "HeteroData"),
        (Data(x=torch.ones(2, 1)), "edge_index"),
        (Data(x=torch.ones(2, 1), adj_t=torch.eye(2)), "ToSparseTensor"),
        (MergeAlike(1)(GRAPHS[0]), "merged already"),
        (Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]), names=["a", "b"]), "names"),
        (
            Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]), pos=["a", "b"]),
            "pos: .*list",
        ),
        (
            Data(x=torch.eye(2).to_sparse(), edge_index=torch.tensor([[0], [1]])),
            "x: .*a sparse one",
        ),
        (Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [2]])), "target index 2 is out of"),
        (Data(x=torch.ones(2, 1), edge_index=torch.tensor([0, 1])), "edge_index: expected shape"),
        (Data(x=torch.ones(2, 1), edge_index=torch.ones(2, 1)), "edge_index: expected int64"),
        (
            Data(x=torch.ones(2, 1), edge_index=PAIR, edge_attr=torch.ones(3)),
            "edge_attr: .* 2 edges",
        ),
        (Data(x=torch.ones(2, 1), edge_index=PAIR, pos=torch.ones(3, 2)), "pos: .* 2 nodes"),
        (HyperGraphData(x=torch.ones(2, 1), edge_index=PAIR), "HyperGraphData"),
    ],
)
def test_what_cannot_be_merged_is_named(data: Any, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        MergeAlike(2)(data)


@pytest.mark.parametrize("rounds", [0, -1, 1.5, "2"])
def test_rounds_are_a_number_of_layers(rounds: Any) -> None:
    with pytest.raises(UsageError, match="rounds"):
        MergeAlike(rounds)


def test_the_code_in_the_docs_runs(root: Path) -> None:
    text = (root / "docs" / "compression.md").read_text()
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL):
        exec(compile(block, "compression.md", "exec"), names)
    assert names["pooled"].shape == (4, 16)
    assert names["data"].num_nodes == 2


def test_it_says_what_it_is() -> None:
    assert repr(MergeAlike(3)) == "MergeAlike(rounds=3)"
    assert repr(MergeAlike(levels={"y": "node"})) == "MergeAlike(rounds=None, levels={'y': 'node'})"
    assert repr(MergeAlike(repeat=True)) == "MergeAlike(rounds=None, repeat=True)"
