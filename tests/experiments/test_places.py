"""What a plan counts: processes on cores, GPUs, or the slots of a cluster."""

import pytest

from gnn_vpa.experiments import Cell, Group, Team, grouped, mps, preset
from gnn_vpa.experiments.places import Places, Slots, speed_of
from gnn_vpa.experiments.schedule import START_S, Planned, expect
from gnn_vpa.training import Task

_LONG = [
    Planned(Group((Cell("NCI1", Task("gin", aggr)),)), 119.0)
    for aggr in ("sum", "mean", "max", "vpa")
]


def test_cores_are_counted_by_processes_which_share_the_folds_of_few_cells() -> None:
    places = Places.of(["cpu"], _LONG[:2], Team(2, 4))
    assert (places.unit, places.count, str(places)) == ("processes", 8, " in 8 processes")
    assert places.outlook(_LONG[:2], 8).seconds == pytest.approx(119 / 4 + START_S["cpu"])
    assert places.outlook(_LONG[:2], 1).seconds == 238.0


def test_gpus_have_several_processes_where_the_service_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("GNN_VPA_WORKERS")
    monkeypatch.setattr(mps, "_obstacle", lambda: None)
    places = Places.of(["cuda"], _LONG, Team(1), is_timed=True)
    assert str(places) == f" in {mps.PROCESSES} processes on each of 1 GPU"
    # One process would take twelve times 119 s.
    at_once = mps.PROCESSES / mps.gain(mps.PROCESSES)
    assert places.outlook(_LONG * 3, 1).seconds == pytest.approx(10 + 2 * 119 * at_once)
    two = Places.of(["cuda"], _LONG, Team(1), workers=2, is_timed=True)
    assert two.outlook(_LONG, 1).seconds == pytest.approx(10 + 2 * 119 * 2 / mps.gain(2))
    seen = Places.of(["cuda"], _LONG, Team(1))  # beside each other: as slow as they are
    assert seen.outlook(_LONG * 3, 1).seconds == pytest.approx(10 + 2 * 119)
    monkeypatch.setattr(mps, "_obstacle", lambda: "it is not there")
    several = Places.of(["cuda:0", "cuda:1"], _LONG, Team(1))
    assert (several.each, str(several)) == (1, " on 2 GPUs")
    assert several.outlook(_LONG, 2).seconds == 2 * 119 + START_S["cuda"]
    assert str(Places.of(["cuda"], _LONG, Team(1))) == ""


def test_a_cluster_is_counted_by_its_slots() -> None:
    places = Places.of(["cpu"], _LONG, Team(2), slots=Slots(4, "cuda"))
    assert str(places) == " in 4 slots"
    assert places.outlook(_LONG, 4).seconds == 119 + START_S["cuda"]


def test_six_processes_on_an_h200_are_planned_to_take_as_long_as_was_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("GNN_VPA_WORKERS")
    monkeypatch.setattr(mps, "_obstacle", lambda: None)
    planned = expect(grouped(preset("paper"), "cuda"))
    places = Places.of(["cuda"], planned, Team(1), is_timed=True)
    assert places.outlook(planned, 1).seconds == pytest.approx(550, rel=0.1)


def test_processes_that_share_gpus_are_faster_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GNN_VPA_WORKERS")
    monkeypatch.setattr(mps, "_obstacle", lambda: None)
    cells = preset("paper")
    assert speed_of(cells, ["cuda:0", "cuda:1"]) == 2 * mps.gain(6)
    assert speed_of(cells[:2], ["cuda"]) == 1.0  # several would not pay
    assert speed_of(cells, ["cuda"], workers=2) == mps.gain(2)
    assert speed_of(cells, ["cpu"], workers=8) == 1.0
