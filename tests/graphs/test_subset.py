"""Some graphs of a data set."""

from dataclasses import replace

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from gnn_vpa.graphs import GraphSet, Numbering, subset


def everything() -> GraphSet:
    """Graphs with all that a data set can have, one without nodes and one without edges."""
    draw = torch.Generator().manual_seed(0)
    graphs = []
    for number, nodes in enumerate((3, 0, 5, 1, 4)):
        edges = torch.randint(max(nodes, 1), (2, 2 * nodes if nodes > 1 else 0), generator=draw)
        own = {
            "x": torch.rand(nodes, 2, generator=draw),
            "pos": torch.rand(nodes, 3, generator=draw),
            "edge_attr": torch.rand(edges.shape[1], 2, generator=draw),
            "edge_weight": torch.rand(edges.shape[1], generator=draw),
        }
        graphs.append(Data(edge_index=edges, num_nodes=nodes, y=number % 2, donor=number, **own))
    made = GraphSet.from_pyg(graphs, "all")
    labels = torch.randint(4, (made.num_nodes, 1), generator=draw)
    return replace(
        made,
        node_labels=labels,
        graph_attributes=torch.rand(5, 2, generator=draw),
        weights=torch.rand(5, 1, generator=draw),
        numbering=Numbering(classes=(3, 7), node_labels=(2,)),
    )


def labels_of(graphs: GraphSet, number: int) -> torch.Tensor:
    first, last = graphs.node_ptr[number : number + 2].tolist()
    return graphs.node_labels[first:last]


@given(st.lists(st.integers(0, 4), max_size=8))
def test_a_subset_has_the_graphs_that_are_asked_for(asked: list[int]) -> None:
    whole = everything()
    part = subset(whole, torch.tensor(asked, dtype=torch.int64))
    assert part.num_graphs == len(asked)
    assert part.numbering == whole.numbering
    assert part.columns["donor"] == asked
    # One-hot columns of labels would be as many as the subset has.
    mine_only, all_of_them = (replace(graphs, node_labels=None) for graphs in (part, whole))
    for place, number in enumerate(asked):
        mine, theirs = mine_only.graph(place), all_of_them.graph(number)
        assert list(mine.keys()) == list(theirs.keys())
        assert all(torch.equal(mine[name], theirs[name]) for name in mine.keys())  # noqa: SIM118
        assert torch.equal(labels_of(part, place), labels_of(whole, number))
        assert torch.equal(part.weights[place], whole.weights[number])
        assert torch.equal(part.graph_attributes[place], whole.graph_attributes[number])


def test_a_subset_in_order_is_the_same_content() -> None:
    whole = everything()
    assert subset(whole, torch.arange(5)).checksum() == whole.checksum()
