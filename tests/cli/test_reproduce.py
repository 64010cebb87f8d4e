from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from gnn_vpa import experiments
from gnn_vpa.cli import _experiment, _plan
from gnn_vpa.cli import reproduce as cli_reproduce
from gnn_vpa.cli._app import app
from gnn_vpa.errors import UsageError
from gnn_vpa.experiments import Cell, expand, run_grid, select
from gnn_vpa.experiments.places import Slots
from gnn_vpa.host import Host
from gnn_vpa.training import Protocol


@pytest.fixture(autouse=True)
def _one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNN_VPA_WORKERS", "1")


def _reproduce(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["reproduce", *arguments, "--device", "cpu"])


def _tables(output: str) -> tuple[list[list[str]], list[list[str]]]:
    """Return the rows of a plan's tables: what would run, and what more processes would do."""
    lines = [line.split("\t") for line in output.splitlines()]
    second = next(n for n, line in enumerate(lines) if line[1:] == ["time", "limited by"])
    return lines[:second], [line for line in lines[second:] if len(line) > 1]


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch, tu_dir: Path) -> list[Cell]:
    """The paper's experiments with two epochs and three folds."""
    monkeypatch.setenv("GNN_VPA_DATA", str(tu_dir))
    protocol = Protocol(epochs=2)
    cells = expand(["MUTAG", "NCI1"], ["sgc", "gat"], protocol=protocol, folds=3).cells
    monkeypatch.setattr(experiments, "preset", lambda *_: cells)
    return cells


