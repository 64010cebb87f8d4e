"""Grids on real Ray nodes: two on this machine, which are killed now and then."""

import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

import gnn_vpa
from gnn_vpa.errors import GnnVpaError, UsageError
from gnn_vpa.experiments import (
    Cell,
    Progress,
    expand,
    protocols,
    read_curves,
    read_folds,
    run_grid,
)
from gnn_vpa.experiments.asked import model_list
from gnn_vpa.experiments.ray_backend import RayCluster, connected
from gnn_vpa.experiments.store import query
from gnn_vpa.graphs import GraphSet
from gnn_vpa.training import Protocol

# Looked for and not imported: that is for the one worker that needs it.
pytestmark = pytest.mark.skipif(
    find_spec("ray") is None, reason="Ray is not installed: pip install 'gnn-vpa[ray]'"
)

_WAIT_S = 300.0  # until something is taken for stuck: imports alone take long on a busy machine

# A model that says when it is made on a node, waits there until it may go on, and may fail there.
_GATED = """
import os, time
from pathlib import Path
from torch import nn
from torch_geometric.nn import GINConv, global_add_pool
from helper import linear

FOLDER, HERE = Path({folder!r}), {here}

class Net(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv = GINConv(linear(in_channels, out_channels))

    def forward(self, x, edge_index, batch):
        if os.getpid() != HERE and (FOLDER / "fail").exists():
            with (FOLDER / "failed").open("a") as file:
                file.write("x")
            raise ValueError("these shapes do not fit")
        return global_add_pool(self.conv(x, edge_index), batch)

def make(in_channels, out_channels, number=0):
    if os.getpid() != HERE:
        (FOLDER / f"at-{{number}}-{{os.getpid()}}").touch()
        while (FOLDER / "closed").exists():
            time.sleep(0.02)
    return Net(in_channels, out_channels)
"""


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """A cluster of two nodes with a core each; the head trains nothing."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        # Ray's workers give way to all others (nice 15): beside tests on every core they starve.
        patch.setenv("RAY_worker_niceness", "0")
        cluster = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}
        )
        try:
            cluster.add_node(num_cpus=1)
            cluster.add_node(num_cpus=1, num_gpus=1)  # a GPU that torch does not find
            yield cluster
        finally:
            cluster.shutdown()


@pytest.fixture(scope="module")
def ray_cluster(nodes: Any) -> Iterator[RayCluster]:
    with connected(nodes.address) as cluster:
        yield cluster


@pytest.fixture
def gated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Load the model above from files that no node has."""
    folder = tmp_path / "only here"
    folder.mkdir()
    (folder / "helper.py").write_text("from torch import nn\nlinear = nn.Linear\n")
    (folder / "gated.py").write_text(_GATED.format(folder=str(tmp_path), here=os.getpid()))
    with monkeypatch.context() as patch:
        patch.syspath_prepend(str(folder))
        module = importlib.import_module("gated")
        yield module
    for name in ("gated", "helper"):
        sys.modules.pop(name, None)


