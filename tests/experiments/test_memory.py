"""What a process is expected to take, beside what was measured, and what is said of it."""

from dataclasses import replace
from pathlib import Path

import pytest

from gnn_vpa.experiments import Cell, Progress, Team, expand, run_grid
from gnn_vpa.experiments.memory import DataSize, memory_of_process, reason
from gnn_vpa.graphs import GraphSet
from gnn_vpa.host import Host
from gnn_vpa.training import Protocol

from .conftest import FakeFit

# Of nodes, edges and bytes; the largest peak of GIN, GAT, GCN and SGC that was measured.
MEASURED = {
    "RDT-M5K": (DataSize(2_542_071, 5_947_556, 44_000_000), 1_784_000_000),
    "COLLAB": (DataSize(372_474, 24_572_158, 101_000_000), 2_151_000_000),
    "RDT-B": (DataSize(859_254, 1_991_016, 15_000_000), 830_000_000),
    "NCI1": (DataSize(122_747, 265_506, 3_000_000), 548_000_000),
    "MUTAG": (DataSize(3_371, 7_442, 200_000), 475_000_000),
}


def cells_of(*names: str) -> list[Cell]:
    return [replace(cell, content=cell.dataset) for cell in expand(names).cells]


@pytest.mark.parametrize("name", MEASURED)
def test_it_is_what_was_measured_or_a_little_more(name: str) -> None:
    size, peak = MEASURED[name]
    expected = memory_of_process(cells_of(name), {name: size})
    assert peak <= expected <= 1.25 * peak


def test_a_process_holds_all_data_and_trains_on_one_at_a_time() -> None:
    sizes = {name: size for name, (size, _) in MEASURED.items()}
    both = memory_of_process(cells_of("RDT-M5K", "COLLAB"), sizes)
    one = memory_of_process(cells_of("COLLAB"), sizes)
    assert both == one + sizes["RDT-M5K"].held


def test_all_arrays_of_a_data_set_count(toy: GraphSet) -> None:
    pointers, edges = (41 + 121 + 40) * 8, 200 * 4
    assert DataSize.of(toy) == (120, 200, pointers + edges)


@pytest.mark.parametrize(
    ("team", "host", "said"),
    [
        (Team(4), Host(8, 9 * 10**9), "4 processes: 8 cores, memory for 4 (2.1 GB each)"),
        (Team(8), Host(8, 10**12), "8 processes: 8 cores, memory for 476 (2.1 GB each)"),
        (Team(3, 2), Host(8, 10**12), "6 processes: 8 cores, memory for 476 (2.1 GB each); 2 for"),
        (Team(1), Host(1, None), "1 process: 1 core"),
        (Team(1), Host(8, 10**9), "1 process: 8 cores, but it may take 2.1 GB of memory, and 1.0"),
    ],
)
def test_one_line_says_how_many_and_why(team: Team, host: Host, said: str) -> None:
    assert reason(team, host, 2_100_000_000).startswith(said)


def test_a_run_says_it_unless_a_number_was_asked_for(
    fake_fit: FakeFit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[str] = []

    class Notes(Progress):
        def note(self, text: str) -> None:
            notes.append(text)

    monkeypatch.setattr(Host, "here", lambda: Host(cores=64, memory=600_000_000))
    cells = expand(["MUTAG"], protocol=Protocol(epochs=2), folds=2).cells
    run_grid(cells[:1], tmp_path, device="cpu", progress=Notes())
    assert notes == []
    monkeypatch.delenv("GNN_VPA_WORKERS")
    run_grid(cells, tmp_path, device="cpu", progress=Notes())
    assert notes == ["1 process: 64 cores, memory for 1 (480 MB each)"]
