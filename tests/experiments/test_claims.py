import errno
import fcntl
import multiprocessing
import os
from pathlib import Path

import pytest

from gnn_vpa.errors import GnnVpaError
from gnn_vpa.experiments import claim


def test_a_claim_is_exclusive_says_whose_it_is_and_goes_away(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "cell.lock"
    with claim(path) as mine:
        assert mine
        assert path.read_text().split()[1] == str(multiprocessing.current_process().pid)
        with claim(path) as again:
            assert not again
        assert path.read_text()  # the loser has not touched it
    assert not path.exists()
    with claim(path) as mine:
        assert mine


def test_a_claim_ends_with_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), claim(tmp_path / "cell.lock"):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_a_dead_owner_left_is_no_claim(tmp_path: Path) -> None:
    (tmp_path / "cell.lock").write_text("host 1\n")
    with claim(tmp_path / "cell.lock") as mine:
        assert mine


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EIO])
def test_a_file_system_without_locks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def flock(*_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", flock)
    with (
        pytest.raises(GnnVpaError, match=rf"locked in {tmp_path} .*: choose .*local disk"),
        claim(tmp_path / "cell.lock"),
    ):
        pytest.fail("it was claimed without a lock")


def test_a_full_disk_does_not_keep_from_a_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", write)
    with claim(tmp_path / "cell.lock") as mine:
        assert mine
