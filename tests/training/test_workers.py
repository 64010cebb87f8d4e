"""Lanes divided among processes: the same bits, and none that outlives the one it works for."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gnn_vpa.errors import GnnVpaError, UsageError
from gnn_vpa.graphs import GraphSet, splits
from gnn_vpa.training import Lane, Outcome, Protocol, Task, fit, workers
from gnn_vpa.training.layered_group import LayeredGroup

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="looks for processes in /proc"
)
WAIT_S = 300.0  # until a process is taken for stuck: imports alone take long on a busy machine
PROTOCOL = Protocol(epochs=4, batch_size=16)
TASK = Task("gin", "vpa")


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few lanes share a step, so that there are several groups."""
    monkeypatch.setattr("gnn_vpa.training.trainer.CACHED_ROWS", 200)


@pytest.fixture
def lanes(toy: GraphSet) -> list[Lane]:
    return [Lane(fold, split) for fold, split in enumerate(splits(toy.y, 5))]


@pytest.fixture
def epochs_here(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the epochs that groups run in this process."""
    count, run = [], LayeredGroup.run_epoch
    monkeypatch.setattr(LayeredGroup, "run_epoch", lambda self: (count.append(1), run(self))[1])
    return count


@pytest.fixture
def linger(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a wait, to be called as progress: until the other process has done the rest."""
    done, serve = threading.Event(), workers._serve

    def serve_all(*args: Any) -> None:
        serve(*args)
        done.set()

    monkeypatch.setattr(workers, "_serve", serve_all)

    def wait(*_: object) -> None:
        done.wait(WAIT_S)

    return wait


@pytest.fixture
def process_of(child_of: Callable[[int, str], int | None]) -> Callable[[int], int | None]:
    """Return the process that one has started to train lanes, if there is one."""
    return lambda pid: child_of(pid, "gnn_vpa.training.workers")


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def until(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.05)
    return pytest.fail("it did not happen in time")


def assert_same(got: list[Outcome], expected: list[Outcome]) -> None:
    for one, other in zip(got, expected, strict=True):
        assert (one.fold, one.best_epoch) == (other.fold, other.best_epoch)
        for curve in ("curve_train_loss", "curve_val", "curve_test"):
            assert np.array_equal(getattr(one, curve), getattr(other, curve))


@pytest.mark.parametrize(
    ("task", "merging"),
    [(TASK, True), (Task("sgc", "default"), False)],
    ids=["by levels", "whole graphs"],
)
def test_the_bits_are_those_of_one_process(
    toy: GraphSet,
    lanes: list[Lane],
    epochs_here: list[int],
    linger: Callable[..., None],
    task: Task,
    merging: bool,
    process_of: Callable[[int], int | None],
) -> None:
    expected = fit(toy, task, PROTOCOL, lanes, merging=merging, workers=1)
    assert len(epochs_here) > 2 * PROTOCOL.epochs  # several groups
    epochs_here.clear()
    threads, seen = torch.get_num_threads(), []

    def progress(done: int) -> None:
        linger()
        seen.append(done)

    outcomes = fit(toy, task, PROTOCOL, lanes, merging=merging, workers=2, progress=progress)
    assert_same(outcomes, expected)
    assert len(epochs_here) == PROTOCOL.epochs  # all groups but one were trained elsewhere
    assert seen == sorted(seen)
    assert seen[-1] == PROTOCOL.epochs
    assert torch.get_num_threads() == threads
    assert process_of(os.getpid()) is None


def never_ready(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every process that is started sleep: its end, if waited for, would be an error."""
    never = folder / "never"
    never.write_text("#!/bin/sh\nexec sleep 3600\n")
    never.chmod(0o755)
    monkeypatch.setattr("gnn_vpa.processes.sys.executable", str(never))


def test_a_process_that_is_not_ready_is_not_waited_for(
    toy: GraphSet,
    lanes: list[Lane],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    process_of: Callable[[int], int | None],
) -> None:
    expected = fit(toy, TASK, PROTOCOL, lanes, workers=1)
    never_ready(tmp_path, monkeypatch)
    monkeypatch.setattr("gnn_vpa.training.turns.TURN_S", 0.0)  # groups take turns by epochs
    assert_same(fit(toy, TASK, PROTOCOL, lanes, workers=5), expected)
    assert process_of(os.getpid()) is None


def test_a_process_goes_on_with_a_group_that_has_had_its_turn(
    toy: GraphSet,
    lanes: list[Lane],
    epochs_here: list[int],
    linger: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gnn_vpa.training.turns.TURN_S", 0.0)
    expected = fit(toy, TASK, PROTOCOL, lanes, workers=1)
    in_all = len(epochs_here)
    epochs_here.clear()
    may_be_ready, receive, seen = threading.Event(), Connection.recv_bytes, []

    def received(link: Any) -> bytes:
        content = receive(link)
        if content == b"ready":
            may_be_ready.wait(WAIT_S)
        return content

    def progress(done: int) -> None:
        seen.append(done)
        if len(seen) == 3:  # the first group is at its second epoch, the second has had its first
            may_be_ready.set()
            linger()

    monkeypatch.setattr(Connection, "recv_bytes", received)
    outcomes = fit(toy, TASK, PROTOCOL, lanes, workers=2, progress=progress)
    assert_same(outcomes, expected)
    assert len(epochs_here) == PROTOCOL.epochs + 1
    assert len(seen) == in_all  # no epoch was trained twice


class Killed(Exception):
    """Stands for the end of the process."""


def test_what_all_have_done_is_kept(
    toy: GraphSet,
    lanes: list[Lane],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    epochs_here: list[int],
    linger: Callable[..., None],
    process_of: Callable[[int], int | None],
) -> None:
    monkeypatch.setattr("gnn_vpa.training.checkpoint._PAUSE", 0.0)
    expected = fit(toy, TASK, PROTOCOL, lanes, workers=1)
    in_all, path, seen = len(epochs_here), tmp_path / "state.pt", []

    def stop(done: int) -> None:
        linger()
        seen.append(done)
        if len(seen) == 1 + PROTOCOL.epochs + 2:
            raise Killed  # one epoch was run here; elsewhere a whole group, and two of another

    with pytest.raises(Killed):
        fit(toy, TASK, PROTOCOL, lanes, workers=2, checkpoint=path, progress=stop)
    assert process_of(os.getpid()) is None
    epochs_here.clear()
    outcomes = fit(toy, TASK, PROTOCOL, lanes, workers=1, checkpoint=path)
    assert_same(outcomes, expected)
    assert len(epochs_here) == in_all - len(seen)


def test_what_a_group_has_come_to_in_its_turn_is_kept(
    toy: GraphSet,
    lanes: list[Lane],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    epochs_here: list[int],
) -> None:
    monkeypatch.setattr("gnn_vpa.training.turns.TURN_S", 0.0)
    expected = fit(toy, TASK, PROTOCOL, lanes, workers=1)
    in_all, path, seen = len(epochs_here), tmp_path / "state.pt", []

    def stop(done: int) -> None:
        seen.append(done)
        if len(seen) == 3:
            raise Killed  # two groups have had a turn, and the first is in its second

    with monkeypatch.context() as patch:
        never_ready(tmp_path, patch)
        with pytest.raises(Killed):
            fit(toy, TASK, PROTOCOL, lanes, workers=2, checkpoint=path, progress=stop)
    epochs_here.clear()
    assert_same(fit(toy, TASK, PROTOCOL, lanes, workers=1, checkpoint=path), expected)
    assert len(epochs_here) == in_all - 2


def test_an_exception_elsewhere_is_raised_here(
    toy: GraphSet,
    lanes: list[Lane],
    linger: Callable[..., None],
    process_of: Callable[[int], int | None],
) -> None:
    split = lanes[-1].split
    lanes[-1] = lanes[-1]._replace(split=split._replace(train=split.train + toy.num_graphs))
    with pytest.raises(IndexError, match="out of bounds") as caught:
        fit(toy, TASK, PROTOCOL, lanes, workers=2, progress=linger)
    assert "In a process beside this one" in str(caught.value.__notes__)
    assert process_of(os.getpid()) is None


def test_an_exception_that_cannot_travel_keeps_its_message() -> None:
    class Local(Exception):
        pass

    error = pickle.loads(workers._pickled(Local("the message")))
    assert str(error) == "Local: the message"
    assert isinstance(error, GnnVpaError)


def test_what_a_killed_process_was_at_is_trained_by_the_others(
    toy: GraphSet,
    lanes: list[Lane],
    process_of: Callable[[int], int | None],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gnn_vpa.training.checkpoint._PAUSE", 0.0)
    expected = fit(toy, TASK, PROTOCOL, lanes, workers=1)
    begun, receive = threading.Event(), Connection.recv_bytes
    killed: list[int] = []

    def received(link: Any) -> bytes:
        content = receive(link)
        if content != b"ready":
            begun.set()  # the other process has reported its first epoch
        return content

    def kill(_: int) -> None:
        begun.wait(WAIT_S)
        if not killed:
            pid = process_of(os.getpid())
            assert pid is not None
            killed.append(pid)
            os.kill(killed[0], signal.SIGKILL)
            until(lambda: not is_alive(killed[0]))

    monkeypatch.setattr(Connection, "recv_bytes", received)
    outcomes = fit(toy, TASK, PROTOCOL, lanes, workers=2, progress=kill)
    assert_same(outcomes, expected)
    assert "most likely because memory ran out: going on with 1 process." in caplog.text


def test_a_group_that_ends_one_process_after_the_other_is_given_up() -> None:
    job, kills = workers.Job(0, ()), Counter[int]()
    for _ in range(workers.MAX_KILLS - 1):
        assert workers._again(job, {0: {"epoch": 3}}, kills) == job._replace(state={"epoch": 3})
    with pytest.raises(workers.Killed, match="one after the other"):
        workers._again(job, {}, kills)


SCRIPT = """
import torch
from torch_geometric.data import Data
from gnn_vpa.graphs import GraphSet, splits
from gnn_vpa.training import Lane, Protocol, Task, fit

torch.rand(500, 500) @ torch.rand(500, 500)  # threads are at work, and nothing guards this script
line = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
graphs = [Data(edge_index=line, num_nodes=3 + i % 2, y=i % 2) for i in range(40)]
data = GraphSet.from_pyg(graphs, name="lines")
lanes = [Lane(fold, split) for fold, split in enumerate(splits(data.y, folds=4))]
fit(data, Task("gin", "vpa"), Protocol(epochs=10**6), lanes, workers=2)
"""


def test_none_outlives_a_script_that_is_interrupted(
    tmp_path: Path, process_of: Callable[[int], int | None]
) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    script = subprocess.Popen([sys.executable, path], env=environment, stderr=subprocess.PIPE)
    try:
        other = until(lambda: process_of(script.pid))
        script.send_signal(signal.SIGINT)
        assert script.wait(WAIT_S) != 0
        until(lambda: not is_alive(other))
        assert b"KeyboardInterrupt" in script.stderr.read()
    finally:
        script.kill()
        script.wait()
        script.stderr.close()


LIGHT = """
import sys
import torch
from gnn_vpa.graphs import Split, load
from gnn_vpa.training import Lane, Protocol, Task, fit, workers

data = load("MUTAG")
lanes = [Lane(fold, Split(*torch.arange(90).view(3, 30).roll(fold, 0))) for fold in range(2)]
for model in ("gin", "gat"):
    fit(data, Task(model, "vpa"), Protocol(epochs=1), lanes, workers=1)
print([name for name in ("torch_geometric", "torch._dynamo", "sklearn") if name in sys.modules])
"""


def test_a_process_loads_nothing_slow_that_a_training_does_not_need() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIGHT],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_none_outlives_the_process_it_works_for(
    how: signal.Signals,
    process_of: Callable[[int], int | None],
    in_process: Callable[..., ForkServerProcess],
) -> None:
    process = in_process(exec, SCRIPT, {"__name__": "__main__"})
    try:
        other = until(lambda: process_of(process.pid or 0))
        os.kill(process.pid or 0, how)
        process.join(WAIT_S)
        assert process.exitcode == -how
        until(lambda: not is_alive(other))
    finally:
        process.kill()


def test_there_is_no_fewer_than_one(toy: GraphSet, lanes: list[Lane]) -> None:
    with pytest.raises(UsageError, match="workers"):
        fit(toy, TASK, PROTOCOL, lanes, workers=0)


@pytest.mark.parametrize(
    ("asked", "folds", "started"), [(None, 5, 0), (1, 5, 0), (2, 5, 1), (4, 5, 1), (2, 1, 0)]
)
def test_a_process_that_is_needed_starts_before_the_tables_are_made(
    toy: GraphSet,
    lanes: list[Lane],
    monkeypatch: pytest.MonkeyPatch,
    asked: int | None,
    folds: int,
    started: int,
) -> None:
    class TablesError(Exception):
        pass

    def ahead(count: int) -> Any:
        counted.append(count)
        return real(0)

    def tables(*args: Any) -> None:
        raise TablesError

    counted: list[int] = []
    real = workers.started_ahead
    monkeypatch.setattr("gnn_vpa.training.trainer.started_ahead", ahead)
    monkeypatch.setattr("gnn_vpa.training.trainer._family", tables)
    with pytest.raises(TablesError):
        fit(toy, TASK, PROTOCOL, lanes[:folds], workers=asked)
    assert counted == [started]


def test_a_process_that_was_started_before_is_used_and_no_other(
    toy: GraphSet, lanes: list[Lane], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = fit(toy, TASK, PROTOCOL, lanes, workers=1)
    with workers.started_ahead(1) as ahead:
        monkeypatch.setattr(workers, "_started", None)
        outcomes = fit(toy, TASK, PROTOCOL, lanes, workers=2, ahead=ahead)
        assert not ahead
    assert [own.test_score for own in outcomes] == [own.test_score for own in expected]


def test_a_process_that_was_started_in_vain_ends() -> None:
    with workers.started_ahead(1) as ahead:
        process = ahead[0].process
        assert process.poll() is None
    assert process.returncode is not None
