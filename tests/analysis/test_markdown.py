"""A run in Markdown: complete, and no more than the numbers say."""

from pathlib import Path

import pandas as pd
import pytest

from gnn_vpa.analysis import write_markdown
from gnn_vpa.analysis._format import MINUS
from gnn_vpa.paper import published

KEYS = ["dataset", "model", "aggregation", "variant", "features", "fold", "seed"]
_FAR = ("MUTAG", "GIN", "vpa")
_SETS = set(published("table1")["dataset"])


@pytest.fixture
def exact() -> pd.DataFrame:
    """Folds whose means are the paper's, all of Table 1, but for one cell far away."""
    rows = []
    for cell in published("table1").itertuples():
        mean = 5.0 if (cell.dataset, cell.model, cell.aggregation) == _FAR else cell.mean
        for fold, step in enumerate((-1.0, 0.0, 1.0)):
            accuracy = (mean + step * max(cell.std, 0.5)) / 100
            keys = [cell.dataset, cell.model, cell.aggregation, "released", "auto", fold, 0]
            rows.append([*keys, accuracy, "done"])
    return pd.DataFrame(rows, columns=[*KEYS, "test_acc", "status"])


def test_every_cell_of_the_paper_with_its_z(exact: pd.DataFrame, tmp_path: Path) -> None:
    text = write_markdown(exact, pd.DataFrame(), {}, tmp_path / "record.md").read_text()
    lines = [line.split(" | ") for line in text.splitlines()]
    cells = [line for line in lines if len(line) == 6 and line[0].lstrip("| ") in _SETS]
    assert len(cells) == 108
    far = [line for line in cells if line[5].rstrip(" |").strip(f"+{MINUS}") > "0.1"]
    assert [line[:2] for line in far] == [["| MUTAG", "GIN+vpa"]]
    assert "107 of 108 cells have |z| ≤ 2 (99 %)." in text


def test_the_columns_avg_and_p_stand_beside_the_papers(exact: pd.DataFrame, tmp_path: Path) -> None:
    text = write_markdown(exact, pd.DataFrame(), {}, tmp_path / "record.md").read_text()
    averages = [line for line in text.splitlines() if line.startswith("| Avg |")]
    assert len(averages) == 12
    assert any(line.startswith("| GIN+sum |") and "2.0e-5" in line for line in text.splitlines())


def test_curves_become_figures_beside_it(exact: pd.DataFrame, tmp_path: Path) -> None:
    keys = exact[exact["dataset"].isin(["MUTAG", "PTC"]) & (exact["model"] == "GIN")][KEYS]
    curves = pd.concat([keys.assign(epoch=epoch, train_loss=1.0 - epoch / 4) for epoch in range(3)])
    text = write_markdown(exact, curves, {}, tmp_path / "docs" / "r.md").read_text()
    links = [line.split("(")[1].rstrip(")") for line in text.splitlines() if line.startswith("![")]
    assert links == ["img/r-released-auto-gin-mutag.svg", "img/r-released-auto-gin-ptc.svg"]
    for link in links:
        picture = (tmp_path / "docs" / link).read_text()
        assert picture.startswith("<svg")
        assert "currentColor" not in picture


def test_provenance_is_a_nested_list(exact: pd.DataFrame, tmp_path: Path) -> None:
    provenance = {"epochs": [200], "versions": {"torch": "2.13"}}
    text = write_markdown(exact, pd.DataFrame(), provenance, tmp_path / "r.md").read_text()
    assert "- epochs: 200\n- versions:\n  - torch: 2.13\n" in text
