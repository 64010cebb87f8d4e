"""Merged graphs under the layers of PyG: where they are exact, and where they are not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric import transforms as T
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import (
    ChebConv,
    DirGNNConv,
    EdgeConv,
    GATConv,
    GatedGraphConv,
    GATv2Conv,
    GCNConv,
    GINConv,
    GINEConv,
    GraphConv,
    PNAConv,
    SAGEConv,
    TAGConv,
    TransformerConv,
)

from gnn_vpa import VPGATConv, VPGCNConv, aggregate, attend, build_model
from gnn_vpa.graphs import load
from gnn_vpa.nn import WeightedGraph
from gnn_vpa.pyg import MergeAlike, VPAggregation, merged_graph, merged_readout

WIDTH, LAYERS = 4, 2
Call = Callable[[Any, Tensor, Data], Tensor]


def _graph(graph: nx.Graph) -> Data:
    """A graph whose features follow the degree, so that what is alike stays alike."""
    edges = torch.tensor(list(graph.to_directed().edges), dtype=torch.int64).reshape(-1, 2).T
    degree = torch.tensor([degree for _, degree in graph.degree])
    table = torch.randn(20, WIDTH, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    return Data(x=table[degree], edge_index=edges)


GRAPHS = [
    _graph(graph)
    for graph in (
        nx.star_graph(5),
        nx.complete_bipartite_graph(3, 4),
        nx.balanced_tree(2, 3),
        nx.barbell_graph(4, 2),
        nx.disjoint_union(nx.empty_graph(3), nx.path_graph(5)),
        nx.empty_graph(2),
    )
]


def _directed() -> list[Data]:
    """A tree whose edges lead to the root, one whose edges lead away, and a self-loop or two."""
    down = torch.tensor(list(nx.bfs_edges(nx.balanced_tree(3, 2), 0))).T
    loops = torch.tensor([[4, 5, 6], [4, 5, 6]])
    return [
        Data(x=torch.ones(13, WIDTH, dtype=torch.float64), edge_index=edges)
        for edges in (down, down.flip(0), torch.cat([down, loops], dim=1))
    ]


def _with_edge_attributes() -> list[Data]:
    """The same graphs, with an attribute that tells a node's edges apart by both degrees."""
    marked = []
    for data in GRAPHS:
        degree = torch.bincount(data.edge_index[1], minlength=data.num_nodes).double()
        ends = degree[data.edge_index]
        kind = (data.edge_index[0] + data.edge_index[1]) % 2  # and, for some, by who is there
        marked.append(Data(**data.to_dict(), edge_attr=torch.stack([*ends, kind], dim=1)))
    return marked


class Case(NamedTuple):
    layer: Callable[[int, int], nn.Module]
    call: Call
    rounds: int = LAYERS
    repeat: bool = False
    loops: bool = False  # added before merging
    marked: bool = False


class Net(nn.Module):
    def __init__(self, case: Case) -> None:
        super().__init__()
        self.layers = nn.ModuleList(case.layer(WIDTH, WIDTH) for _ in range(LAYERS))
        self.call = case.call

    def forward(self, data: Data) -> Tensor:
        x = data.x
        for layer in self.layers:
            x = torch.tanh(self.call(layer, x, data))
        return x


def _mlp(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, outputs), nn.Tanh(), nn.Linear(outputs, outputs))


def _sparse(data: Data) -> Tensor:
    """The edges as a sparse matrix whose values are how often they count."""
    values = data.get("edge_weight")
    values = data.x.new_ones(data.num_edges) if values is None else values
    size = (data.num_nodes, data.num_nodes)
    return torch.sparse_coo_tensor(data.edge_index.flip(0), values, size).to_sparse_csr()


def plainly(layer: Any, x: Tensor, data: Data) -> Tensor:
    out: Tensor = layer(x, data.edge_index)
    return out


def weighted(layer: Any, x: Tensor, data: Data) -> Tensor:
    out: Tensor = layer(x, data.edge_index, data.get("edge_weight"))
    return out


def sparsely(layer: Any, x: Tensor, data: Data) -> Tensor:
    out: Tensor = layer(x, _sparse(data))
    return out


def with_attributes(layer: Any, x: Tensor, data: Data) -> Tensor:
    out: Tensor = layer(x, data.edge_index, data.edge_attr)
    return out


def by_ops(aggr: Any) -> Call:
    return lambda layer, x, data: layer(x + aggregate(x, merged_graph(data), aggr))


def by_attention(aggr: Any) -> Call:
    def call(layer: Any, x: Tensor, data: Data) -> Tensor:
        source, target = data.edge_index
        logits = (x[source] * layer(x)[target]).sum(1)
        return attend(x, merged_graph(data), logits, aggr)

    return call