def test_it_runs_what_it_is_limited_to(short: list[Cell], tmp_path: Path) -> None:
    result = _reproduce("table1", "--only", "sgc", "--only", "mutag", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert "[2/2] SGC+vpa on MUTAG" in result.stderr
    assert "73.5 ± 9.8" in result.stdout
    assert (tmp_path / "report.html").exists()


def test_a_plan_tells_what_would_run_and_how_long(short: list[Cell], tmp_path: Path) -> None:
    run_grid(select(short, ["sgc", "mutag"]), tmp_path, device="cpu")
    before = sorted(path.name for path in tmp_path.iterdir())
    result = _reproduce("table1", "--plan", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    (header, *rows), (_, *ahead) = _tables(result.stdout)
    assert header == ["what", "cells", "trainings", "at once", "memory", "one process"]
    assert [row[0] for row in ahead] == ["1 (here)", "2", "4", "8"]
    assert [row[:4] for row in rows] == [
        ["GAT default, vpa on MUTAG", "2", "6", "2"],
        ["SGC default, vpa on NCI1", "2", "6", "2"],
        ["GAT default, vpa on NCI1", "2", "6", "2"],
        ["total", "6", "18", "2"],
    ]
    assert all(row[4].endswith("B") and row[5].endswith(("s", "min", "h")) for row in rows)
    last = result.stdout.splitlines()[-1]
    assert last.startswith("2 of 8 cells are finished. 6 cells would run: about")
    assert last.endswith("from the cells that are finished.")
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_long_plan_is_summed_up_by_data_set(
    short: list[Cell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_grid(select(short, ["sgc", "mutag"]), tmp_path, device="cpu")
    monkeypatch.setattr(_plan, "_MOST_ROWS", 2)
    (header, *rows), _ = _tables(_reproduce("table1", "--plan", "--out", str(tmp_path)).stdout)
    assert header == ["data set", "cells", "trainings", "at once", "memory", "one process"]
    assert [row[:3] for row in rows] == [
        ["MUTAG", "2", "6"],
        ["NCI1", "4", "12"],
        ["total", "6", "18"],
    ]
    memory = [float(row[4].split()[0]) for row in rows]
    assert memory[2] == max(memory[:2])


def test_a_plan_says_how_many_processes_there_are_and_why(
    short: list[Cell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_grid(select(short, ["sgc", "mutag"]), tmp_path, device="cpu")
    monkeypatch.delenv("GNN_VPA_WORKERS")
    monkeypatch.setattr(Host, "here", lambda: Host(cores=8, memory=1_200_000_000))
    lines = _reproduce("table1", "--plan", "--out", str(tmp_path)).stdout.splitlines()
    assert lines[-2] == "2 processes: 8 cores, memory for 2 (554 MB each)."
    assert "cells would run in 2 processes: about" in lines[-1]


def test_a_plan_without_results_calibrates_and_writes_nothing(
    short: list[Cell], tmp_path: Path
) -> None:
    out = tmp_path / "none"
    result = _reproduce("table1", "--only", "sgc,mutag", "--plan", "--out", str(out))
    assert result.stdout.endswith("from a few epochs on the smallest data set.\n")
    assert not out.exists()


def test_a_plan_for_a_cluster_of_gpus_does_not_time_this_hosts_cores(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_plan, "resolve_device", lambda _: "cpu")
    cells = expand(["MUTAG"], ["gin"]).cells
    _plan.show_plan(cells, tmp_path / "none", None, "auto", slots=Slots(2, "cuda"))
    output = capsys.readouterr().out
    assert "GIN sum, mean, vpa on MUTAG\t3\t30\t-\t-\t1 s" in output
    assert "2 (here)\t" in output
    assert "4 cells would run in 2 slots: about" in output
    assert "no GPU is here to tell" in output


def test_a_plan_for_a_gpu_says_what_an_h200_would_take(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_plan, "resolve_devices", lambda _: ["cuda"])
    monkeypatch.setattr(_plan, "resolve_device", lambda _: "cuda")
    monkeypatch.setattr(_plan, "needs", lambda *_: None)
    timed = []
    monkeypatch.setattr(_plan, "time_models", lambda cells, **_: timed.extend(cells) or [])
    cells = expand(["MUTAG"], ["gin"]).cells
    _plan.show_plan(cells, tmp_path / "none", None, "cuda")
    assert capsys.readouterr().out.splitlines()[-1] == (
        "4 cells would run: about 3 s (1 s to 8 s), as an H200 would take."
    )
    assert timed == []  # a moment on a small data set says little of a GPU


def test_a_plan_without_the_data(
    short: list[Cell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GNN_VPA_DATA", str(tmp_path))
    monkeypatch.setenv("GNN_VPA_CACHE", str(tmp_path))
    result = _reproduce("table1", "--only", "NCI1,sgc", "--plan", "--out", str(tmp_path / "none"))
    assert "SGC default, vpa on NCI1\t2\t6\t-\t-\t-" in result.stdout
    assert result.stdout.endswith("2 cells would run: no data set is here to tell.\n")


def test_a_plan_when_all_is_done(short: list[Cell], tmp_path: Path) -> None:
    run_grid(select(short, ["sgc", "mutag"]), tmp_path, device="cpu")
    result = _reproduce("table1", "--only", "sgc,mutag", "--plan", "--out", str(tmp_path))
    assert result.stdout == f"All 2 cells are finished, in {tmp_path}.\n"


def test_a_table_that_does_not_exist() -> None:
    result = _reproduce("table2")
    assert result.exit_code == 2
    assert "table-a1" in result.stderr


def test_a_data_set_that_is_not_here_is_named_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GNN_VPA_DATA", str(tmp_path))
    monkeypatch.setenv("GNN_VPA_CACHE", str(tmp_path))
    result = _reproduce("curves", "--only", "MUTAG,NCI1", "--out", str(tmp_path / "out"))
    assert result.exit_code == 2
    assert "gnn-vpa data get NCI1" in result.stderr
    assert "[1/" not in result.stderr


def test_the_average_stands_below_the_data_sets(tmp_path: Path) -> None:
    from gnn_vpa.analysis import Cell as TableCell
    from gnn_vpa.analysis import Row, ScoreTable, Setting

    cells = {"A": TableCell(50.0, 1.0, 10), "B": TableCell(60.0, 1.0, 10)}
    row = Row("GIN", "vpa", dict(cells), TableCell(55.0, float("nan"), 20), None, None)
    table = ScoreTable(Setting("released", "auto"), ("A", "B"), ((row,),))
    rows = _experiment._rows(table, ["A", "B"])
    assert [line[:3] for line in rows] == [
        ["A", "GIN+vpa", "50.0 ± 1.0"],
        ["B", "GIN+vpa", "60.0 ± 1.0"],
        ["Avg", "GIN+vpa", "55.0"],
    ]


def test_another_precision_is_another_result_and_refused_before_there_is_a_folder(
    short: list[Cell], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    result = _reproduce("table1", "--only", "sgc", "--precision", "bfloat16", "--out", str(out))
    assert result.exit_code == 2
    assert "precision: rows are kept in bfloat16 on a GPU alone" in result.stderr
    assert not out.exists()
    result = _reproduce("table1", "--precision", "bfloat17", "--out", str(out))
    assert result.exit_code == 2
    assert "--precision: 'bfloat17' is unknown: did you mean bfloat16?" in result.stderr
    options = ["--only", "sgc", "--precision", "float32,bfloat16", "--plan"]
    rows, _ = _tables(_reproduce("table1", *options, "--out", str(out)).stdout)
    both = ("SGC default, vpa on NCI1", "SGC (precision=bfloat16) default, vpa on NCI1")
    assert {*both} <= {row[0] for row in rows}


def test_rows_of_nodes_are_rounded_on_a_gpu_and_what_a_cpu_would_train_again_is_refused(
    short: list[Cell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Sequence[Cell], Sequence[str], Mapping[str, object]]] = []

    def execute(cells: Sequence[Cell], out: Path, **options: Any) -> None:
        asked.append((cells, options["notes"], options["configuration"]))

    monkeypatch.setattr(cli_reproduce, "execute", execute)
    monkeypatch.setattr(experiments, "resolve_devices", lambda _: ["cuda"])
    assert _reproduce("table1", "--out", str(tmp_path)).exit_code == 0
    assert _reproduce("table1", "--precision", "float32", "--out", str(tmp_path)).exit_code == 0
    (rounded, notes, configuration), (usual, silence, said) = asked
    assert _precisions(rounded) == {"bfloat16"} == {configuration["precision"]}
    assert "--precision float32" in notes[0]
    assert _precisions(usual) == {"float32"} == {said["precision"]}
    assert not silence

    def refuse(folder: Path, device: str) -> str:
        raise UsageError(f"{folder} on {device}")

    monkeypatch.setattr(experiments, "usual_precision", refuse)
    result = _reproduce("table1", "--out", str(tmp_path))
    assert result.exit_code == 2
    assert f"{tmp_path} on cuda" in result.stderr.replace("\n", "")


def _precisions(cells: Sequence[Cell]) -> set[str]:
    return {cell.protocol.precision for cell in cells if cell.protocol is not None}


@pytest.mark.parametrize("splits", [[], ["--splits", "nowhere"]])
def test_a_wrong_name_is_told_before_splits_are_asked_for(splits: list[str]) -> None:
    result = _reproduce("fair", "--only", "NCI1,MUTAGG", *splits)
    assert result.exit_code == 2
    assert "--only: 'mutagg' is unknown: use collab" in result.stderr
    assert "splits" not in result.stderr
    result = _reproduce("fair", "--only", "NCI1", *splits)
    assert result.exit_code == 2
    assert "splits" in result.stderr
    result = _reproduce("table1", "--only", "MUTAGG", "--splits", "nowhere")
    assert "--only: 'mutagg' is unknown: did you mean mutag?" in result.stderr


def test_a_data_set_whose_splits_are_not_there_is_not_unknown(tmp_path: Path) -> None:
    (tmp_path / "NCI1.json").touch()
    result = _reproduce("fair", "--only", "NCI1,COLLAB", "--splits", str(tmp_path))
    assert result.exit_code == 2
    assert f"there are no splits for COLLAB in {tmp_path}: expected COLLAB.json" in result.stderr


def test_the_fair_comparison_has_its_own_precision(tmp_path: Path) -> None:
    result = _reproduce("fair", "--splits", str(tmp_path), "--precision", "bfloat16")
    assert result.exit_code == 2
