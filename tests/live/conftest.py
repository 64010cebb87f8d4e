"""A browser that is spoken to while a page lives: it waits, clicks, and tells what was logged."""

import fcntl
import json
import os
import shutil
import signal
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gnn_vpa.experiments import Cell, Result, Store
from gnn_vpa.graphs import GraphSet
from gnn_vpa.training import Outcome, Protocol, Task

BROWSERS = ("chromium", "google-chrome", "chrome")
_PATIENCE_S = 60.0


class Browser:
    """Chromium's debugging protocol over a pipe: JSON, each message ended by a zero byte."""

    def __init__(self, program: str, profile: Path) -> None:
        theirs_in, self._to = os.pipe()
        self._from, theirs_out = os.pipe()
        command = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"]
        command += ["--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe"]
        command += [f"--user-data-dir={profile}", "about:blank"]
        # The protocol has its ends at 3 and 4, which may be in use here.
        high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (theirs_in, theirs_out)]
        silent = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        moves = [*((silent, n) for n in range(3)), *zip(high, (3, 4), strict=True)]
        actions = [(os.POSIX_SPAWN_DUP2, source, target) for source, target in moves]
        self._pid = os.posix_spawn(program, command, os.environ, file_actions=actions)
        for end in (*high, theirs_in, theirs_out, silent):
            os.close(end)
        self._number, self._rest = 0, b""
        self.logged: list[str] = []
        (target,) = [
            each
            for each in self._call("Target.getTargets")["targetInfos"]
            if each["type"] == "page"
        ]
        attached = self._call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session: str | None = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    _session: str | None = None

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask for something, and return the answer."""
        return self._call(method, **parameters)

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == self._number:
                assert "error" not in found, found
                answer: dict[str, Any] = found["result"]
                return answer
            self._take_note(found)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            got = os.read(self._from, 1 << 16)
            assert got, "the browser has ended"
            self._rest += got
        message, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def _take_note(self, event: dict[str, Any]) -> None:
        match event.get("method"):
            case "Runtime.exceptionThrown":
                self.logged.append(event["params"]["exceptionDetails"]["text"])
            case "Runtime.consoleAPICalled":
                self.logged.append(str(event["params"]["args"]))
            case "Log.entryAdded":
                self.logged.append(event["params"]["entry"]["text"])
            case "Page.javascriptDialogOpening":
                self.logged.append(f"dialog: {event['params']['message']}")

    def evaluate(self, script: str) -> Any:
        """Return what an expression gives in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def open(self, address: str, *, width: int = 1280, height: int = 900) -> None:
        """Show a page in a window of some size."""
        self.call("Page.navigate", url="about:blank")  # what was shown before logs nothing more
        self.wait_for("location.href === 'about:blank' && document.readyState === 'complete'")
        self.logged.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        self.call("Page.navigate", url=address)
        self.wait_for(f"location.href === '{address}' && document.readyState === 'complete'")

    def wait_for(self, script: str) -> Any:
        """Wait until an expression gives something, and return that."""
        ended = time.monotonic() + _PATIENCE_S
        while not (found := self.evaluate(script)):
            assert time.monotonic() < ended, (
                f"{script} of {self.evaluate('document.body.innerText')}"
            )
            time.sleep(0.05)
        return found

    def close(self) -> None:
        """End it."""
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._to)
        os.close(self._from)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip("neither Chromium nor Chrome is on the PATH")
    browser = Browser(program, tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


class Run:
    """A run's folder, filled by hand: cells are recorded, and nothing is trained."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._line = torch.tensor([[0, 1], [1, 0]])

    def cell(self, aggr: str = "vpa", dataset: str = "toy", **more: Any) -> Cell:
        """A cell on a data set of its own, with three folds of four epochs."""
        content = self._graphs(dataset).checksum()
        settings: dict[str, Any] = {"protocol": Protocol(epochs=4), "folds": 3} | more
        settings["content"] = content
        return Cell(dataset, Task("gin", aggr), **settings)

    def _graphs(self, dataset: str) -> GraphSet:
        nodes = 3 + zlib.crc32(dataset.encode()) % 100
        graphs = [Data(edge_index=self._line, num_nodes=nodes, y=n % 2) for n in range(6)]
        return GraphSet.from_pyg(graphs, name="data")

    def finish(self, *cells: Cell, score: float = 0.5, diverged: Sequence[int] = ()) -> None:
        """Record cells whose folds come to a score and a little more each."""
        with Store(self.folder) as store:
            session = store.begin("cpu", {})
            for cell in cells:
                store.register(cell.dataset, self._graphs(cell.dataset))
                outcomes = [self._outcome(fold, score, fold in diverged) for fold in range(3)]
                result = Result(cell, outcomes)
                store.record([result], session=session, seconds=3.0, device="cpu")
            store.end(session)

    def _outcome(self, fold: int, score: float, diverged: bool) -> Outcome:
        loss = np.array([2.0, 1.0, 0.8, 0.7], np.float32)
        scores = np.linspace(0.1, score, 4, dtype=np.float32) + fold / 100
        if diverged:
            loss[2:] = np.nan
        return Outcome.of(fold, 0, loss, scores, scores)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run that has not begun."""
    return Run(tmp_path / "run")
