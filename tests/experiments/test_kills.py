"""Processes that are really killed: nothing is lost, nothing is run twice, and it is said."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gnn_vpa import processes
from gnn_vpa.errors import GnnVpaError
from gnn_vpa.experiments import (
    Cell,
    Group,
    Progress,
    crew,
    expand,
    finished,
    identify,
    read_folds,
    run_grid,
    workers,
)
from gnn_vpa.experiments.store import query
from gnn_vpa.training import Protocol

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
_WAIT_S = 300.0  # until a process is taken for stuck: imports alone take long on a busy machine


def _cells(epochs: int, seeds: range) -> list[Cell]:
    protocol = Protocol(epochs=epochs)
    asked = expand(["MUTAG"], ["sgc"], ["vpa"], protocol=protocol, folds=2, seeds=seeds)
    return identify(asked.cells).cells


class Watch(Progress):
    """Waits with the first cell until another process is at the second; keeps what is said."""

    def __init__(self, begun: threading.Event) -> None:
        self._begun = begun
        self.notes: list[str] = []
        self.elsewhere_: list[int] = []

    def start(self, group: Group) -> None:
        assert self._begun.wait(_WAIT_S)

    def elsewhere(self, cell: Cell) -> None:
        self.elsewhere_.append(cell.seed)

    def note(self, text: str) -> None:
        if "edge features" not in text:  # it is said of the data at the start
            self.notes.append(text)


@contextmanager
def killing(lock: Path, times: int) -> Iterator[tuple[threading.Event, list[int]]]:
    """Kill the owner of a lock, so many times; never this process."""
    killed: list[int] = []
    begun, over = threading.Event(), threading.Event()

    def watch() -> None:
        while not over.is_set() and len(killed) < times:
            text = lock.read_text() if lock.exists() else ""
            owner = int(text.split()[1]) if text.count(" ") else 0
            if owner not in (0, os.getpid(), *killed):
                killed.append(owner)
                os.kill(owner, signal.SIGKILL)
                begun.set()
            time.sleep(0.01)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield begun, killed
    finally:
        over.set()
        thread.join()


def _rows(out: Path) -> pd.DataFrame:
    return read_folds(out).drop(columns="seconds").set_index(["seed", "fold"]).sort_index()


def test_a_killed_process_is_noticed_and_its_cell_trained_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew, "longest_first", list)  # this process is not to take the longest
    # The second takes some 300 ms, in which somebody who looks every 10 ms sees its lock.
    cells = [
        *_cells(2, range(1)), *_cells(100, range(1, 2)), *_cells(2, range(2, 3)),
    ]  # fmt: skip
    run_grid(cells, tmp_path / "undisturbed", device="cpu", workers=1)
    out = tmp_path / "killed"
    with killing(out / "checkpoints" / f"{cells[1].key}.lock", times=1) as (begun, killed):
        watch = Watch(begun)
        run_grid(cells, out, device="cpu", workers=2, progress=watch)
    assert len(killed) == 1
    # One that is killed between taking a cell's lock and saying so is not known to be at it.
    assert re.search(
        r"A process was ended by SIGKILL( while it trained SGC\+vpa on MUTAG, seed 1)?, most "
        r"likely because memory ran out: going on with 1 process; that cell is trained again\.",
        caplog.text,
    )
    pd.testing.assert_frame_equal(_rows(out), _rows(tmp_path / "undisturbed"), check_exact=True)
    assert watch.elsewhere_ == [1]
    assert watch.notes == []  # the process that has trained it again has ended by itself
    assert [path.name for path in out.iterdir()] == ["results.sqlite"]


def test_a_cell_that_ends_every_process_is_named_in_the_end_and_the_others_are_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew, "longest_first", list)  # this process is not to take the longest
    first, second = _cells(2, range(2))
    (endless,) = _cells(10**6, range(1))
    with killing(tmp_path / "checkpoints" / f"{endless.key}.lock", times=10) as (begun, killed):
        watch = Watch(begun)
        with pytest.raises(GnnVpaError, match=r"^SGC\+vpa on MUTAG: every process .* was killed"):
            run_grid([first, endless, second], tmp_path, device="cpu", workers=2, progress=watch)
    assert len(killed) == 3
    assert [note.rpartition(": ")[2] for note in watch.notes] == [
        "that cell is trained once more.",
        "that cell is left out.",
    ]
    assert finished(tmp_path) == {first.key, second.key}
    assert not list(tmp_path.glob("checkpoints/*.lock"))
    # The same command tries it again, and what is finished is not run again.
    sessions = "SELECT key, session FROM cells ORDER BY id"
    before = query(tmp_path, sessions)
    run_grid([first, second], tmp_path, device="cpu", workers=1)
    assert query(tmp_path, sessions) == before


def test_an_assistant_that_ends_by_itself_is_no_kill(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run_grid(_cells(2, range(4)), tmp_path, device="cpu", workers=2)
    assert "was ended by" not in caplog.text


def test_what_a_killed_process_was_at_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (
        "import os, sys; sys.stdin.buffer.read(8); print('at SGC+vpa on MUTAG', flush=True); "
        "os.kill(os.getpid(), 9)"
    )

    def start(*_: object, **pipes: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", lines], **pipes)

    monkeypatch.setattr(processes, "start", start)
    assistant = workers.Assistant(workers.Order([], Path("nowhere"), None, "cpu"))
    assistant.attend()
    assert assistant.killed() == (
        "A process was ended by SIGKILL while it trained SGC+vpa on MUTAG, most likely because "
        "memory ran out"
    )
    assistant.end()