def _pna(inputs: int, outputs: int) -> nn.Module:
    degrees = torch.tensor([0, 5, 5, 5, 5, 5])
    scalers = ["identity", "amplification", "attenuation"]
    return PNAConv(inputs, outputs, ["mean", "max", "std"], scalers, degrees)


ONE_MORE = LAYERS + 1
EXACT = {
    "GraphConv, add": Case(GraphConv, weighted),
    "GatedGraphConv": Case(lambda i, o: GatedGraphConv(o, 1), weighted),
    "GINConv, sum, sparse": Case(lambda i, o: GINConv(_mlp(i, o)), sparsely),
    "GINConv, max": Case(lambda i, o: GINConv(_mlp(i, o), aggr="max"), plainly),
    "SAGEConv, max": Case(lambda i, o: SAGEConv(i, o, aggr="max"), plainly),
    "EdgeConv, max": Case(lambda i, o: EdgeConv(_mlp(2 * i, o), aggr="max"), plainly),
    "GCNConv": Case(
        lambda i, o: GCNConv(i, o, add_self_loops=False), weighted, ONE_MORE, loops=True
    ),
    "TAGConv, K = 2": Case(lambda i, o: TAGConv(i, o, K=2), weighted, 2 * LAYERS + 1),
    **{f"ops, {aggr}": Case(nn.Linear, by_ops(aggr)) for aggr in ("sum", "mean", "max", "vpa")},
    **{f"attend, {aggr}": Case(nn.Linear, by_attention(aggr)) for aggr in ("sum", "vpa")},
    # Repeated edges: all that a layer does with its in-neighbours is done as it was.
    "repeated: GINConv, sum": Case(lambda i, o: GINConv(_mlp(i, o)), plainly, repeat=True),
    "repeated: SAGEConv, mean": Case(SAGEConv, plainly, repeat=True),
    "repeated: GraphConv, vpa": Case(
        lambda i, o: GraphConv(i, o, aggr=VPAggregation()), plainly, repeat=True
    ),
    "repeated: PNAConv": Case(_pna, plainly, repeat=True),
    **{
        f"repeated: {layer.__name__}": Case(
            lambda i, o, layer=layer: layer(i, o, add_self_loops=False),  # type: ignore[misc]
            plainly,
            repeat=True,
            loops=True,
        )
        for layer in (GATConv, GATv2Conv, VPGATConv)
    },
    **{
        f"repeated: {layer.__name__}": Case(
            lambda i, o, layer=layer: layer(i, o, add_self_loops=False),  # type: ignore[misc]
            plainly,
            ONE_MORE,
            repeat=True,
            loops=True,
        )
        for layer in (GCNConv, VPGCNConv)
    },
    "repeated: TransformerConv": Case(TransformerConv, plainly, repeat=True),
    "repeated: GINEConv": Case(
        lambda i, o: GINEConv(_mlp(i, o), edge_dim=3), with_attributes, repeat=True, marked=True
    ),
    "repeated: TransformerConv, edge attributes": Case(
        lambda i, o: TransformerConv(i, o, edge_dim=3), with_attributes, repeat=True, marked=True
    ),
}
WRONG = {
    "GINConv, sum, which does not count": Case(lambda i, o: GINConv(_mlp(i, o)), plainly),
    "SAGEConv, mean, which does not count": Case(SAGEConv, plainly),
    "GraphConv, mean, which divides by edges": Case(
        lambda i, o: GraphConv(i, o, aggr="mean"), weighted
    ),
    "GraphConv, vpa, which divides by edges": Case(
        lambda i, o: GraphConv(i, o, aggr=VPAggregation()), weighted
    ),
    "PNAConv, which does not count": Case(_pna, plainly),
    "GINEConv, which does not count": Case(
        lambda i, o: GINEConv(_mlp(i, o), edge_dim=3), with_attributes, marked=True
    ),
    **{
        f"{layer.__name__}, whose softmax does not count": Case(
            lambda i, o, layer=layer: layer(i, o, add_self_loops=False),  # type: ignore[misc]
            plainly,
            loops=True,
        )
        for layer in (GATConv, GATv2Conv, VPGATConv)
    },
    "TransformerConv, whose softmax does not count": Case(TransformerConv, plainly),
    "ChebConv, which removes what looks like self-loops": Case(
        lambda i, o: ChebConv(i, o, K=2), weighted, ONE_MORE
    ),
    "repeated: ChebConv": Case(lambda i, o: ChebConv(i, o, K=2), plainly, ONE_MORE, repeat=True),
    "DirGNNConv, which also looks ahead": Case(lambda i, o: DirGNNConv(SAGEConv(i, o)), plainly),
    "repeated: DirGNNConv": Case(lambda i, o: DirGNNConv(SAGEConv(i, o)), plainly, repeat=True),
    "GCNConv, which takes alike neighbours for a self-loop": Case(GCNConv, weighted, ONE_MORE),
    "GATConv, which takes alike neighbours for a self-loop": Case(GATConv, plainly, repeat=True),
    "GCNConv, a round too few": Case(
        lambda i, o: GCNConv(i, o, add_self_loops=False), weighted, loops=True
    ),
    "GraphConv, a round too few": Case(GraphConv, weighted, LAYERS - 1),
    "GraphConv, against the edges": Case(
        lambda i, o: GraphConv(i, o, flow="target_to_source"), weighted
    ),
    "dropout of nodes' features": Case(
        nn.Linear, lambda layer, x, data: F.dropout(layer(x), training=True)
    ),
}


