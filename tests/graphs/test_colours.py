"""Colour refinement against the definition, on all small graphs and on real ones."""

from pathlib import Path
from typing import Any

import networkx as nx
import pytest
import torch
from torch import Tensor

from gnn_vpa.graphs import load, refine
from gnn_vpa.graphs.colours import _on_device


def csr_of(graphs: list[nx.Graph]) -> tuple[Tensor, Tensor]:
    """Return several networkx graphs as one CSR."""
    whole = nx.disjoint_union_all(graphs)
    rows = [sorted(whole.neighbors(node)) for node in range(len(whole))]
    lengths = torch.tensor([0] + [len(row) for row in rows])
    return lengths.cumsum(0), torch.tensor([j for row in rows for j in row], dtype=torch.long)


def by_definition(rowptr: Tensor, col: Tensor, start: Tensor, rounds: int) -> Tensor:
    """Name a colour by its own history: the colour before, and the sorted ones around."""
    colour = [(c,) for c in start.tolist()]
    for _ in range(rounds):
        around = [
            sorted(colour[j] for j in col[rowptr[i] : rowptr[i + 1]].tolist())
            for i in range(len(colour))
        ]
        signs = [hash((c, tuple(a))) for c, a in zip(colour, around, strict=True)]
        names = {c: i for i, c in enumerate(dict.fromkeys(signs))}
        colour = [(names[c],) for c in signs]
    return torch.tensor([c[0] for c in colour])


def partition(colours: Tensor) -> list[int]:
    """Return each node's first companion: equal for equal partitions, whatever the names."""
    first: dict[int, int] = {}
    return [first.setdefault(c, i) for i, c in enumerate(colours.tolist())]


@pytest.mark.parametrize("rounds", [0, 1, 2, 3, 6])
def test_every_graph_of_the_atlas(rounds: int) -> None:
    rowptr, col = csr_of(nx.graph_atlas_g()[1:400])
    start = torch.arange(len(rowptr) - 1) % 2
    ours = refine(rowptr, col, start, rounds)
    assert partition(ours) == partition(by_definition(rowptr, col, start, rounds))


@pytest.mark.parametrize("name", ["MUTAG", "IMDB-BINARY"])
def test_real_graphs(tu_dir: Path, name: str) -> None:
    graphs = load(name, data_dir=tu_dir)
    start = torch.zeros(graphs.num_nodes, dtype=torch.long)
    rowptr, col = graphs.rowptr[:2001], graphs.col[: graphs.rowptr[2000]].long()
    kept = col < 2000  # the last graph may be cut: leave its outer edges out
    row = torch.repeat_interleave(torch.arange(2000), rowptr.diff())[kept]
    rowptr = torch.cat([torch.zeros(1).long(), torch.bincount(row, minlength=2000).cumsum(0)])
    ours = refine(rowptr, col[kept], start[:2000], 4)
    expected = by_definition(rowptr, col[kept], start[:2000], 4)
    assert partition(ours) == partition(expected)


def test_a_collision_of_the_hash_is_found_and_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    rowptr, col = csr_of([nx.star_graph(3), nx.path_graph(4), nx.cycle_graph(5)])
    start = torch.zeros(len(rowptr) - 1, dtype=torch.long)
    expected = refine(rowptr, col, start, 4)  # on the host
    draw, calls = torch.randint, []

    def bad_at_first(*args: Any, **kwargs: Any) -> Tensor:
        calls.append(1)
        salt = draw(*args, **kwargs)
        return torch.zeros_like(salt) if len(calls) % 3 else salt  # all nodes collide

    monkeypatch.setattr(torch, "randint", bad_at_first)
    assert torch.equal(_on_device(rowptr, col, start, 4, False)[-1], expected)
    assert len(calls) > 4


def test_names_do_not_depend_on_what_comes_after() -> None:
    rowptr, col = csr_of([nx.path_graph(3)])
    colours = refine(rowptr, col, torch.tensor([7, -2, 7]), 1)
    assert colours.tolist() == [0, 1, 0]


def test_no_nodes_and_no_edges() -> None:
    nothing = torch.empty(0, dtype=torch.long)
    assert len(refine(torch.zeros(1).long(), nothing, nothing, 3)) == 0
    alone = refine(torch.zeros(4).long(), nothing, torch.tensor([1, 1, 2]), 3)
    assert alone.tolist() == [0, 0, 1]
