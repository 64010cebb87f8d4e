"""The record of the paper's experiments: three files, complete and reproducible."""

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from gnn_vpa.analysis import write_record
from gnn_vpa.paper import published

Make = Callable[..., pd.DataFrame]

_PROVENANCE = {
    "configuration": {"folds": [10], "epochs": [200], "seed": [0]},
    "data (SHA-256)": {"MUTAG": "ab"},
    "sessions": {
        "1": {
            "started": "2024-03-01T10:00:00+00:00",
            "finished": "2024-03-01T10:12:00+00:00",
            "host": "a-machine",
            "device": "cuda (NVIDIA H200)",
            "commit": "c0ffee",
            "versions": {"torch": "2.11"},
            "configuration": {"command": "reproduce", "what": "paper", "variant": "released"},
        },
        "2": {"started": "2024-03-01T10:00:01+00:00", "device": "cpu", "configuration": {}},
    },
}


@pytest.fixture(scope="module")
def folds(make_folds: Make) -> pd.DataFrame:
    """Both tables with the paper's means, and SGC with K = 5 ten points below."""
    parts = []
    for table, features in (("table1", "auto"), ("table_a1", "degree")):
        cells = published(table)
        for options, less in (("", 0.0), ("K=5", 10.0)):
            own = cells if less == 0 else cells[cells["model"] == "SGC"]
            accuracies = {
                (c.dataset, c.model, c.aggregation): [
                    (c.mean - less + step * max(c.std, 0.1)) / 100 for step in (-1, 0, 1)
                ]
                for c in own.itertuples()
            }
            parts.append(make_folds(accuracies, options=options, features=features))
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def root(folds: pd.DataFrame, make_curves: Make, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repository")
    (root / "docs" / "img").mkdir(parents=True)
    (root / "docs" / "img" / "reproduction-of-last-year.svg").touch()
    (root / "results" / "paper").mkdir(parents=True)
    (root / "results" / "paper" / "reasons.md").write_text("Chance, mostly.\n")
    write_record(folds, make_curves(folds, epochs=20), _PROVENANCE, root)
    return root


def test_every_training_is_in_the_folds(root: Path) -> None:
    found = pd.read_csv(root / "results" / "paper" / "folds.csv")
    assert list(found.columns) == [
        *("table", "dataset", "model", "aggregation", "variant", "fold", "seed"),
        *("best_epoch", "val_score", "test_score", "status"),
    ]
    cells = found.groupby(["table", "variant"], sort=False)["fold"].count() / 3
    assert cells.to_dict() == {
        ("main", "released"): 108,
        ("main", "released, K=5"): 18,
        ("appendix", "released"): 60,
        ("appendix", "released, K=5"): 10,
    }


def test_provenance_says_how_and_names_no_machine(root: Path) -> None:
    text = (root / "results" / "paper" / "provenance.json").read_text()
    found = json.loads(text)
    assert found["command"] == "gnn-vpa reproduce paper"
    assert found["commit"] == "c0ffee"
    assert found["device"] == "cuda (NVIDIA H200)"
    assert found["protocol"] == {"folds": 10, "seed": 0, "epochs": 200}
    assert found["seconds"]["from start to end"] == 12 * 60
    assert "a-machine" not in text


def test_the_page_has_both_tables_and_both_k(root: Path) -> None:
    text = (root / "docs" / "reproduction.md").read_text()
    assert "- Table 1: 108 of 108 cells have |z| ≤ 2 (100 %)." in text
    assert "- The appendix's table: 60 of 60 cells have |z| ≤ 2 (100 %)." in text
    lines = text.splitlines()
    cells = [line for line in lines if line.count("|") == 7 and " ± " in line]
    assert len(cells) == 108 + 60 + 18 + 10
    assert "## Published numbers that do not come out" in lines
    assert "Table 1: 0 cells of 108; by chance one would expect about 5." in lines
    assert "Chance, mostly." in text


def test_five_lines_come_first(root: Path) -> None:
    lines = (root / "docs" / "reproduction.md").read_text().splitlines()
    first = lines[2:7]
    assert [line.split("**")[1] for line in first] == [
        "What was done.",
        "What comes out.",
        "What does not.",
        "The paper's claims.",
        "Which aggregation, then.",
    ]
    assert (
        "168 numbers of the paper's two tables were trained again once, 504 trainings" in first[0]
    )
    assert "168 of 168 as printed" in first[1]
    assert lines[7] == ""


def test_no_line_of_the_page_is_broken(root: Path) -> None:
    text = (root / "docs" / "reproduction.md").read_text()
    for wrong in (" nan", "None", "\n\n\n"):
        assert wrong not in text


def test_the_figure_is_one_picture_of_nine_panels_and_old_ones_are_gone(root: Path) -> None:
    pictures = [*(root / "docs" / "img").iterdir()]
    (picture,) = [path for path in pictures if "-answer-" not in path.name]
    assert all(
        f"(img/{path.name})" in (root / "docs" / "reproduction.md").read_text() for path in pictures
    )
    assert f"(img/{picture.name})" in (root / "docs" / "reproduction.md").read_text()
    figure = picture.read_text()
    assert figure.count("<svg ") == 1 + 9
    assert "currentColor" not in figure


def test_writing_again_changes_nothing(root: Path, folds: pd.DataFrame, make_curves: Make) -> None:
    files = [path for path in root.rglob("*") if path.is_file()]
    before = {path: path.read_bytes() for path in files}
    write_record(folds.sample(frac=1, random_state=0), make_curves(folds), _PROVENANCE, root)
    assert {path: path.read_bytes() for path in files} == before
