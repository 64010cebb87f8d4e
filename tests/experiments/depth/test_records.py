import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gnn_vpa import GnnVpaError
from gnn_vpa import training as engine
from gnn_vpa.experiments.depth import Job, Records, Training, variants
from gnn_vpa.experiments.depth.train import Outcome

JOB = Job("MUTAG", 0, 4, tuple(variants(("vpa",))), Training(epochs=2))


def _trained(*curves: tuple[float, float]) -> engine.Outcome:
    return engine.Outcome.of(0, 0, *(np.array(curve) for curve in curves))


def _outcomes(job: Job, loss: float = 0.5) -> list[Outcome]:
    return [
        Outcome(v, (1.0, 2.0, 3.0, 4.0), 0.25, _trained((0.7, loss), (0.5, 0.6), (0.4, 0.8)))
        for v in job.variants
    ]


@pytest.fixture
def records(tmp_path: Path, tu_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Records:
    monkeypatch.setenv("GNN_VPA_DATA", str(tu_dir))
    return Records(tmp_path / "new")


def test_what_is_recorded_is_not_missing(records: Records) -> None:
    assert records.missing(JOB) == JOB
    part = replace(JOB, variants=JOB.variants[:1])
    records.add(part, _outcomes(part), seconds=1.0)
    rest = records.missing(JOB)
    assert rest is not None
    assert rest.variants == JOB.variants[1:]
    records.add(rest, _outcomes(rest), seconds=1.0)
    assert records.missing(JOB) is None


@pytest.mark.parametrize(
    "other",
    [replace(JOB, depth=8), replace(JOB, fold=1), replace(JOB, training=Training(epochs=3))],
)
def test_another_setting_is_another_network(records: Records, other: Job) -> None:
    records.add(JOB, _outcomes(JOB), seconds=1.0)
    assert records.missing(other) == other


def test_the_frames_hold_a_network_and_a_layer_a_row(records: Records) -> None:
    records.add(JOB, _outcomes(JOB), seconds=1.5)
    results, signals = records.results(), records.signals()
    assert len(results) == len(JOB.variants)
    assert len(signals) == 4 * len(JOB.variants)
    row = results.iloc[0]
    assert (row["start_variance"], row["start_gradient_ratio"]) == (4, 0.25)
    assert (row["first_loss"], row["last_loss"]) == (0.7, 0.5)
    assert (row["best_epoch"], row["valid_accuracy"], row["test_accuracy"]) == (1, 0.6, 0.8)
    assert row["majority"] == pytest.approx(2 / 3, abs=0.05)
    assert math.isnan(row["diverged_epoch"])
    assert signals["variance"].tolist()[:4] == [1, 2, 3, 4]


def test_a_network_that_diverged_has_no_accuracy(records: Records) -> None:
    records.add(JOB, _outcomes(JOB, loss=math.nan), seconds=1.0)
    row = records.results().iloc[0]
    assert row["diverged_epoch"] == 1
    assert math.isnan(row["test_accuracy"])


def test_other_trainings_in_the_folder_can_be_left_out(records: Records) -> None:
    longer = replace(JOB, training=Training(epochs=9))
    for job in (JOB, longer):
        records.add(job, _outcomes(job), seconds=1.0)
    assert len(records.results()) == 2 * len(JOB.variants)
    assert set(records.results(longer.training)["epochs"]) == {9}


def test_provenance_tells_what_the_results_are_made_with(records: Records) -> None:
    records.note("cpu", {"epochs": 2})
    made = json.loads((records.folder / "provenance.json").read_text())
    assert made["configuration"] == {"epochs": 2}
    assert {"commit", "device", "versions"} <= made.keys()


def test_a_file_of_something_else_is_refused(records: Records) -> None:
    records.folder.mkdir()
    (records.folder / "depth.csv").write_text("a,b\n1,2\n")
    with pytest.raises(GnnVpaError, match=r"depth\.csv is not of this experiment"):
        records.missing(JOB)


def test_results_of_other_data_under_the_same_name_are_refused(records: Records) -> None:
    records.note("cpu", {}, {"MUTAG": "one"})
    records.add(JOB, _outcomes(JOB), seconds=1.0)
    records.note("cpu", {}, {"MUTAG": "one"})
    with pytest.raises(GnnVpaError, match="has results of MUTAG that other data were used for"):
        records.note("cpu", {}, {"MUTAG": "another"})
