"""Many devices: each group is trained once and whole, longest first, whoever trains it.

GPUs are played by threads: what a process does with its order is done by a thread, and `fit` by a
stand-in that notes the device.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, ClassVar, Self

import pandas as pd
import pytest

from gnn_vpa.experiments import (
    Cell,
    Progress,
    Signal,
    Store,
    Team,
    afterwards,
    devices,
    expand,
    grouped,
    identify,
    mps,
    read_folds,
    run_grid,
    runner,
    train_group,
)
from gnn_vpa.experiments.crew import Crew, gather
from gnn_vpa.experiments.ledger import Ledger
from gnn_vpa.experiments.mps import Sharing
from gnn_vpa.experiments.standby import Standby
from gnn_vpa.experiments.store import query
from gnn_vpa.experiments.workers import Order
from gnn_vpa.graphs import GraphSet
from gnn_vpa.training import Protocol, Task

from .conftest import FakeFit

_GRID = ["RDT-B", "MUTAG", "NCI1"]


def _cells(seeds: int = 2) -> list[Cell]:
    protocol = Protocol(epochs=3)
    return expand(_GRID, ["gin", "gcn"], protocol=protocol, folds=2, seeds=range(seeds)).cells


class Trained:
    """What was trained where, as (device, cells) of each call of `fit`."""

    def __init__(self, fake: FakeFit) -> None:
        self._fake, self._lock = fake, threading.Lock()
        self.calls: list[tuple[str, int]] = []
        self.barriers: dict[str, threading.Barrier] = {}

    def __call__(
        self, graphs: GraphSet, tasks: Any, protocols: Any, lanes: Any, **rest: Any
    ) -> Any:
        with self._lock:
            self.calls.append((rest["device"], len(tasks) * len(lanes) // 2))
            outcomes = self._fake(graphs, tasks, protocols, lanes)
        if (barrier := self.barriers.pop(rest["device"], None)) is not None:
            barrier.wait(20)  # nobody is finished before all have begun
        return outcomes


@pytest.fixture
def trained(fake_fit: FakeFit, monkeypatch: pytest.MonkeyPatch) -> Trained:
    """Let three GPUs be there, whose processes are threads."""
    fake = Trained(fake_fit)
    monkeypatch.delenv("GNN_VPA_WORKERS", raising=False)
    monkeypatch.setattr(devices, "_count_gpus", lambda: 3)
    monkeypatch.setattr(afterwards, "initial_signals", lambda *_: [])  # slow, and of no device
    monkeypatch.setattr(runner, "device_name", lambda device: f"{device} (fake)")
    monkeypatch.setattr(runner, "single_thread", lambda _: nullcontext())
    monkeypatch.setattr(runner, "Assistants", Threads)
    monkeypatch.setattr(runner, "_POLL_S", 0.01)
    monkeypatch.setattr(train_group, "fit", fake)
    return fake


class Threads:
    """Stands for `Assistants`: carries orders out by threads."""

    environments: ClassVar[list[Mapping[str, str]]] = []  # of all that were made

    def __init__(
        self,
        orders: Sequence[Order],
        environment: Mapping[str, str],
        *,
        alone: bool,
        standby: Standby,
    ) -> None:
        self.environments.append(environment)
        self._threads = [
            threading.Thread(target=runner.assist, args=(order, Progress())) for order in orders
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for thread in self._threads:
            thread.join()

    def are_at_work(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)


def _rows(out: Path) -> pd.DataFrame:
    keys = ["dataset", "model", "aggregation", "seed", "fold"]
    return read_folds(out).drop(columns=["seconds", "device"]).set_index(keys).sort_index()


@pytest.mark.parametrize(
    ("device", "used"),
    [
        ("cuda", {"cuda:0", "cuda:1", "cuda:2"}),
        ("auto", {"cuda:0", "cuda:1", "cuda:2"}),
        ("cuda:0,cuda:2", {"cuda:0", "cuda:2"}),
        ("cuda:1", {"cuda:1"}),
    ],
)
def test_groups_are_divided_among_the_devices_that_are_named(
    trained: Trained, tmp_path: Path, device: str, used: set[str]
) -> None:
    trained.barriers = dict.fromkeys(used, threading.Barrier(len(used)))
    run_grid(_cells(), tmp_path, device=device)
    assert {device for device, _ in trained.calls} == used
    assert sum(count for _, count in trained.calls) == len(_cells())
    assert len(read_folds(tmp_path)) == 2 * len(_cells())
    recorded = {row["device"] for row in query(tmp_path, "SELECT device FROM folds")}
    assert recorded == used


def test_results_do_not_depend_on_the_number_of_devices(trained: Trained, tmp_path: Path) -> None:
    for name, device in (("one", "cuda:0"), ("three", "cuda")):
        run_grid(_cells(), tmp_path / name, device=device)
    pd.testing.assert_frame_equal(_rows(tmp_path / "one"), _rows(tmp_path / "three"))


def test_cells_of_a_group_are_never_trained_apart(trained: Trained, tmp_path: Path) -> None:
    whole = sorted(len(group.cells) for group in grouped(_cells(), "cuda"))
    for attempt in range(3):
        trained.calls.clear()
        run_grid(_cells(), tmp_path / str(attempt), device="cuda")
        assert sorted(count for _, count in trained.calls) == whole


def test_one_process_leaves_a_group_alone_whose_first_cell_another_has(
    trained: Trained, tmp_path: Path
) -> None:
    cells = list(identify(_cells(seeds=1)[:3]).cells)
    (group,) = grouped([cell for cell in cells if cell.task.aggr != "max"], "cuda")
    with Store(tmp_path) as store, ExitStack() as locks:
        one, other = (Ledger(store, cells, tmp_path, Progress()) for _ in range(2))
        assert other.claim(group.cells[0], locks, [], [])
        taken: list[Cell] = []
        assert one.claim_group(group, locks, taken, []) == []
        assert taken == list(group.cells)
        # Another grouping may have taken that cell for hours: what is idle takes the rest.
        assert one.claim_group(group, locks, [], [], is_idle=True) == list(group.cells[1:])


def _orders(
    devices: Sequence[str], cells: Sequence[Cell], workers: int | Team | None = None
) -> tuple[Crew, list[str]]:
    notes: list[str] = []

    class Noting(Progress):
        def note(self, text: str) -> None:
            notes.append(text)

    order = Order(cells, Path("runs/none"), None, devices[0])
    with gather(order, devices, {}, workers, Noting()) as gathered:
        return gathered, notes


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the multi-process service be there."""

    @contextmanager
    def shared(
        devices: Sequence[str], planned: object, workers: int | None, note: object
    ) -> Iterator[Sharing]:
        yield Sharing(workers or 3, True, {"CUDA_MPS_PIPE_DIRECTORY": "here"})

    monkeypatch.setattr(mps, "shared_gpus", shared)


