import errno
import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors import safe_open
from safetensors.torch import save_file

from gnn_vpa.errors import UsageError
from gnn_vpa.graphs import GraphSet, cache, cache_dir, read_cached, read_tu


def copies(folder: Path) -> list[Path]:
    return sorted((folder / "graphs").iterdir())


def forbid_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_source: Path) -> GraphSet:
        raise AssertionError("the archive was read again")

    monkeypatch.setattr(cache, "read_tu", refuse)


@pytest.fixture
def archive(write_tu: Callable[..., Path], zip_folder: Callable[..., Path]) -> Path:
    labels, attributes = "1\n2\n1\n1\n2\n", "0.5\n1\n2\n3\n4\n"
    return zip_folder(write_tu(node_labels=labels, node_attributes=attributes))


def test_the_second_time_the_archive_is_not_read(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = read_cached(archive)
    forbid_reading(monkeypatch)
    second = read_cached(archive)
    assert second.name == first.name
    assert second.checksum() == first.checksum() == read_tu(archive).checksum()


def test_other_content_is_another_copy(write_tu: Callable[..., Path]) -> None:
    folder = write_tu()
    assert read_cached(folder).num_edges == 6
    (folder / "TINY_A.txt").write_text("1, 2\n")
    assert read_cached(folder).num_edges == 1


@pytest.mark.parametrize("damage", ["empty", "short", "changed", "other version", "other tensors"])
def test_a_copy_that_is_not_right_is_made_again(
    damage: str,
    archive: Path,
    own_cache: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = read_cached(archive).checksum()
    (copy,) = copies(own_cache)
    if damage == "empty":
        copy.write_bytes(b"")
    elif damage == "short":
        copy.write_bytes(copy.read_bytes()[:-9])
    elif damage == "changed":
        with safe_open(copy, framework="pt") as file:
            metadata = file.metadata()
        tensors = dict(read_tu(archive).tensors())
        tensors["y"] = tensors["y"].flip(0)
        save_file(tensors, copy, metadata)
    elif damage == "other version":
        save_file(dict(read_tu(archive).tensors()), copy, {"format": "0"})
    else:
        save_file({"z": read_tu(archive).y}, copy, {"format": cache._FORMAT, "name": "TINY"})
    with caplog.at_level(logging.INFO, logger="gnn_vpa"):
        assert read_cached(archive).checksum() == expected
    assert [record.levelname for record in caplog.records] == ["INFO"]
    assert copies(own_cache) == [copy]
    forbid_reading(monkeypatch)
    assert read_cached(archive).checksum() == expected


def test_a_full_disk_costs_the_copy_alone(
    archive: Path,
    own_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(cache, "save_file", full)
    assert read_cached(archive).num_graphs == 2
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "TINY is not cached" in record.message
    assert copies(own_cache) == []


def test_a_folder_that_cannot_be_made_costs_the_copy_alone(
    archive: Path, own_cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own_cache.write_text("a file where the folder should be")
    assert read_cached(archive).num_graphs == 2
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GNN_VPA_CACHE", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_dir() == tmp_path / "own"
    monkeypatch.delenv("GNN_VPA_CACHE")
    assert cache_dir() == tmp_path / "xdg" / "gnn-vpa"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_dir() == Path.home() / ".cache" / "gnn-vpa"


def test_an_archive_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"does not exist"):
        read_cached(tmp_path / "absent.zip")
