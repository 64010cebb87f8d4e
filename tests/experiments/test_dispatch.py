"""What is sent out comes back once, whatever becomes of the machines; without any Ray."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gnn_vpa.errors import GnnVpaError
from gnn_vpa.experiments import (
    Cell,
    Progress,
    expand,
    protocols,
    read_folds,
    read_provenance,
    run_grid,
    train_group,
    try_lock,
)
from gnn_vpa.experiments.dispatch import (
    Event,
    Finished,
    Lost,
    Pool,
    Raised,
    Told,
    Worker,
)
from gnn_vpa.experiments.identity import identify
from gnn_vpa.experiments.provenance import Where
from gnn_vpa.experiments.slot import Job, Place, Slot
from gnn_vpa.experiments.store import query
from gnn_vpa.graphs import GraphSet
from gnn_vpa.training import Protocol

from .conftest import FakeFit

_PLACE = Place(Where("a-machine", None, {}), "cpu", "0")


@dataclass
class FakePool:
    """Workers of this very process: each job has the next of the fates, then all are well."""

    fates: Sequence[str] = ()
    count: int = 2

    def __post_init__(self) -> None:
        self.next = deque(self.fates)
        self.workers: dict[Worker, Slot] = {}
        self.jobs: list[tuple[Worker, Job]] = []
        self.sent: list[str] = []
        self.news: list[Event] = []
        self.refused: set[str] = set()
        self.started = 0

    def grow(self, wanted: int) -> None:
        while len(self.workers) < min(self.count, wanted):
            worker = Worker(f"worker {self.started}", f"node {self.started}")
            worker.place = _PLACE
            self.workers[worker] = Slot("cpu")
            self.started += 1

    def idle(self) -> Sequence[Worker]:
        return [worker for worker in self.workers if worker.group is None]

    def send(self, worker: Worker, job: Job, graphs: GraphSet) -> None:
        assert all(cell.source == "" for cell in job.group.cells)  # no data travel in cells
        self.sent.append(str(job.group))
        slot = self.workers[worker]
        fate = self.next.popleft() if self.next else "well"
        self.news.append(Told(worker, slot.news()))
        if fate == "well":
            try:
                self.news.append(Finished(worker, slot.train(job, graphs)))
            except Exception as error:
                self.news.append(Raised(worker, error))
            return
        if fate == "device":
            self.news.append(Raised(worker, train_group.DeviceLostError("cuda cannot be used")))
            return
        self.workers.pop(worker)
        self.news.append(Lost(worker, "it was taken away", with_node=fate == "node"))

    def events(self, seconds: float) -> Sequence[Event]:
        found, self.news = self.news, []
        return found

    def refuse(self, node: str) -> None:
        self.refused.add(node)
        self.workers = {w: slot for w, slot in self.workers.items() if w.node != node}


@dataclass
class FakeCluster:
    fates: Sequence[str] = ()
    count: int = 2
    pools: list[FakePool] = field(default_factory=list)

    def device(self, asked: str) -> str:
        return "cpu"

    def slots(self, device: str) -> int:
        return self.count

    @contextmanager
    def pool(self, device: str, need: int, cells: Sequence[Cell]) -> Iterator[Pool]:
        self.pools.append(FakePool(self.fates, self.count))
        yield self.pools[-1]


class Notes(Progress):
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.finished: list[str] = []
        self.at: list[tuple[str, str]] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def finish(self, cell: Cell, *_: Any) -> None:
        self.finished.append(str(cell))

    def tell(self, worker: str, group: Any, *_: Any, **__: Any) -> None:
        self.at.append((worker, str(group)))


def _cells(**changes: Any) -> list[Cell]:
    asked: dict[str, Any] = {"protocol": Protocol(epochs=3), "folds": 4, "seeds": [0, 1]}
    return expand(["MUTAG"], ["gin"], ["sum", "vpa"], **(asked | changes)).cells


def _rows(out: Path) -> pd.DataFrame:
    """All that is recorded of the folds, but for where and how long."""
    left_out = ("seconds", "cell", "device")
    found = read_folds(out).sort_values(["aggregation", "seed", "fold"])
    return found.drop(columns=[n for n in left_out if n in found]).reset_index(drop=True)


@given(
    st.lists(st.sampled_from(["well", "node", "worker", "device"]), max_size=12),
    st.integers(1, 5),
)
@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_every_cell_is_recorded_once_or_named_whatever_is_lost(
    fake_fit: FakeFit, fates: list[str], count: int
) -> None:
    with TemporaryDirectory() as folder:
        out = Path(folder)
        named = ""
        try:
            run_grid(_cells(), out, cluster=FakeCluster(fates, count), progress=Notes())
        except GnnVpaError as error:
            named = str(error)
        recorded = query(out, "SELECT key, count(*) AS folds FROM cells JOIN folds ON id = cell "
                              "GROUP BY key")  # fmt: skip
        assert all(row["folds"] == 4 for row in recorded)
        missing = [c for c in identify(_cells()).cells if c.key not in {r["key"] for r in recorded}]
        assert all(str(cell) in named for cell in missing)
        assert bool(missing) == bool(named)
        assert not (out / "checkpoints").exists() or not any((out / "checkpoints").iterdir())


def test_rows_are_those_of_a_run_on_this_machine(fake_fit: FakeFit, tmp_path: Path) -> None:
    run_grid(_cells(), tmp_path / "here", device="cpu", workers=1)
    run_grid(_cells(), tmp_path / "there", cluster=FakeCluster(["node", "well", "worker"]))
    pd.testing.assert_frame_equal(_rows(tmp_path / "here"), _rows(tmp_path / "there"))


def test_a_loss_is_said_and_the_group_goes_out_again(fake_fit: FakeFit, tmp_path: Path) -> None:
    progress, cluster = Notes(), FakeCluster(["worker"], count=1)
    run_grid(_cells(seeds=[0]), tmp_path, cluster=cluster, progress=progress)
    (lost,) = [note for note in progress.notes if "was lost" in note]
    first = cluster.pools[0].sent[0]
    assert lost == (
        f"worker 0 was lost while it trained {first} (it was taken away): that goes out again."
    )
    assert cluster.pools[0].sent[1] == first
    assert sorted(progress.finished) == ["GIN+sum on MUTAG", "GIN+vpa on MUTAG"]


def test_a_group_that_kills_its_processes_is_left_out_and_named(
    fake_fit: FakeFit, tmp_path: Path
) -> None:
    progress = Notes()
    with pytest.raises(GnnVpaError, match=r"on MUTAG: every process .* is kept.* same command"):
        run_grid(
            _cells(seeds=[0]), tmp_path, cluster=FakeCluster(["worker"] * 3, 1), progress=progress
        )
    assert len(read_folds(tmp_path)) == 4  # the other cell
    run_grid(_cells(seeds=[0]), tmp_path, cluster=FakeCluster())
    assert len(read_folds(tmp_path)) == 8


def test_a_node_whose_device_fails_is_used_no_more(fake_fit: FakeFit, tmp_path: Path) -> None:
    cluster = FakeCluster(["device"], count=1)
    run_grid(_cells(), tmp_path, cluster=cluster)
    assert cluster.pools[0].refused == {"node 0"}
    assert len(read_folds(tmp_path)) == 16


def test_an_error_of_a_training_ends_the_run_and_is_not_tried_again(
    fake_fit: FakeFit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fit(*args: Any, **settings: Any) -> Any:
        if args[1][0].aggr == "sum":
            raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")
        return fake_fit(*args, **settings)

    monkeypatch.setattr(train_group, "fit", fit)
    cluster = FakeCluster(count=4)
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        run_grid(_cells(), tmp_path, cluster=cluster)
    # What was finished in the same moment is recorded before.
    assert set(read_folds(tmp_path)["aggregation"]) == {"vpa"}
    assert sum("sum" in sent for sent in cluster.pools[0].sent) == 2


def test_the_choices_are_made_here_and_final_runs_go_out(fake_fit: FakeFit, tmp_path: Path) -> None:
    cells = _cells(seeds=[0], protocol=protocols({"lr": [0.01, 0.001], "epochs": 3}), final_runs=2)
    run_grid(cells, tmp_path / "here", device="cpu", workers=1)
    cluster = FakeCluster(["worker"])
    run_grid(cells, tmp_path / "there", cluster=cluster)
    pd.testing.assert_frame_equal(_rows(tmp_path / "here"), _rows(tmp_path / "there"))
    assert [sent for sent in cluster.pools[0].sent if "chosen from 2" in sent] == (
        cluster.pools[0].sent[-2:]
    )


def test_cells_that_another_process_runs_are_waited_for(
    fake_fit: FakeFit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = identify(_cells(seeds=[0])).cells
    lock = try_lock(tmp_path / "checkpoints" / f"{cells[0].key}.lock")
    assert lock.__enter__()

    class Waiting(Notes):
        def wait(self, waiting: Any) -> None:
            assert self.finished == [str(cells[1])]
            lock.__exit__(None, None, None)

    progress = Waiting()
    run_grid(cells, tmp_path, cluster=FakeCluster(), progress=progress)
    assert sorted(progress.finished) == sorted(map(str, cells))


def test_long_groups_go_out_first(fake_fit: FakeFit, tmp_path: Path) -> None:
    cells = [cell for n in (3, 30, 10) for cell in _cells(seeds=[0], protocol=Protocol(epochs=n))]
    cluster = FakeCluster(count=1)
    run_grid(cells, tmp_path, cluster=cluster)
    lengths = query(tmp_path, "SELECT epochs FROM cells ORDER BY id")
    assert [row["epochs"] for row in lengths] == [30, 30, 10, 10, 3, 3]


def test_provenance_names_the_node_of_each_cell(fake_fit: FakeFit, tmp_path: Path) -> None:
    run_grid(_cells(), tmp_path, cluster=FakeCluster(), configuration={"command": "run"})
    hosts = query(
        tmp_path, "SELECT DISTINCT host FROM sessions JOIN cells ON session = sessions.id"
    )
    assert {row["host"].partition(" (")[2] for row in hosts} == {
        "Ray node node 0)",
        "Ray node node 1)",
    }
    provenance: Any = read_provenance(tmp_path)
    sessions = list(provenance["sessions"].values())
    assert all(session["configuration"] == {"command": "run"} for session in sessions)
    assert all(session["finished"] for session in sessions)


def test_progress_is_told_who_is_at_what(fake_fit: FakeFit, tmp_path: Path) -> None:
    progress = Notes()
    run_grid(_cells(seeds=[0]), tmp_path, cluster=FakeCluster(), progress=progress)
    assert {("worker 0", "GIN+sum on MUTAG"), ("worker 0", "None")} <= set(progress.at) or {
        ("worker 0", "GIN+vpa on MUTAG"),
        ("worker 0", "None"),
    } <= set(progress.at)


def test_models_come_from_nodes_that_do_not_see_the_folder(
    tmp_path: Path, toy: GraphSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = expand([toy], ["gin"], ["vpa"], protocol=Protocol(epochs=2), folds=3).cells
    run_grid(cells, tmp_path / "here", device="cpu", workers=1, keep_models=True)
    monkeypatch.setattr(Job, "of", _elsewhere(Job.of, tmp_path))
    run_grid(cells, tmp_path / "there", cluster=FakeCluster(), keep_models=True)
    weights = [sorted((tmp_path / name).rglob("*.safetensors")) for name in ("here", "there")]
    assert len(weights[0]) == len(weights[1]) == 3
    for here, there in zip(*weights, strict=True):
        assert here.relative_to(tmp_path / "here") == there.relative_to(tmp_path / "there")
        assert here.read_bytes() == there.read_bytes()


def _elsewhere(make: Callable[..., Job], folder: Path) -> Callable[..., Job]:
    """Let jobs name a folder that the node does not see."""
    return lambda *args: replace(make(*args), out=folder / "of another machine")
