"""What a run is at, now: for whoever watches it from another process.

Each process that trains keeps a file in the folder `live` of its run, written whole and about once
a second, and holds its lock: the operating system gives that back when the process ends, however
that happens, so that nobody is shown as running who is not. The process that was started by hand
also writes once what is to be run. Both files go when a run ends; what an interrupted one was to
run stays until the next begins.

A run does not depend on any of this: what cannot be written is left out.
"""

import json
import os
import platform
import secrets
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from ..files import write_whole
from ..training import Outcome
from ..training.seldom import Seldom
from .cell import Cell
from .curve_lines import line_of
from .estimate import kind_of, work_of
from .groups import Group
from .journal_files import FOLDER, FORMAT, LOCK, NEWS, PLAN, sweep
from .locks import try_lock
from .progress import Grown, Progress

_PAUSE_S = 1.0
_FIRST_S = 0.2


@dataclass
class _Work:
    """What one worker is at."""

    group: Group
    device: str
    since: float = field(default_factory=time.time)
    first: int | None = None  # epochs that were done when the first news came
    epoch: int = 0
    grown: dict[tuple[str, int], Grown] = field(default_factory=dict)


class Journal(Progress):
    """The journal of this process, as a context.

    Being told of the progress costs nothing: a thread writes, at most once a second, and at most a
    hundredth of the time. A process that speaks for others, such as the one that directs a
    cluster, tells what each of them is at by `tell`.

    Args:
        out: Folder of the run.
        device: What this process trains on.

    Example:
        >>> import tempfile
        >>> from gnn_vpa.experiments.journal_files import journals
        >>> from gnn_vpa.training import Task
        >>> cell = Cell("MUTAG", Task("gin", "vpa"), content="5b996644")
        >>> with tempfile.TemporaryDirectory() as folder, Journal(folder, "cpu") as journal:
        ...     journal.tell("node 3", Group((cell,)), epoch=20)
        ...     journal.write()
        ...     [(at["worker"], at["group"]) for at in journals(folder)[0].workers]
        [('node 3', 'GIN+vpa on MUTAG')]
    """

    def __init__(self, out: str | Path, device: str) -> None:
        self._folder, self._device = Path(out) / FOLDER, device
        self._host, self._pid, self._started = platform.node(), os.getpid(), time.time()
        self._own = f"{self._host} {self._pid}"
        self._name: str | None = None  # of its files; None: there are none
        self._works: dict[str, _Work] = {}
        self._planned: tuple[float, Sequence[Cell]] | None = None  # until it is written
        self._guard = threading.Lock()
        self._news, self._ended = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._keep_writing, daemon=True)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with suppress(OSError):
            name = f"{self._pid}-{secrets.token_hex(4)}"
            if self._stack.enter_context(try_lock(self._folder / f"{name}{LOCK}")):
                self._name = name
                self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None = None, *_: object) -> None:
        """Let go; what was to be run stays if it was not."""
        self._ended.set()
        self._news.set()
        if self._name is not None:
            self._thread.join()
        with suppress(OSError):
            self._path(NEWS).unlink(missing_ok=True)
            if kind is None:
                self._path(PLAN).unlink(missing_ok=True)
        with suppress(OSError):
            self._stack.close()
        if kind is None:
            sweep(self._folder)  # after processes beside this one that were ended

    def tell(
        self,
        worker: str,
        group: Group | None,
        epoch: int | None = None,
        grown: Iterable[Grown] = (),
        *,
        device: str = "",
    ) -> None:
        """Say what a worker is at.

        Args:
            worker: What people know it by, such as a host and the number of a process.
            group: What it trains; None: nothing any more.
            epoch: How many epochs are done; None: as many as before.
            grown: Folds that have new curves.
            device: What it trains on; that of this process, if it is not said.
        """
        with self._guard:
            if group is None:
                self._works.pop(worker, None)
            else:
                work = self._works.get(worker)
                if work is None or (work.group is not group and work.group.key != group.key):
                    work = self._works[worker] = _Work(group, device or self._device)
                if epoch is not None:
                    work.first = epoch if work.first is None else work.first
                    work.epoch = epoch
                work.grown |= {(each.cell.key, each.fold): each for each in grown}
        self._news.set()

    def plan(self, pending: Sequence[Cell], finished: int) -> None:
        """Take note of what is to be run."""
        with self._guard:
            self._planned = time.time(), pending
        self._news.set()

    def start(self, group: Group) -> None:
        """Take note of what is trained here."""
        self.tell(self._own, group)

    def epochs(self, group: Group, done: int) -> None:
        """Take note of how far it is."""
        self.tell(self._own, group, done)

    def curves(self, group: Group, grown: Sequence[Grown]) -> None:
        """Take note of what its folds have come to."""
        self.tell(self._own, group, grown=grown)

    def finish(self, cell: Cell, outcomes: Sequence[Outcome], seconds: float) -> None:
        """Take note that it is done: the results have it now."""
        self.tell(self._own, None)

    def write(self) -> None:
        """Write what is known now."""
        with self._guard:
            works = [
                (name, replace(work, grown=dict(work.grown))) for name, work in self._works.items()
            ]
            planned, self._planned = self._planned, None
        if planned is not None:
            self._write(PLAN, self._of_plan(*planned))
        content = {
            "format": FORMAT,
            "host": self._host,
            "pid": self._pid,
            "device": self._device,
            "started": self._started,
            "updated": time.time(),
            "workers": [_described(name, work) for name, work in works],
        }
        self._write(NEWS, content)

    def _of_plan(self, began: float, pending: Sequence[Cell]) -> dict[str, object]:
        cells = [[cell.key, str(cell), *kind_of(cell), work_of(cell)] for cell in pending]
        return {"format": FORMAT, "began": began, "device": self._device, "cells": cells}

    def _write(self, kind: str, content: Mapping[str, object]) -> None:
        if self._name is not None:
            with suppress(OSError):  # a full disk: nothing depends on it
                text = json.dumps(content, allow_nan=False)
                write_whole(self._path(kind), text, lasting=False)

    def _path(self, kind: str) -> Path:
        return self._folder / f"{self._name}{kind}"

    def _keep_writing(self) -> None:
        pause = Seldom(_PAUSE_S)
        self._ended.wait(_FIRST_S)  # what is over before is not worth a file
        while not self._ended.is_set():
            self._news.wait()
            self._news.clear()
            if not self._ended.is_set():
                with pause:
                    self.write()
            self._ended.wait(pause.wait())


def _described(name: str, work: _Work) -> dict[str, object]:
    group = work.group
    by_cell: dict[str, list[Grown]] = {}
    for (key, _), grown in work.grown.items():
        by_cell.setdefault(key, []).append(grown)
    return {
        "worker": name,
        "device": work.device,
        "group": str(group),
        "cells": [cell.key for cell in group.cells],
        "since": work.since,
        "first": work.first or 0,
        "epoch": work.epoch,
        "epochs": group.protocol.epochs if group.protocol else 0,
        "lines": [line_of(cell, by_cell[cell.key]) for cell in group.cells if cell.key in by_cell],
    }
