from collections.abc import Sequence
from pathlib import Path

import pytest

from gnn_vpa.experiments.depth import Job, Records, Training, Watcher, jobs, run_jobs, variants
from gnn_vpa.experiments.depth.train import Outcome


class Listener(Watcher):
    def __init__(self) -> None:
        self.planned: list[Job] = []
        self.finished: list[Job] = []
        self.epochs: dict[Job, int] = {}
        self.before = 0

    def plan(self, jobs: Sequence[Job], finished: int) -> None:
        self.planned, self.before = list(jobs), finished

    def epoch(self, job: Job, done: int) -> None:
        self.epochs[job] = done

    def finish(self, job: Job, outcomes: Sequence[Outcome], seconds: float) -> None:
        assert [o.variant for o in outcomes] == list(job.variants)
        self.finished.append(job)


@pytest.fixture
def asked(tu_dir: Path) -> list[Job]:
    training = Training(epochs=2, width=4)
    chosen = variants(("max", "vpa"), ("default",), (True,))
    return jobs(["MUTAG"], [2, 3], chosen, training, data_dir=str(tu_dir))


def test_jobs_are_divided_by_what_can_share_a_step(asked: list[Job]) -> None:
    assert len(asked) == 4
    for job in asked:
        assert len({variant.aggr == "max" for variant in job.variants}) == 1
    works = [job.work() for job in asked]
    assert works == sorted(works, reverse=True)


def test_all_jobs_are_run_and_kept(asked: list[Job], tmp_path: Path) -> None:
    records, listener = Records(tmp_path), Listener()
    run_jobs(asked, records, watcher=listener)
    assert set(listener.finished) == set(asked)
    assert set(listener.epochs.values()) == {2}
    assert len(records.results()) == 4
    again = Listener()
    run_jobs(asked, records, watcher=again)
    assert (again.planned, again.before) == ([], 4)
    assert len(records.results()) == 4


def test_processes_give_what_one_gives(
    asked: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = []
    for workers in "12":
        monkeypatch.setenv("GNN_VPA_WORKERS", workers)
        records, listener = Records(tmp_path / workers), Listener()
        run_jobs(asked[2:], records, watcher=listener)
        assert listener.epochs == dict.fromkeys(asked[2:], 2)
        frames.append(records.results().sort_values(["depth", "aggr"]).drop(columns="seconds"))
    assert frames[0].to_csv(index=False) == frames[1].to_csv(index=False)
