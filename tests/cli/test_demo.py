from pathlib import Path

import pytest
from typer.testing import CliRunner

from gnn_vpa import Results
from gnn_vpa.cli._app import app


@pytest.fixture(autouse=True)
def _one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNN_VPA_WORKERS", "1")


def test_all_four_aggregations_beside_the_paper_without_any_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GNN_VPA_DATA", raising=False)
    monkeypatch.setenv("GNN_VPA_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["demo", "--epochs", "1", "--device", "cpu"])
    assert result.exit_code == 0, result.output
    folds = Results("runs/demo").folds
    assert folds.groupby("aggregation")["fold"].nunique().to_dict() == dict.fromkeys(
        ["max", "mean", "sum", "vpa"], 10
    )
    for paper in ("87.2 ± 4.9", "76.1 ± 11.1", "77.0 ± 8.2", "86.7 ± 4.4"):
        assert paper in result.stdout
    assert "Report:  runs/demo/report.html" in result.stdout
