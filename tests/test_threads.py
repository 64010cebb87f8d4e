"""Work in threads leaves the state of the process as it was."""

import warnings
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

from gnn_vpa.graphs import load
from gnn_vpa.training import METRICS


def write_archive(folder: Path, name: str, graphs: int) -> None:
    """Write paths of 50 nodes as an archive of the TU collection."""
    nodes = np.arange(1, 50 * graphs + 1)
    first = nodes[nodes % 50 > 0]
    edges = np.concatenate([[first, first + 1], [first + 1, first]], axis=1).T
    parts = {
        "A": "\n".join(f"{one}, {other}" for one, other in edges.tolist()),
        "graph_indicator": "\n".join(str((node - 1) // 50 + 1) for node in nodes.tolist()),
        "graph_labels": "\n".join(str(graph % 2) for graph in range(graphs)),
    }
    with zipfile.ZipFile(folder / f"{name}.zip", "w") as archive:
        for part, text in parts.items():
            archive.writestr(f"{name}/{name}_{part}.txt", text + "\n")


def test_archives_read_in_threads_leave_the_warning_filters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GNN_VPA_CACHE", str(tmp_path / "cache"))
    names = [f"SET{number}" for number in range(8)]
    for number, name in enumerate(names):
        write_archive(tmp_path, name, 200 + 150 * number)
    before = list(warnings.filters)
    with ThreadPoolExecutor(len(names)) as pool:
        assert len(list(pool.map(lambda name: load(name, data_dir=tmp_path), names))) == 8
    assert list(warnings.filters) == before


def test_metrics_in_threads_leave_the_warning_filters() -> None:
    y, scores = torch.zeros(400, dtype=torch.long), torch.eye(2)[torch.arange(400) % 2]
    before = list(warnings.filters)
    with ThreadPoolExecutor(8) as pool:
        values = list(pool.map(lambda _: METRICS["balanced_accuracy"].of(y, scores), range(200)))
    assert set(values) == {0.5}
    assert list(warnings.filters) == before