def _identified(cells: Sequence[Cell]) -> list[Cell]:
    return list(identify(cells).cells)


@pytest.mark.usefixtures("trained")
def test_the_longest_group_comes_first_where_there_are_several_processes() -> None:
    cells = _identified(_cells())
    gathered, notes = _orders(["cuda:0", "cuda:1"], cells)
    first, *_, last = grouped(gathered.mine.cells, "cuda")
    assert str(first).startswith("GIN")
    assert (first.cells[0].dataset, last.cells[0].dataset) == ("RDT-B", "MUTAG")
    assert [order.device for order in (gathered.mine, *gathered.others)] == ["cuda:0", "cuda:1"]
    assert notes == ["2 processes: one group at a time on cuda:0, cuda:1"]
    alone, notes = _orders(["cuda:1"], cells)
    assert list(alone.mine.cells) == cells  # as it was asked for
    assert (notes, alone.others) == ([], [])


@pytest.mark.usefixtures("trained", "served")
def test_under_the_service_all_trainings_are_left_to_processes_beside_this_one() -> None:
    gathered, _ = _orders(["cuda:0", "cuda:1"], _identified(_cells()))
    places = [order.device for order in gathered.others]
    assert places == ["cuda:0", "cuda:1"] * 3
    assert gathered.is_watched
    assert gathered.environment == {"CUDA_MPS_PIPE_DIRECTORY": "here"}
    assert {order.sharing for order in gathered.others} == {3}
    assert gathered.mine.sharing == 1  # where it must go on alone, all of the GPU is free


@pytest.mark.usefixtures("trained", "served")
def test_of_processes_that_share_a_gpu_one_takes_short_groups_first() -> None:
    gathered, _ = _orders(["cuda:0", "cuda:1"], _identified(_cells()))
    *down, one, other = [grouped(order.cells, order.device) for order in gathered.others]
    assert all(groups == down[0] for groups in down)
    assert one == other == down[0][::-1]  # all are short; the same groups, not only the cells
    assert grouped(gathered.mine.cells, "cuda") == down[0]


