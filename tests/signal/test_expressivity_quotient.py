"""One node and one graph of each kind stand for all: the same outputs, and 1-WL by definition."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from gnn_vpa import build_model
from gnn_vpa.graphs import GraphSet, features, load
from gnn_vpa.signal import atlas
from gnn_vpa.signal.expressivity import sample
from gnn_vpa.signal.expressivity.quotient import Quotient, quotients


def _pairs_by_definition(graphs: GraphSet, rounds: int) -> int:
    """Count the pairs of graphs whose nodes' colours differ, each colour named by its history."""
    rowptr, col = graphs.rowptr.tolist(), graphs.col.tolist()
    own = features(graphs).matrix().tolist()
    colours: list[object] = [tuple(row) for row in own]
    for _ in range(rounds):
        named = [
            (colours[i], tuple(sorted(map(hash, (colours[j] for j in col[begin:end])))))
            for i, (begin, end) in enumerate(pairwise(rowptr))
        ]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(named))}
        colours = [numbers[name] for name in named]
    ends = graphs.node_ptr.tolist()
    kinds = Counter(frozenset(Counter(colours[begin:end]).items()) for begin, end in pairwise(ends))
    return (graphs.num_graphs**2 - sum(n**2 for n in kinds.values())) // 2


def _as_the_model_takes_it(graphs: GraphSet) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    target = torch.repeat_interleave(torch.arange(graphs.num_nodes), graphs.degree())
    batch = torch.repeat_interleave(torch.arange(graphs.num_graphs), graphs.node_ptr.diff())
    return features(graphs).matrix().double(), torch.stack([graphs.col.long(), target]), batch


@pytest.mark.parametrize("aggr", ["sum", "mean", "max", "vpa"])
def test_outputs_are_those_of_the_whole_graphs(aggr: str, tu_dir: Path) -> None:
    graphs = sample(load("MUTAG", tu_dir), 60)
    for small in quotients(graphs, [1, 3], "auto"):
        model = build_model("gin", small.x.shape[1], 8, aggr, depth=small.depth).double().eval()
        whole = model(*_as_the_model_takes_it(graphs))
        x, *rest = small.operands(torch.Generator().manual_seed(1), torch.device("cpu"))
        outputs = model(x.double(), *rest)
        distance = torch.cdist(whole, outputs, p=torch.inf)
        nearest, kind = distance.min(1)
        assert (nearest < 1e-9 * whole.abs().amax()).all()
        assert len(x) < graphs.num_nodes
        if aggr == "vpa":  # tells all of them apart, so each graph finds its own kind
            assert sorted(kind.bincount().tolist()) == sorted(small.times.tolist())


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_1wl_of_the_atlas_is_as_defined(rounds: int) -> None:
    graphs = sample(atlas(), 500)
    (small,) = quotients(graphs, [rounds], "auto")
    assert small.pairs == _pairs_by_definition(graphs, rounds)
    assert int(small.times.sum()) == graphs.num_graphs


@pytest.mark.parametrize("name", ["MUTAG", "IMDB-BINARY"])
def test_1wl_of_real_graphs_is_as_defined(name: str, tu_dir: Path) -> None:
    graphs = sample(load(name, tu_dir), 100)
    found = {small.depth: small.pairs for small in quotients(graphs, [3, 1], "auto")}
    assert found == {depth: _pairs_by_definition(graphs, depth) for depth in (1, 3)}


def test_every_order_is_the_same_graph(generator: torch.Generator) -> None:
    small: Quotient = next(quotients(sample(atlas(), 50), [2], "auto"))
    model = build_model("gin", 1, 4, "sum", depth=2).double().eval()
    outputs = [
        model(x.double(), graph, readout)
        for x, graph, readout in (small.operands(generator, torch.device("cpu")) for _ in range(3))
    ]
    torch.testing.assert_close(outputs[0], outputs[1])
    torch.testing.assert_close(outputs[0], outputs[2])


def test_a_sample_holds_graphs_of_the_data_set(tu_dir: Path) -> None:
    for name in ("MUTAG", "PROTEINS"):
        graphs = load(name, tu_dir)
        few = sample(graphs, 20, seed=3)
        assert few.num_graphs == 20
        own = features(few).width  # labels that do not occur are no columns any more
        wanted = [str((d.x[:, :own], d.edge_index, d.edge_attr, d.y)) for d in graphs.to_pyg()]
        chosen = [wanted.index(str((d.x, d.edge_index, d.edge_attr, d.y))) for d in few.to_pyg()]
        assert chosen == sorted(chosen)
        assert len(set(chosen)) == 20
    assert sample(graphs, 10**6) is graphs
