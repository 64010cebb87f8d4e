"""Epochs of two source trees: each by its code."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from gnn_vpa.errors import UsageError


@pytest.fixture
def epochs(
    benchmark_module: Callable[[str], ModuleType], tu_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> ModuleType:
    monkeypatch.setenv("GNN_VPA_DATA", str(tu_dir))
    return benchmark_module("epochs")


def test_a_tree_is_measured_beside_another(
    epochs: ModuleType, benchmark_module: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    source = Path(str(epochs.__file__)).parents[1] / "src"
    out = tmp_path / "out.md"
    epochs.report("cpu", ["MUTAG"], 3, 1, source, benchmark_module("_record").Record(out))
    *_, before, after, ratio = out.read_text().splitlines()[-1].strip("| ").split(" | ")
    taken = [float(text.removesuffix(" ms")) for text in (before, after)]
    assert float(ratio) == pytest.approx(taken[1] / taken[0], abs=1e-2)


def test_a_folder_without_the_library_is_refused(
    epochs: ModuleType, benchmark_module: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="has no gnn_vpa"):
        epochs.report("cpu", ["MUTAG"], 3, 1, tmp_path, benchmark_module("_record").Record())
