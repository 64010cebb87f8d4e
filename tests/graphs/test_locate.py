from collections.abc import Callable
from pathlib import Path

import pytest

import gnn_vpa
from gnn_vpa.errors import UsageError
from gnn_vpa.graphs import download_dir, find_archives, read_tu
from gnn_vpa.graphs._contents import CONTENTS


def test_zips_and_folders_are_found_and_nothing_else(write_tu: Callable[..., Path]) -> None:
    folder = write_tu("ONE").parent
    (folder / "TWO.zip").touch()
    (folder / "notes").mkdir()
    (folder / "README.md").touch()
    found = find_archives(folder)
    assert {"ONE": folder / "ONE", "TWO": folder / "TWO.zip"}.items() <= found.items()
    assert set(found) == {"ONE", "TWO", "MUTAG"}


def test_the_first_place_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = {"explicit": tmp_path / "a", "variable": tmp_path / "b", "download": download_dir()}
    for place in places.values():
        place.mkdir(parents=True)
        (place / "SAME.zip").touch()
    for name, place in places.items():
        (place / f"{name}.zip").touch()
    monkeypatch.setenv("GNN_VPA_DATA", str(places["variable"]))
    found = find_archives(places["explicit"])
    assert set(found) == {"SAME", "MUTAG", *places}
    assert found["SAME"].parent == places["explicit"]
    assert find_archives()["SAME"].parent == places["variable"]
    monkeypatch.delenv("GNN_VPA_DATA")
    assert find_archives()["SAME"].parent == places["download"]


def test_mutag_of_the_package_comes_last(tmp_path: Path) -> None:
    carried = find_archives()["MUTAG"]
    assert carried.is_relative_to(Path(gnn_vpa.__file__).parent)
    assert read_tu(carried).checksum() == CONTENTS["MUTAG"]
    assert find_archives() == {"MUTAG": carried}
    own = tmp_path / "own"
    own.mkdir()
    (own / "MUTAG.zip").touch()
    assert find_archives(own) == {"MUTAG": own / "MUTAG.zip"}


@pytest.mark.parametrize("by_variable", [True, False])
def test_a_folder_that_is_not_there(
    by_variable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "absent"
    if by_variable:
        monkeypatch.setenv("GNN_VPA_DATA", str(folder))
    with pytest.raises(UsageError, match=r"absent does not exist"):
        find_archives(None if by_variable else folder)
