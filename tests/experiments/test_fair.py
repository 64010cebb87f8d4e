"""The cells of the fair comparison."""

import json
from pathlib import Path

import pytest

from gnn_vpa.errors import UsageError
from gnn_vpa.experiments import fair_cells, identify
from gnn_vpa.paper import fair_sets


@pytest.fixture(scope="module")
def splits() -> Path:
    folder = Path(__file__).resolve().parents[2].parent / "shared" / "fair" / "splits"
    if not folder.is_dir():
        pytest.skip(f"the splits of the fair comparison are not in {folder}")
    return folder


def test_sixteen_settings_and_a_choice_for_each_aggregation(tu_dir: Path, splits: Path) -> None:
    cells = [cell for cell in fair_cells(splits, tu_dir) if cell.dataset == "ENZYMES"]
    assert len(cells) == 4 * (16 + 1)
    chosen = [cell for cell in cells if cell.selection is not None]
    assert [cell.task.aggr for cell in chosen] == ["sum", "mean", "max", "vpa"]
    assert {cell.selection.final_runs for cell in chosen if cell.selection} == {3}


def test_divisions_are_those_that_the_published_rows_belong_to(tu_dir: Path, splits: Path) -> None:
    small = {"ENZYMES", "IMDB-B", "IMDB-M"}
    cells = [c for c in fair_cells(splits, tu_dir) if c.dataset in small and c.selection]
    found = {cell.division.name for cell in identify(cells, tu_dir).cells}
    names = {"ENZYMES", "IMDB-BINARY", "IMDB-MULTI"}
    assert found == {its.division for its in fair_sets() if its.dataset in names}


def test_only_what_has_splits_is_run(tmp_path: Path, tu_dir: Path) -> None:
    (tmp_path / "NCI1.json").write_text(json.dumps([[[0, 1], [2], [3]]]))
    assert {cell.dataset for cell in fair_cells(tmp_path, tu_dir)} == {"NCI1"}


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="they are public at https"):
        fair_cells(tmp_path)
