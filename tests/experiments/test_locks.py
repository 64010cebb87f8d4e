import errno
import fcntl
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gnn_vpa.errors import GnnVpaError
from gnn_vpa.experiments import try_lock
from gnn_vpa.experiments.locks import is_abandoned, release_abandoned


def test_a_claim_is_exclusive_says_whose_it_is_and_goes_away(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "cell.lock"
    with try_lock(path) as mine:
        assert mine
        assert path.read_text().split()[1] == str(multiprocessing.current_process().pid)
        with try_lock(path) as again:
            assert not again
        assert path.read_text()  # the loser has not touched it
    assert not path.exists()
    with try_lock(path) as mine:
        assert mine


def test_a_claim_ends_with_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), try_lock(tmp_path / "cell.lock"):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_a_dead_owner_left_is_no_claim(tmp_path: Path) -> None:
    (tmp_path / "cell.lock").write_text("host 1\n")
    with try_lock(tmp_path / "cell.lock") as mine:
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
        try_lock(tmp_path / "cell.lock"),
    ):
        pytest.fail("it was claimed without a lock")


def test_a_full_disk_does_not_keep_from_a_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", write)
    with try_lock(tmp_path / "cell.lock") as mine:
        assert mine


def test_a_lock_whose_owner_was_killed_is_abandoned_until_it_is_released(tmp_path: Path) -> None:
    path = tmp_path / "cell.lock"
    code = (
        "import sys, time; from pathlib import Path; from gnn_vpa.experiments import try_lock\n"
        f"with try_lock(Path({str(path)!r})): print('mine', flush=True); time.sleep(600)"
    )
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert owner.stdout is not None
    assert owner.stdout.readline() == b"mine\n"
    release_abandoned(tmp_path)
    assert path.exists()
    assert not is_abandoned(path)
    owner.kill()
    owner.wait()
    owner.stdout.close()
    assert is_abandoned(path)
    release_abandoned(tmp_path)
    assert not path.exists()


def test_a_lock_that_was_given_back_is_not_abandoned(tmp_path: Path) -> None:
    with try_lock(tmp_path / "a") as mine:
        assert mine
    assert not is_abandoned(tmp_path / "a")
    (tmp_path / "b").touch()  # its owner was killed before it held the lock
    assert not is_abandoned(tmp_path / "b")
