"""What came out of an experiment, from Python."""

from pathlib import Path

import pytest

import gnn_vpa
from gnn_vpa.experiments import Progress


class Notes(Progress):
    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(text)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> gnn_vpa.Results:
    settings = {"epochs": 2, "folds": 3, "device": "cpu"}
    out = tmp_path_factory.mktemp("run")
    return gnn_vpa.run("MUTAG", ["sgc"], seeds=[0, 1], baselines="majority", out=out, **settings)  # type: ignore[arg-type]


def test_the_frames(results: gnn_vpa.Results) -> None:
    assert len(results.folds) == 2 * 3 * 2 + 3
    assert len(results.curves) == 2 * 3 * 2 * 2
    assert repr(results).endswith("trainings=15)")


def test_the_table_has_the_paper_beside_ours(results: gnn_vpa.Results) -> None:
    table = results.table.set_index(["model", "aggregation"])
    assert table.loc[("SGC", "vpa"), "paper"] == 73.9
    assert table.loc[("SGC", "default"), "folds"] == 3
    assert table["paper"].isna().to_dict()["MAJORITY", ""]
    assert set(table["variant"]) == {"released"}


def test_the_tests_compare_vpa_with_the_others(results: gnn_vpa.Results) -> None:
    assert results.tests[["model", "aggregation", "pairs"]].to_numpy().tolist() == [
        ["SGC", "default", 3]
    ]


def test_the_report(results: gnn_vpa.Results) -> None:
    assert results.report() == results.report_path
    assert "SGC+vpa" in results.report_path.read_text()


def test_two_settings_are_kept_apart(tmp_path: Path) -> None:
    for features in ("auto", "degree"):
        results = gnn_vpa.run(
            "MUTAG", "sgc", "vpa", epochs=1, folds=2, features=features, device="cpu", out=tmp_path
        )
    assert results.table["features"].tolist() == ["auto", "degree"]
    headings = results.report(tmp_path / "a.md").read_text().split("\n## ")[1:]
    assert [heading.split("\n")[0] for heading in headings] == [
        "Models as released, the data's own node features",
        "Models as released, node degree as feature",
        "Settings and provenance",
    ]
    latex = results.report(tmp_path / "a.tex").read_text()
    assert latex.count(r"\begin{tabular}") == 2


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    notes = Notes()
    gnn_vpa.run(
        *("MUTAG", ["gin", "sgc"], "default"),
        epochs=1,
        folds=2,
        device="cpu",
        out=tmp_path,
        progress=notes,
    )
    assert notes.texts == [
        "Left out: gin has no aggregation default (it has sum, mean, max, vpa).",
        "MUTAG has edge features, which sgc does not use.",
    ]


def test_nothing_finished_yet_is_empty_not_an_error(tmp_path: Path) -> None:
    from gnn_vpa.experiments import Store

    with Store(tmp_path):
        pass
    results = gnn_vpa.Results(tmp_path)
    assert len(results.folds) == len(results.curves) == len(results.table) == 0
    assert "No fold has finished" in results.report().read_text()
    assert results.report(tmp_path / "empty.md").exists()
