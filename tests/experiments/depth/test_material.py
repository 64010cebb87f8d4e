from pathlib import Path

import pytest
import torch

from gnn_vpa.experiments.depth.material import Material
from gnn_vpa.graphs import GraphSet, load
from gnn_vpa.nn.deep import DeepGCN
from gnn_vpa.ops import Aggregation
from gnn_vpa.signal import sample


@pytest.fixture(params=["MUTAG", "IMDB-BINARY"])
def graphs(request: pytest.FixtureRequest, tu_dir: Path) -> GraphSet:
    data = load(request.param, tu_dir)
    return GraphSet.from_pyg(data.to_pyg()[:30], name=request.param)


@pytest.mark.parametrize("aggr", ["sum", "mean", "max", "vpa"])
@torch.no_grad()
def test_merged_batches_give_the_scores_of_whole_graphs(
    graphs: GraphSet, aggr: Aggregation
) -> None:
    data = Material.of(graphs, "auto", 6, "cpu")
    assert len(data.x) < graphs.num_nodes
    model = DeepGCN(data.in_channels, 2, aggr, depth=6, width=8, branch=0.2).double().eval()
    x, graph, readout = sample(graphs, 30)
    whole = model(x.double(), graph, readout)
    ids = torch.tensor([7, 3, 12, 3])
    batch = data.batch(ids, [aggr])
    features = batch.x if not batch.x.is_floating_point() else batch.x.double()
    scores = model(features, batch.graph, batch.readout, batch.nodes)
    assert torch.allclose(scores, whole[ids], rtol=1e-5, atol=1e-6 * float(whole.abs().max()))


def test_every_lane_aggregates_in_its_own_way(graphs: GraphSet) -> None:
    data = Material.of(graphs, "auto", 3, "cpu")
    ids, aggrs = torch.arange(5), ["vpa", "sum", "mean", "sum"]
    lanes = data.batch(ids, aggrs)  # type: ignore[arg-type]
    rows = len(lanes.x) // 4
    for lane, aggr in enumerate(aggrs):
        alone = data.batch(ids, [aggr])  # type: ignore[list-item]
        own = slice(lane * rows, (lane + 1) * rows)
        assert torch.equal(lanes.x[own], alone.x)
        assert torch.equal(lanes.nodes[own], alone.nodes)
        assert torch.equal(lanes.graph.scale[own], alone.graph.scale)  # type: ignore[union-attr]
        assert torch.equal(lanes.graph.graph.degree[own], alone.graph.graph.degree)  # type: ignore[union-attr]


def test_the_nodes_of_a_batch_are_all_counted(graphs: GraphSet) -> None:
    data = Material.of(graphs, "auto", 3, "cpu")
    ids = torch.tensor([2, 5])
    expected = graphs.node_ptr.diff()[ids].sum()
    assert data.batch(ids, ["max"]).nodes.sum() == expected
