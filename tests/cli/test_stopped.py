"""SIGTERM, as batch systems and containers send it: what was trained is kept, and goes on."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pandas as pd
import pytest

from gnn_vpa.experiments import read_curves, read_folds

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
_WAIT_S = 300.0  # until a process is taken for stuck: imports alone take long on a busy machine
_RUN = [
    *("run", "MUTAG", "--model", "sgc", "--aggr", "vpa", "--seeds", "0,1,2,3", "--folds", "2"),
    *("--device", "cpu", "--workers", "2"),
]
_QUICK = [*_RUN, "--epochs", "300"]  # some seconds for each seed
_ENDLESS = [*_RUN, "--epochs", "100000"]


@contextmanager
def _started(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "gnn_vpa", *arguments]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, env=environment, text=True, **streams)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _training(out: Path) -> list[int]:
    """Return the processes that have trained an epoch, by what `gnn-vpa watch` reads."""
    journals = [json.loads(path.read_text()) for path in out.glob("live/*.now.json")]
    return [each["pid"] for each in journals if any(at["epoch"] for at in each["workers"])]


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def _rows(out: Path) -> pd.DataFrame:
    keys = ["seed", "fold"]
    folds = read_folds(out).drop(columns="seconds").set_index(keys).sort_index()
    curves = read_curves(out).set_index([*keys, "epoch"]).sort_index()
    return folds.join(curves[["train_loss", "val_score"]].add_suffix("_curve"))


def _terminated(command: Sequence[str], out: Path, to: str) -> tuple[int, str]:
    """Start a run, terminate some of its two processes as they train, and wait for its end."""
    with _started(*command, "--out", str(out)) as process:
        _until(lambda: len(_training(out)) == 2)
        (worker,) = {*_training(out)} - {process.pid}
        asked = {"parent": [process.pid], "worker": [worker], "all": [worker, process.pid]}
        for pid in asked[to] * 2:  # `timeout` sends it twice
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        text = process.communicate(timeout=_WAIT_S)[0]
        return process.returncode, text


@pytest.mark.parametrize("to", ["parent", "all"])
def test_a_run_that_is_terminated_keeps_all_states(to: str, tmp_path: Path) -> None:
    code, text = _terminated(_ENDLESS, tmp_path, to)
    assert code == 128 + signal.SIGTERM, text
    assert text.endswith("kept; type the same command again to go on.\n")
    assert [path.suffix for path in tmp_path.glob("checkpoints/*")] == [".pt", ".pt"]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """The rows of a run that nobody has ended."""
    out = tmp_path_factory.mktemp("undisturbed")
    with _started(*_QUICK, "--out", str(out)) as process:
        assert process.wait(_WAIT_S) == 0
    return _rows(out)


@pytest.mark.parametrize("to", ["worker", "all"])
def test_a_run_that_was_terminated_goes_on_to_the_same_rows(
    to: str, undisturbed: pd.DataFrame, tmp_path: Path
) -> None:
    code, text = _terminated(_QUICK, tmp_path, to)
    if to == "all":
        assert code == 128 + signal.SIGTERM, text
        with _started(*_QUICK, "--out", str(tmp_path)) as again:
            code, text = again.wait(_WAIT_S), ""
    else:
        assert "was ended by SIGTERM" in text
    assert code == 0, text
    pd.testing.assert_frame_equal(_rows(tmp_path), undisturbed, check_exact=True)


@pytest.mark.parametrize(
    "command",
    [
        ["train", "MUTAG", "--out", "mine", "--tensorboard", "curves", "--epochs", "100000"],
        ["reproduce", "table1", "--only", "gin", "--only", "MUTAG", "--out", "runs"],
    ],
    ids=lambda command: str(command[0]),
)
def test_every_command_that_trains_ends_by_it(
    command: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with _started(*command, "--device", "cpu") as process:
        _until(lambda: any(tmp_path.rglob("*.*")))
        process.send_signal(signal.SIGTERM)
        text = process.communicate(timeout=_WAIT_S)[0]
    assert process.returncode == 128 + signal.SIGTERM, text
    assert "Interrupted." in text
    assert "Traceback" not in text
