"""A run that is killed, and two runs at once: the same rows as if nothing had happened."""

import os
import random
import signal
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pandas as pd
import pytest

from gnn_vpa.experiments import expand, finished, protocols, read_curves, read_folds, run_grid
from gnn_vpa.experiments.store import query
from gnn_vpa.training import Protocol

_KILLS = 20
_CELLS = [
    *expand(["MUTAG"], ["gin", "sgc"], protocol=Protocol(epochs=2), folds=2, seeds=range(2)).cells,
    *expand(
        ["MUTAG"],
        ["sgc"],
        ["vpa"],
        options={"K": [2, 3]},
        protocol=protocols({"lr": "0.01,0.001", "epochs": 2}),
        folds=2,
        final_runs=2,
    ).cells,
]

Start = Callable[[Path], ForkServerProcess]


@pytest.fixture(scope="module")
def start(in_process: Callable[..., ForkServerProcess]) -> Start:
    """Start a process that runs the cells."""
    return partial(in_process, run_grid, _CELLS, device="cpu")


@pytest.fixture(scope="module")
def undisturbed(start: Start, tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    out = tmp_path_factory.mktemp("undisturbed")
    _join(start(out))
    return _rows(out)


def _join(process: ForkServerProcess) -> None:
    process.join(300)
    assert process.exitcode == 0


def _rows(out: Path) -> pd.DataFrame:
    """All that must not depend on how a run went."""
    keys = ["model", "aggregation", "options", "protocol", "seed", "fold"]
    both = [read_folds(out), read_folds(out, candidates=True).assign(chosen="tried")]
    folds = pd.concat(both).drop(columns="seconds").set_index(keys).sort_index()
    assert not folds.index.has_duplicates
    curves = read_curves(out).set_index([*keys, "epoch"]).sort_index()
    return folds.join(curves[["train_loss", "val_score", "test_score"]].add_suffix("_curve"))


def _sessions(out: Path) -> dict[str, int]:
    """Which session has recorded each finished cell."""
    if not finished(out):
        return {}
    return {row["key"]: row["session"] for row in query(out, "SELECT key, session FROM cells")}


def test_a_run_killed_at_twenty_moments_gives_the_same_rows(
    start: Start, undisturbed: pd.DataFrame, tmp_path: Path
) -> None:
    chance = random.Random(0)
    kills, run = 0, 0
    before: dict[str, int] = {}
    while kills < _KILLS or before or run == 0:
        out = tmp_path / str(run)
        process = start(out)
        if kills < _KILLS:
            # Moments of its progress, since a slow machine would not come far in a time.
            enough = len(before) + chance.choice([0, 0, 1, 2])
            while process.is_alive() and len(_sessions(out)) < enough:
                time.sleep(0.01)
            process.join(chance.uniform(0.0, 0.3))
        else:
            _join(process)
        if process.is_alive() and process.pid is not None:
            os.kill(process.pid, chance.choice([signal.SIGKILL, signal.SIGINT]))
            process.join(300)
            kills += process.exitcode != 0
        after = _sessions(out)
        assert before.items() <= after.items()  # nothing is lost or run twice
        before = after
        if process.exitcode == 0:
            pd.testing.assert_frame_equal(_rows(out), undisturbed, check_exact=True)
            assert [path.name for path in out.iterdir()] == ["results.sqlite"]
            before, run = {}, run + 1


def test_two_processes_at_once_give_the_same_rows(
    start: Start, undisturbed: pd.DataFrame, tmp_path: Path
) -> None:
    both = start(tmp_path), start(tmp_path)
    for process in both:
        _join(process)
    pd.testing.assert_frame_equal(_rows(tmp_path), undisturbed, check_exact=True)
    assert set(_sessions(tmp_path).values()) <= {1, 2}
    assert [path.name for path in tmp_path.iterdir()] == ["results.sqlite"]
