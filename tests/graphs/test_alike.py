"""Ceilings against the definition, on random graphs, and against published figures."""

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from gnn_vpa.errors import UsageError
from gnn_vpa.graphs import Features, GraphSet, alike, ceiling
from gnn_vpa.graphs.alike import node_kinds

VALUES = (0.0, -0.0, 0.5, 1e-7)


@st.composite
def data_sets(draw: st.DrawFn) -> list[Data]:
    """Small graphs with self-loops, parallel and one-way edges, and numbers as features."""
    made = []
    for _ in range(draw(st.integers(1, 8))):
        nodes = draw(st.integers(1, 4))
        node = st.integers(0, nodes - 1)
        edges = draw(st.lists(st.tuples(node, node), max_size=6))
        x = draw(st.lists(st.sampled_from(VALUES), min_size=nodes, max_size=nodes))
        made.append(
            Data(
                x=torch.tensor(x).unsqueeze(1),
                edge_index=torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T,
                y=draw(st.integers(0, 2)),
            )
        )
    return made


def unfolded(graph: Data, rounds: int) -> tuple[Any, ...]:
    """Return all that a network of so many rounds sees of a graph, spelled out."""
    seen: list[Any] = [value + 0.0 for value in graph.x.flatten().tolist()]
    edges = graph.edge_index.T.tolist()
    for _ in range(rounds):
        around: dict[int, list[Any]] = defaultdict(list)
        for source, target in edges:
            around[target].append(seen[source])
        seen = [(own, tuple(sorted(around[node], key=repr))) for node, own in enumerate(seen)]
    return tuple(sorted(seen, key=repr))


@settings(deadline=None, max_examples=150)
@given(data_sets(), st.integers(0, 4))
def test_the_ceiling_is_that_of_the_definition(made: list[Data], rounds: int) -> None:
    graphs = GraphSet.from_pyg(made)
    for number, found in enumerate(ceiling(graphs, rounds=rounds)):
        classes: dict[tuple[Any, ...], Counter[int]] = defaultdict(Counter)
        for graph in made:
            classes[unfolded(graph, number)][graph.y] += 1
        best = sum(counter.most_common(1)[0][1] for counter in classes.values())
        assert found == (number, len(classes), best, len(made))


@settings(deadline=None, max_examples=50)
@given(data_sets())
def test_equal_numbers_mean_equal_graphs(made: list[Data]) -> None:
    kinds = alike(GraphSet.from_pyg(made), rounds=2)[2].tolist()
    seen = [unfolded(graph, 2) for graph in made]
    for one, kind in zip(seen, kinds, strict=True):
        assert [other == one for other in seen] == [other == kind for other in kinds]
    assert set(kinds) == set(range(len(set(kinds))))


def paths(length: int, ends: list[tuple[float, float]]) -> Data:
    """Return two paths of so many nodes, with marks at their ends."""
    around = torch.arange(length - 1)
    there = torch.stack([around, around + 1])
    both = torch.cat([there, there.flip(0)], dim=1)
    x = torch.zeros(2, length)
    x[:, 0], x[:, -1] = torch.tensor(ends).T
    edges = torch.cat([both, both + length], dim=1)
    return Data(x=x.reshape(-1, 1), edge_index=edges, y=int(ends[0][1]))


@pytest.mark.parametrize("length", range(2, 10))
def test_a_round_looks_one_edge_further_and_no_more(length: int) -> None:
    # Which ends belong together only a node knows that sees both.
    made = [paths(length, [(1, 1), (2, 2)]), paths(length, [(1, 2), (1, 2)])]
    found = ceiling(GraphSet.from_pyg(made), rounds=5)
    assert [one.distinct for one in found] == [1 + (n >= length // 2) for n in range(6)]
    assert [one.accuracy for one in found] == [one.distinct / 2 for one in found]


def test_graphs_without_nodes_are_alike() -> None:
    none = torch.empty(2, 0, dtype=torch.int64)
    made = [Data(edge_index=none, num_nodes=n, y=n) for n in (0, 1, 0)]
    assert alike(GraphSet.from_pyg(made), rounds=1)[1].tolist() in ([0, 1, 0], [1, 0, 1])


def test_a_cycle_and_two_of_half_its_length_are_alike_for_ever() -> None:
    def cycle(nodes: int, first: int = 0) -> torch.Tensor:
        around = torch.arange(nodes)
        there = torch.stack([around, (around + 1) % nodes]) + first
        return torch.cat([there, there.flip(0)], dim=1)

    halves = torch.cat([cycle(3), cycle(3, 3)], dim=1)
    made = [Data(edge_index=e, num_nodes=6, y=y) for y, e in enumerate((cycle(6), halves))]
    last = ceiling(GraphSet.from_pyg(made), rounds=6)[-1]
    assert (last.distinct, last.accuracy) == (1, 0.5)


def test_attributes_count_by_value_and_labels_too() -> None:
    dense = torch.tensor([[0.1], [0.1 + 1e-9], [0.1 + 1e-6]])  # the second is no other in float32
    assert len(node_kinds(Features(dense=dense)).unique()) == 2
    both = Features(num_codes=2, codes=torch.tensor([0, 1, 1]), dense=torch.ones(3, 1))
    assert len(node_kinds(both).unique()) == 2


def test_labels_that_are_no_classes_have_no_ceiling() -> None:
    pair = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2, y=0)
    graphs = GraphSet.from_pyg([pair])
    object.__setattr__(graphs, "y", torch.tensor([0.5]))
    with pytest.raises(UsageError, match="needs a class for each graph"):
        ceiling(graphs)


def test_more_rounds_never_know_less(tu_dir: Path) -> None:
    from gnn_vpa.graphs import load

    for name in ("MUTAG", "PTC_FM"):
        found = ceiling(load(name, tu_dir))
        assert [one.rounds for one in found] == list(range(6))
        assert sorted(one.distinct for one in found) == [one.distinct for one in found]
        assert sorted(one.right for one in found) == [one.right for one in found]
