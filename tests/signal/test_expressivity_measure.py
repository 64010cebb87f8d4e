"""Random networks beside 1-WL: what analysis says they tell apart, and what rounding hides."""

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any, Literal

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from gnn_vpa import UsageError
from gnn_vpa.graphs import GraphSet
from gnn_vpa.ops import aggregate
from gnn_vpa.signal import Separation, atlas, measure_expressivity
from gnn_vpa.signal.expressivity.boxes import overlapping_pairs
from gnn_vpa.signal.expressivity.quotient import quotients

Aggr = Literal["sum", "mean", "max", "vpa"]


@pytest.fixture(scope="module")
def graphs() -> GraphSet:
    return atlas()


def _pairs(kinds: Iterable[Hashable]) -> int:
    """Count the pairs of different kinds."""
    counts = Counter(kinds).values()
    return (sum(counts) ** 2 - sum(n**2 for n in counts)) // 2


def _lonely(graphs: GraphSet) -> list[tuple[int, int]]:
    """Return the number of nodes without neighbours, and that of all nodes, of each graph."""
    batch = torch.repeat_interleave(torch.arange(graphs.num_graphs), graphs.node_ptr.diff())
    alone = torch.bincount(batch[graphs.degree() == 0], minlength=graphs.num_graphs)
    return list(zip(alone.tolist(), graphs.node_ptr.diff().tolist(), strict=True))


def _of(rows: list[Separation], **wanted: Any) -> list[Separation]:
    return [row for row in rows if all(getattr(row, k) == v for k, v in wanted.items())]


# On equal features, mean and max give every node with neighbours the same as its neighbours, so
# all that is left is which nodes have none.


def test_mean_sees_the_share_of_lonely_nodes_alone(graphs: GraphSet) -> None:
    rows = measure_expressivity(
        graphs, aggrs=["mean"], precisions=["float64", "float32"], depths=[1, 3], seeds=range(2)
    )
    share = [(alone / size if size else None) for alone, size in _lonely(graphs)]
    assert {row.told_apart for row in rows} == {_pairs(share)}
    assert _pairs(share) < 0.3 * rows[0].pairs


def test_max_sees_whether_there_are_lonely_nodes_alone(graphs: GraphSet) -> None:
    rows = measure_expressivity(
        graphs, aggrs=["max"], precisions=["float64", "float32"], depths=[1, 3], seeds=range(2)
    )
    kinds = [(alone > 0, alone < size) for alone, size in _lonely(graphs)]
    assert {row.told_apart for row in rows} == {_pairs(kinds)}


@pytest.mark.parametrize("aggr", ["sum", "vpa"])
def test_sum_and_vpa_see_nearly_all_that_1wl_sees(aggr: Aggr, graphs: GraphSet) -> None:
    rows = measure_expressivity(graphs, aggrs=[aggr], precisions=["float64"], depths=[1, 2, 4])
    assert all(row.share > 0.999 for row in rows)
    (together,) = _of(rows, depth=1, seed=None)
    assert together.missed == 0


@pytest.mark.parametrize("aggr", ["sum", "vpa"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_lemma_2_with_a_smooth_activation_nothing_is_missed(
    aggr: Aggr, depth: int, graphs: GraphSet, generator: torch.Generator
) -> None:
    """A ReLU is linear on either side, and so adds up {1, 3} and {2, 2} alike; tanh does not."""

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    (small,) = quotients(graphs, [depth], "auto")
    x, graph, readout = small.operands(generator, torch.device("cpu"))
    h, levels = x.double(), []
    for _ in range(depth):
        h = h + aggregate(h, graph, aggr)
        h = torch.tanh(h @ drawn(h.shape[1], 64) / h.shape[1] ** 0.5 + drawn(64))
        levels.append(aggregate(h, readout, aggr))
    out = torch.cat(levels, dim=1)
    error = 1e-12 * out.abs().amax(1, keepdim=True)
    assert overlapping_pairs(out - error, out + error, small.times) == 0


def _stars(*leaves: int) -> GraphSet:
    def star(n: int) -> Data:
        hub, leaf = torch.zeros(n, dtype=torch.int64), torch.arange(1, n + 1)
        edges = torch.stack([torch.cat([hub, leaf]), torch.cat([leaf, hub])])
        return Data(edge_index=edges, num_nodes=n + 1, y=0)

    return GraphSet.from_pyg([star(n) for n in leaves])


@pytest.mark.parametrize("aggr", ["sum", "vpa"])
def test_a_thousandth_more_is_less_than_bfloat16_resolves(aggr: Aggr) -> None:
    rows = measure_expressivity(_stars(1000, 1001, 4000), aggrs=[aggr], seeds=[0])
    told = {(row.precision, row.told_apart) for row in rows}
    assert told == {("float64", 3), ("float32", 3), ("bfloat16", 2)}
    assert all(row.noise >= torch.finfo(getattr(torch, row.precision)).eps / 2 for row in rows)


def test_what_is_not_finite_is_not_told_apart() -> None:
    edges = torch.tensor([[0, 1], [1, 0]])
    graphs = GraphSet.from_pyg(
        Data(x=torch.tensor([[size], [size]]), edge_index=edges, y=0) for size in (3e38, 2e38, 1.0)
    )
    rows = measure_expressivity(graphs, aggrs=["sum"], depths=[2], seeds=[0])
    assert {row.precision: row.told_apart for row in rows} == {
        "float64": 3,
        "float32": 0,
        "bfloat16": 0,
    }


def test_graphs_that_1wl_does_not_tell_apart_are_no_pairs() -> None:
    ring = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])
    triangles = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]])
    graphs = GraphSet.from_pyg(
        Data(edge_index=torch.cat([half, half.flip(0)], 1), num_nodes=6, y=0)
        for half in (ring, triangles)
    )
    row, *_ = measure_expressivity(graphs, depths=[3], seeds=[0])
    assert (row.pairs, row.told_apart, row.share) == (0, 0, 1.0)


def test_a_row_for_each_seed_and_one_for_all() -> None:
    rows = measure_expressivity(_stars(2, 3), aggrs=["vpa"], precisions=["float32"], depths=[2, 1])
    assert [(row.depth, row.seed) for row in rows] == [
        (depth, seed) for depth in (1, 2) for seed in (0, 1, 2, None)
    ]
    assert all(row.graphs == 2 and row.dataset == "custom" for row in rows)


def test_the_same_seed_gives_the_same_and_leaves_the_generator_alone() -> None:
    before = torch.get_rng_state()
    first, second = (measure_expressivity(_stars(5, 6, 50), depths=[2]) for _ in range(2))
    assert first == second
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"aggrs": ["median"]}, "median"),
        ({"precisions": ["float8"]}, "float8"),
        ({"depths": [0]}, "at least 1 layer"),
        ({"depths": []}, "depths"),
        ({"seeds": []}, "seeds"),
    ],
)
def test_wrong_use_is_named(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        measure_expressivity(_stars(2, 3), **wrong)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_tells_apart_what_the_cpu_does(graphs: GraphSet) -> None:
    here, there = (
        measure_expressivity(graphs, precisions=["float64"], depths=[2], seeds=[0], device=device)
        for device in ("cpu", "cuda")
    )
    assert [row.told_apart for row in here] == [row.told_apart for row in there]
