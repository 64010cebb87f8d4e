"""Levels against plain counting: who looks alike, next to whom, and where."""

from collections import Counter

import pytest
import torch
from torch import Tensor

from gnn_vpa.graphs import levels
from gnn_vpa.graphs.colours import refinements


@pytest.fixture(params=range(5))
def graphs(request: pytest.FixtureRequest) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Some random graphs: pointers of nodes, edges by target, and a kind for each node."""
    draw = torch.Generator().manual_seed(request.param)
    sizes = torch.randint(0, 7, (6,), generator=draw)
    node_ptr = torch.cat([torch.zeros(1, dtype=torch.int64), sizes.cumsum(0)])
    neighbours = []
    for begin, end in zip(node_ptr[:-1].tolist(), node_ptr[1:].tolist(), strict=True):
        for _ in range(begin, end):
            count = int(torch.randint(0, 4, (1,), generator=draw))
            neighbours.append(torch.randint(begin, end, (count,), generator=draw))
    rowptr = torch.tensor([0, *(len(own) for own in neighbours)]).cumsum(0)
    kinds = torch.randint(0, 2, (len(neighbours),), generator=draw)
    return node_ptr, rowptr, torch.cat(neighbours), kinds


@pytest.mark.parametrize("sets", [False, True], ids=["multisets", "sets"])
def test_levels_hold_what_counting_finds(
    graphs: tuple[Tensor, Tensor, Tensor, Tensor], sets: bool
) -> None:
    node_ptr, rowptr, col, kinds = graphs
    colours = [c.tolist() for c in refinements(rowptr, col, kinds, 3, ignore_counts=sets)]
    found = levels(node_ptr, rowptr, col, kinds, 3, ignore_counts=sets)
    assert len(found) == 4
    for depth, level in enumerate(found):
        colour = colours[depth]
        for g in range(len(node_ptr) - 1):
            held = slice(level.graph_ptr[g], level.graph_ptr[g + 1])
            counted = dict(
                zip(level.held[held].tolist(), level.held_multiplicity[held].tolist(), strict=True)
            )
            assert counted == Counter(colour[node_ptr[g] : node_ptr[g + 1]])
        for node, own in enumerate(colour if depth > 0 else []):
            below = colours[depth - 1]
            row = slice(level.rowptr[own], level.rowptr[own + 1])
            around = Counter(below[j] for j in col[rowptr[node] : rowptr[node + 1]].tolist())
            table = dict(
                zip(level.col[row].tolist(), level.multiplicity[row].tolist(), strict=True)
            )
            assert level.parent[own] == below[node]
            assert set(table) == set(around)
            assert sets or table == around


def test_sets_tell_less_apart() -> None:
    """Two leaves or three are the same to a maximum."""
    rowptr = torch.tensor([0, 2, 3, 4, 7, 8, 9, 10])
    col = torch.tensor([1, 2, 0, 0, 4, 5, 6, 3, 3, 3])
    stars = torch.tensor([0, 3, 7]), rowptr, col, torch.tensor([0, 1, 1, 0, 1, 1, 1])
    assert len(levels(*stars, rounds=1)[1].node) == 3
    assert len(levels(*stars, rounds=1, ignore_counts=True)[1].node) == 2


@pytest.mark.parametrize("sets", [False, True], ids=["multisets", "sets"])
def test_graphs_apart_have_colours_of_their_own_one_after_the_other(
    graphs: tuple[Tensor, Tensor, Tensor, Tensor], sets: bool
) -> None:
    node_ptr, rowptr, col, kinds = graphs
    found = levels(node_ptr, rowptr, col, kinds, 3, ignore_counts=sets, per_graph=True)
    together = levels(node_ptr, rowptr, col, kinds, 3, ignore_counts=sets)
    for level, shared in zip(found, together, strict=True):
        assert torch.equal(level.held, torch.arange(len(level.node)))
        # A graph has as many colours, as often each, as if other graphs could have them too.
        assert torch.equal(level.graph_ptr, shared.graph_ptr)
        for g in range(len(node_ptr) - 1):
            held = slice(level.graph_ptr[g], level.graph_ptr[g + 1])
            assert Counter(level.held_multiplicity[held].tolist()) == Counter(
                shared.held_multiplicity[held].tolist()
            )
