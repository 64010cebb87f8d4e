"""What labels were called is kept, and is no part of the content."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from gnn_vpa.graphs import GraphSet, Numbering, load, read_cached, with_target
from gnn_vpa.graphs.locate import find_archives

PAIR = torch.tensor([[0, 1], [1, 0]])


def test_an_archive_keeps_its_labels_in_the_cache_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GNN_VPA_CACHE", str(tmp_path))
    archive = find_archives()["MUTAG"]
    first, again = read_cached(archive), read_cached(archive)
    assert first.numbering == again.numbering == Numbering((-1, 1), (0,), ((0, 4),))


def test_it_is_no_part_of_the_content() -> None:
    mutag = load("MUTAG")
    assert replace(mutag, numbering=Numbering()).checksum() == mutag.checksum()


def test_classes_of_pyg_graphs_are_remembered() -> None:
    graphs = [Data(edge_index=PAIR, num_nodes=2, y=label) for label in (7, 3, 7)]
    assert GraphSet.from_pyg(graphs).numbering.classes == (3, 7)


def test_another_target_has_classes_of_its_own() -> None:
    graphs = [
        Data(edge_index=PAIR, num_nodes=2, y=torch.tensor([[0.5, label]])) for label in (4, 2)
    ]
    chosen = with_target(GraphSet.from_pyg(graphs), "y:1", "classes")
    assert chosen.numbering.classes == (2, 4)


def test_graphs_may_have_no_target() -> None:
    graphs = GraphSet.from_pyg([Data(edge_index=PAIR, num_nodes=2)], target="")
    assert graphs.y.tolist() == [-1]
    assert graphs.num_outputs == 0
