from collections import Counter

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from gnn_vpa.auditing._structure import Spread, structure_of
from gnn_vpa.graphs import GraphSet, load

Edges = list[tuple[int, int]]


@st.composite
def graphs(draw: st.DrawFn) -> list[tuple[int, Edges]]:
    made = []
    for _ in range(draw(st.integers(1, 4))):
        nodes = draw(st.integers(0, 5))
        node = st.integers(0, max(nodes - 1, 0))
        made.append((nodes, draw(st.lists(st.tuples(node, node), max_size=8)) if nodes else []))
    return made


@settings(deadline=None, max_examples=150)
@given(graphs())
def test_edges_are_counted_as_by_hand(made: list[tuple[int, Edges]]) -> None:
    data = [
        Data(
            edge_index=torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T,
            num_nodes=nodes,
            y=0,
        )
        for nodes, edges in made
    ]
    found = structure_of(GraphSet.from_pyg(data))
    every = [edge for _, edges in made for edge in edges]
    counts = [Counter(edges) for _, edges in made]
    assert found.self_loops == sum(source == target for source, target in every)
    assert found.parallel == len(every) - sum(map(len, counts))
    assert found.one_way == sum((t, s) not in count for count in counts for s, t in count)
    ends = [({t for _, t in edges}, {s for s, _ in edges}) for _, edges in made]
    assert found.without_messages == sum(
        n - len(to) for (n, _), (to, _) in zip(made, ends, strict=True)
    )
    assert found.isolated == sum(
        n - len(to | of) for (n, _), (to, of) in zip(made, ends, strict=True)
    )
    assert found.empty_graphs == sum(nodes == 0 for nodes, _ in made)
    assert found.edgeless_graphs == sum(not edges for _, edges in made)


def test_sizes_and_degrees() -> None:
    star = torch.tensor([[1, 2, 3], [0, 0, 0]])
    pair = torch.tensor([[0, 1], [1, 0]])
    found = structure_of(
        GraphSet.from_pyg(
            [Data(edge_index=star, num_nodes=4, y=0), Data(edge_index=pair, num_nodes=2, y=0)]
        )
    )
    assert found.nodes == Spread(least=2, median=3.0, mean=3.0, most=4)
    assert found.edges == Spread(least=2, median=2.5, mean=2.5, most=3)
    assert found.degree == Spread(least=0, median=0.5, mean=5 / 6, most=3)


def test_mutag_is_undirected_and_has_edge_labels() -> None:
    found = structure_of(load("MUTAG"))
    assert (found.self_loops, found.parallel, found.one_way, found.isolated) == (0, 0, 0, 0)
    assert found.edge_attributes == 4
    assert round(found.nodes.mean, 3) == 17.931
