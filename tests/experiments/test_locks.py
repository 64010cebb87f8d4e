import errno
import fcntl
import multiprocessing
import os
import platform
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest

from gnn_vpa.errors import GnnVpaError
from gnn_vpa.experiments import locks, try_lock
from gnn_vpa.experiments.locks import (
    check_locks,
    check_still_mine,
    is_abandoned,
    release_abandoned,
)


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


def test_a_look_at_a_free_lock_does_not_make_it_somebodys(tmp_path: Path) -> None:
    # Another process asks whether it is abandoned, for which it holds the file for a moment.
    path = tmp_path / "cell.lock"
    looking = os.open(path, os.O_RDONLY | os.O_CREAT)
    fcntl.flock(looking, fcntl.LOCK_SH)
    threading.Timer(0.005, os.close, [looking]).start()
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


def test_a_lock_whose_owner_was_killed_is_abandoned_until_it_is_released(
    tmp_path: Path, in_process: Callable[..., ForkServerProcess]
) -> None:
    path, held = tmp_path / "cell.lock", tmp_path / "held"
    code = (
        "import time; from pathlib import Path; from gnn_vpa.experiments import try_lock\n"
        f"with try_lock(Path({str(path)!r})): Path({str(held)!r}).touch(); time.sleep(600)"
    )
    owner = in_process(exec, code, {})
    while not held.exists():
        assert owner.is_alive()
        time.sleep(0.01)
    release_abandoned(tmp_path)
    assert path.exists()
    assert not is_abandoned(path)
    owner.kill()
    owner.join()
    assert is_abandoned(path)
    release_abandoned(tmp_path)
    assert not path.exists()


def test_a_lock_that_was_given_back_is_not_abandoned(tmp_path: Path) -> None:
    with try_lock(tmp_path / "a") as mine:
        assert mine
    assert not is_abandoned(tmp_path / "a")
    (tmp_path / "b").touch()  # its owner was killed before it held the lock
    assert not is_abandoned(tmp_path / "b")


@pytest.mark.parametrize(("name", "said"), [("flock", "by flock"), ("lockf", "SQLite uses")])
def test_locks_that_exclude_nobody_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    monkeypatch.setattr(locks, "_trusted", set())
    check_locks(tmp_path)  # this file system has locks
    monkeypatch.setattr(locks, "_trusted", set())
    monkeypatch.setattr(fcntl, name, lambda *_: None)  # it says that it has locked, and has not
    with pytest.raises(GnnVpaError, match=rf"{tmp_path}: .*{said}.*docs/slurm.md"):
        check_locks(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_whose_locks_were_not_tried_is_not_trusted_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trusted: set[int] = set()
    monkeypatch.setattr(locks, "_trusted", trusted)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    check_locks(tmp_path)
    assert trusted == set()


def test_a_file_system_that_refuses_locks_is_named_before_anything_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lockf(*_: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(locks, "_trusted", set())
    monkeypatch.setattr(fcntl, "lockf", lockf)
    with pytest.raises(GnnVpaError, match=rf"locked in {tmp_path} .*: choose .*local disk"):
        check_locks(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_another_host_was_given_too_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cell.lock"
    with try_lock(path):
        check_still_mine(path)
        with monkeypatch.context() as elsewhere:  # where locks hold on each host by itself
            elsewhere.setattr(fcntl, "flock", lambda *_: None)
            elsewhere.setattr(platform, "node", lambda: "node9")
            with try_lock(path) as again:
                assert again
                monkeypatch.setattr(platform, "node", lambda: "here")
                with pytest.raises(GnnVpaError, match=r"by process \d+ on node9"):
                    check_still_mine(path)
        with pytest.raises(GnnVpaError, match="by a process that has ended"):
            check_still_mine(path)


def test_a_lock_that_a_full_disk_kept_from_being_signed_is_still_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", write)
    with try_lock(tmp_path / "cell.lock"):
        check_still_mine(tmp_path / "cell.lock")