@pytest.mark.usefixtures("served")
def test_this_process_watches_and_trains_what_others_leave(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[str] = []

    class Noting(Progress):
        def note(self, text: str) -> None:
            notes.append(text)

    def assist(order: Order, progress: Progress) -> None:
        """End at once, as where CUDA fails in processes that are served."""

    run_grid(_cells(), tmp_path / "served", device="cuda:1", progress=Noting())
    assert Threads.environments[-1] == {"CUDA_MPS_PIPE_DIRECTORY": "here"}
    assert notes == []
    monkeypatch.setattr(runner, "assist", assist)
    run_grid(_cells(), tmp_path / "left", device="cuda:1", progress=Noting())
    assert notes == ["All other processes have left: this one goes on with 48 cells."]
    pd.testing.assert_frame_equal(_rows(tmp_path / "served"), _rows(tmp_path / "left"))


class Turns:
    """Stands for the ledger, for processes at work and for what is computed meanwhile."""

    def __init__(self, *left: int) -> None:
        self._left = list(left)  # cells, at each look
        self.unreported = range(self._left[0])

    def look_around(self) -> None:
        self.unreported = range(self._left.pop(0) if self._left else 0)

    def are_at_work(self) -> bool:
        return bool(self._left)

    def advance(self) -> bool:
        return True


@pytest.mark.parametrize(("count", "is_noted"), [(None, False), (0, True), (3, False)])
def test_processes_that_take_turns_are_noted_when_one_has_trained(
    count: int | None, is_noted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[str] = []
    asked: list[Mapping[str, str]] = []

    class Noting(Progress):
        def note(self, text: str) -> None:
            notes.append(text)

    def clients(environment: Mapping[str, str]) -> int | None:
        asked.append(environment)
        return count

    monkeypatch.setattr(runner, "clients", clients)
    worker: Any = object.__new__(runner._Worker)
    turns: Any = Turns(5, 5, 4, 2)
    worker.ledger, worker.progress = turns, Noting()
    worker._watch(turns, turns, {"CUDA_MPS_PIPE_DIRECTORY": "here"})
    assert asked == [{"CUDA_MPS_PIPE_DIRECTORY": "here"}]
    assert ["take turns" in note for note in notes] == [True] * is_noted


@pytest.mark.usefixtures("served")
def test_signals_are_recorded_while_others_train(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_there = threading.Event()
    asked: list[tuple[str, Task]] = []

    def signals(graphs: GraphSet, task: Task) -> list[Signal]:
        asked.append((graphs.name, task))
        is_there.set()
        return [Signal("convs.0", 1.0, 1.0, 1.0)]

    def waiting(*args: Any, **rest: Any) -> Any:
        outcomes = trained(*args, **rest)
        assert len(trained.calls) == 1 or is_there.wait(20)  # the first one's signals
        return outcomes

    monkeypatch.setattr(afterwards, "initial_signals", signals)
    monkeypatch.setattr(train_group, "fit", waiting)
    run_grid(_cells(), tmp_path, device="cuda:1", workers=1)
    assert sorted(asked, key=str) == sorted({*asked}, key=str)
    methods = {
        (row["content"], row["model"], row["aggregation"])
        for row in query(tmp_path, "SELECT content, model, aggregation FROM cells")
    }
    assert len(asked) == len(methods)
    assert query(tmp_path, "SELECT count(*) AS n FROM signals") == [{"n": len(_cells())}]


@pytest.mark.usefixtures("trained")
def test_no_more_processes_than_groups() -> None:
    cells = [cell for cell in _identified(_cells(seeds=1)) if cell.task.aggr == "max"][:1]
    gathered, _ = _orders(["cuda:0", "cuda:1", "cuda:2"], cells)
    assert gathered.others == []


def test_a_group_of_many_seeds_is_divided_for_many_devices(
    trained: Trained, tmp_path: Path
) -> None:
    cells = expand(
        ["MUTAG"], ["gin"], ["sum", "vpa"], protocol=Protocol(epochs=3), folds=2, seeds=range(60)
    ).cells
    run_grid(cells, tmp_path / "three", device="cuda")
    assert sorted(count for _, count in trained.calls) == [40, 40, 40]
    run_grid(cells, tmp_path / "one", device="cuda:1")
    assert trained.calls[-1] == ("cuda:1", 120)
    pd.testing.assert_frame_equal(_rows(tmp_path / "one"), _rows(tmp_path / "three"))


@pytest.mark.usefixtures("fake_fit")
def test_cells_on_cores_are_ordered_where_there_are_several_processes() -> None:
    cells = _identified(_cells(seeds=1))
    several, _ = _orders(["cpu"], cells, workers=2)
    assert [cell.dataset for cell in several.mine.cells][:4] == ["RDT-B"] * 4
    assert several.mine.cells[-1].dataset == "MUTAG"
    assert list(_orders(["cpu"], cells, workers=1)[0].mine.cells) == cells
    assert len(_orders(["cpu"], cells, workers=Team(3, 2))[0].others) == 2