def _results(net: Net, data: Data) -> tuple[Tensor, ...]:
    """Return the features of all nodes of the whole graph, a readout, and all gradients."""
    torch.manual_seed(0)
    out = net(data)
    readout = aggregate(out, merged_readout(data), "vpa")
    gradients = torch.autograd.grad(readout.pow(2).sum(), list(net.parameters()), allow_unused=True)
    index = data.get("merged_index")
    nodes = out if index is None else out[index]
    return nodes.detach(), readout.detach(), *(g for g in gradients if g is not None)


def _prepared(case: Case, graphs: list[Data]) -> tuple[Data, Data]:
    """Return the graphs as one batch, whole and merged."""
    graphs = [T.AddRemainingSelfLoops()(data) for data in graphs] if case.loops else graphs
    small = [MergeAlike(case.rounds, repeat=case.repeat)(data) for data in graphs]
    whole, merged = (next(iter(DataLoader(many, len(many)))) for many in (graphs, small))
    assert merged.num_nodes < whole.num_nodes
    assert int(merged.times.sum()) == whole.num_nodes
    return whole, merged


def _distance(case: Case, graphs: list[Data]) -> float:
    torch.manual_seed(1)
    net = Net(case).double()
    whole, merged = _prepared(case, graphs)
    pairs = zip(_results(net, whole), _results(net, merged), strict=True)
    return max(float((a - b).abs().max()) for a, b in pairs)


@pytest.mark.parametrize("case", EXACT.values(), ids=EXACT.keys())
def test_exact_forward_and_backward(case: Case) -> None:
    assert _distance(case, _with_edge_attributes() if case.marked else GRAPHS) < 1e-9


UNMARKED = {name: case for name, case in EXACT.items() if not case.marked}


@pytest.mark.parametrize("case", UNMARKED.values(), ids=UNMARKED.keys())
def test_exact_on_directed_graphs_with_self_loops(case: Case) -> None:
    assert _distance(case, _directed()) < 1e-9


def test_exact_on_molecules_with_kinds_of_bonds(tu_dir: Path) -> None:
    bonds = load("MUTAG", tu_dir).to_pyg()[:40]
    graphs = [
        Data(
            x=d.x[:, :WIDTH].double(),
            edge_index=d.edge_index,
            edge_attr=d.edge_attr[:, :3].double(),
        )
        for d in bonds
    ]
    assert _distance(EXACT["repeated: GINEConv"], graphs) < 1e-9


def test_exact_on_social_graphs(tu_dir: Path) -> None:
    graphs = [
        Data(x=torch.ones(d.num_nodes, WIDTH, dtype=torch.float64), edge_index=d.edge_index)
        for d in load("IMDB-BINARY", tu_dir).to_pyg()[:40]
    ]
    for name in ("GINConv, sum, sparse", "ops, vpa", "repeated: GATConv"):
        assert _distance(EXACT[name], graphs) < 1e-9


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG.keys())
def test_not_exact(case: Case) -> None:
    path = Data(x=GRAPHS[0].x[:1].repeat(9, 1), edge_index=_graph(nx.path_graph(9)).edge_index)
    graphs = _with_edge_attributes() if case.marked else [*GRAPHS, path]
    assert _distance(case, graphs) > 1e-3


@pytest.mark.parametrize("model", ["gin", "gcn", "gat", "sgc"])
@pytest.mark.parametrize("repeat", [False, True])
def test_the_papers_models_in_training_mode(model: str, repeat: bool) -> None:
    aggr = "vpa"
    net = build_model(model, WIDTH, 3, aggr, dropout=0.0).double().train()
    looped = model in ("gat", "sgc")
    case = Case(nn.Linear, plainly, rounds=5, repeat=repeat, loops=looped)
    results = []
    for data in _prepared(case, GRAPHS[:5]):
        graph = merged_graph(data)
        small = WeightedGraph(graph, loops=True) if looped else graph
        net.zero_grad()
        scores = net(data.x, small, merged_readout(data), data.get("times"))
        scores.square().sum().backward()
        results.append([scores, *(p.grad for p in net.parameters() if p.grad is not None)])
    torch.testing.assert_close(results[0], results[1], rtol=1e-9, atol=1e-9)
