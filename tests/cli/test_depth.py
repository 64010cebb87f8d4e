from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from gnn_vpa.cli._app import app
from gnn_vpa.experiments.depth import run as running

QUICK = ["MUTAG", "--depths", "2,3", "--epochs", "1", "--width", "4", "--aggr", "sum,vpa"]


@pytest.fixture
def run(tu_dir: Path, tmp_path: Path) -> Callable[..., Result]:
    def invoke(*arguments: str) -> Result:
        common = ["--out", str(tmp_path / "depth"), "--data-dir", str(tu_dir), "--device", "cpu"]
        return CliRunner().invoke(app, ["depth", *arguments, *common])

    return invoke


def test_a_run_leaves_tables_and_a_figure(run: Callable[..., Result], tmp_path: Path) -> None:
    result = run(*QUICK)
    assert result.exit_code == 0, result.output
    left = {path.name for path in (tmp_path / "depth").iterdir()}
    assert left == {"depth.csv", "signal.csv", "provenance.json", "depth-mutag.png"}
    assert len(pd.read_csv(tmp_path / "depth" / "depth.csv")) == 2 * 2 * 4
    header, *rows = [line.split("\t") for line in result.stdout.splitlines() if "\t" in line]
    assert header == ["data set", "weights", "aggr", "2", "3"]
    assert len(rows) == 8
    assert "[2/2]" in result.stderr


def test_the_same_command_has_nothing_left_to_do(run: Callable[..., Result]) -> None:
    first, second = run(*QUICK), run(*QUICK)
    assert "0 jobs to run, 0 networks, 2 finished before" in second.stderr
    assert first.stdout == second.stdout


def test_an_interrupted_run_keeps_what_is_finished(
    run: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = running.run_job, []  # type: ignore[attr-defined]

    def interrupted(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(running, "run_job", interrupted)
    result = run(*QUICK)
    assert result.exit_code == 130
    assert "type the same command again" in result.stderr
    assert len(pd.read_csv(tmp_path / "depth" / "depth.csv")) == 8
    monkeypatch.setattr(running, "run_job", real)
    assert "1 jobs to run, 8 networks, 1 finished before" in run(*QUICK).stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["MUTAGG"], "did you mean MUTAG?"),
        (["MUTAG", "--depths", "four"], "--depths: 'four' must be whole numbers from 2 on"),
        (["MUTAG", "--depths", "1"], "--depths: '1' must be"),
        (["MUTAG", "--aggr", "median"], "aggr: 'median' is unknown"),
        (["MUTAG", "--weights", "mine"], "weights: 'mine' is unknown"),
        (["MUTAG", "--residuals", "maybe"], "--residuals: 'maybe' is unknown"),
    ],
)
def test_wrong_use_ends_with_a_message(
    run: Callable[..., Result], arguments: list[str], message: str
) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