class Notes(Progress):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def _until(is_so: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + _WAIT_S
    while not (found := is_so()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def _same(one: Path, other: Path) -> None:
    """Compare all that is recorded of folds and epochs, to the bit, but for seconds and hosts."""
    by = ["dataset", "model", "aggregation", "options", "protocol", "seed", "fold"]
    frames = [read_folds(path).sort_values(by).reset_index(drop=True) for path in (one, other)]
    pd.testing.assert_frame_equal(*(f.drop(columns="seconds", errors="ignore") for f in frames))
    curves = [read_curves(path) for path in (one, other)]
    by = [name for name in [*by, "epoch"] if name in curves[0]]
    frames = [each.sort_values(by).reset_index(drop=True) for each in curves]
    pd.testing.assert_frame_equal(*frames)


def test_rows_are_those_of_a_run_without_ray_to_the_bit(
    toy: GraphSet, gated: ModuleType, ray_cluster: RayCluster, tmp_path: Path
) -> None:
    grid = protocols({"lr": [0.01, 0.001], "epochs": 2})
    cells = [
        *expand([toy], ["gin", "sgc"], ["vpa"], protocol=Protocol(epochs=3), folds=3).cells,
        *expand([toy], model_list(gated.make), protocol=Protocol(epochs=2), folds=3).cells,
        *expand([toy], ["sgc"], ["vpa"], protocol=grid, folds=3, final_runs=2).cells,
        *expand([toy], [], baselines=["majority"], folds=3).cells,
    ]
    for name, cluster in (("here", None), ("there", ray_cluster)):
        run_grid(cells, tmp_path / name, device="cpu", keep_models=True, cluster=cluster)
    _same(tmp_path / "here", tmp_path / "there")
    here, there = (_weights(tmp_path / name / "models") for name in ("here", "there"))
    assert here == there
    assert here
    hosts = query(tmp_path / "there", "SELECT DISTINCT host, device FROM sessions")
    assert 1 <= len(hosts) <= 2
    assert all("Ray node" in row["host"] and "cpu" in row["device"] for row in hosts)
    assert {path.name for path in (tmp_path / "there").iterdir()} == {"results.sqlite", "models"}


def test_killed_nodes_and_workers_lose_nothing_and_nodes_that_join_are_used(
    toy: GraphSet, gated: ModuleType, nodes: Any, ray_cluster: RayCluster, tmp_path: Path
) -> None:
    cells = _gated_cells(toy, gated, 3)
    run_grid(cells, tmp_path / "here", device="cpu")
    (tmp_path / "closed").touch()
    progress, failures = Notes(), list[BaseException]()

    def run() -> None:
        try:
            run_grid(
                cells, tmp_path / "there", device="cpu", progress=progress, cluster=ray_cluster
            )
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        begun = _until(lambda: len(found := _begun(tmp_path)) == 2 and found)
        os.kill(next(iter(begun)), signal.SIGKILL)
        _until(lambda: len(_begun(tmp_path)) == 3)  # another process has taken its place
        victim = next(n for n in nodes.worker_nodes if not n._ray_params.num_gpus)
        nodes.remove_node(victim, allow_graceful=False)
        nodes.add_node(num_cpus=1)
        _until(lambda: len(_begun(tmp_path)) == 4 or failures)
    finally:
        (tmp_path / "closed").unlink()
        thread.join(_WAIT_S)
    assert failures == []
    _same(tmp_path / "here", tmp_path / "there")
    lost = [note for note in progress.notes if "was lost" in note]
    assert len(lost) == 2
    assert sum("its process was killed" in note for note in lost) == 1
    assert all(note.endswith(": that goes out again.") for note in lost)


def test_the_same_run_goes_on_after_its_process_was_killed(
    gated: ModuleType, nodes: Any, ray_cluster: RayCluster, tmp_path: Path
) -> None:
    asked: dict[str, Any] = {
        "epochs": 2,
        "folds": 3,
        "out": str(tmp_path / "there"),
        "ray": nodes.address,
    }
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys\n"
        f"sys.path.insert(0, {str(tmp_path / 'only here')!r})\n"
        "import gated\nimport gnn_vpa\ngated.HERE = os.getpid()\n"
        "if __name__ == '__main__':\n"
        f"    gnn_vpa.run('MUTAG', ['sgc', gated.make], 'default', device='cpu', **{asked})\n"
    )
    (tmp_path / "closed").touch()
    process = subprocess.Popen([sys.executable, str(script)], env=_environment())
    try:
        _until(lambda: _begun(tmp_path) and len(_finished(tmp_path / "there")) == 1)
    finally:
        process.kill()
        process.wait()
    before = _finished(tmp_path / "there")
    (tmp_path / "closed").unlink()
    gnn_vpa.run("MUTAG", ["sgc", gated.make], "default", device="cpu", **asked)
    after = _finished(tmp_path / "there")
    assert len(after) == 2
    assert before.items() <= after.items()  # what was finished was not run again


def test_an_error_of_a_training_is_that_of_a_run_without_ray_and_is_not_tried_again(
    toy: GraphSet, gated: ModuleType, ray_cluster: RayCluster, tmp_path: Path
) -> None:
    (tmp_path / "fail").touch()
    cells = _gated_cells(toy, gated, 1)
    with pytest.raises(Exception, match="these shapes do not fit") as there:
        run_grid(cells, tmp_path / "there", device="cpu", cluster=ray_cluster)
    assert (tmp_path / "failed").read_text() == "x"
    vars(gated)["HERE"] = 0  # now this process is like any other
    with pytest.raises(type(there.value), match="these shapes do not fit"):
        run_grid(cells, tmp_path / "here", device="cpu")


def test_a_gpu_that_torch_does_not_find_is_not_trained_on(
    toy: GraphSet, ray_cluster: RayCluster, tmp_path: Path
) -> None:
    cells = expand([toy], ["sgc"], ["vpa"], protocol=Protocol(epochs=2), folds=3).cells
    assert ray_cluster.device("auto") == "cuda"
    with pytest.raises(GnnVpaError, match=r"no node .* can be used: Ray counts a GPU there"):
        run_grid(cells, tmp_path, device="cuda", cluster=ray_cluster)
    with pytest.raises(UsageError, match="Ray says which GPU"):
        run_grid(cells, tmp_path, device="cuda:1", cluster=ray_cluster)


def _gated_cells(toy: GraphSet, gated: ModuleType, count: int) -> list[Cell]:
    return expand(
        [toy],
        model_list(gated.make),
        protocol=Protocol(epochs=2),
        folds=2,
        options={"number": list(range(count))},
    ).cells


def _weights(folder: Path) -> dict[str, bytes]:
    found = folder.rglob("*.safetensors")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def _begun(folder: Path) -> set[int]:
    """Return the processes in which the model was made."""
    return {int(path.name.split("-")[2]) for path in folder.glob("at-*")}


def _finished(out: Path) -> dict[str, int]:
    if not (out / "results.sqlite").exists():
        return {}
    return {row["key"]: row["session"] for row in query(out, "SELECT key, session FROM cells")}


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p.endswith("src"))}
