"""Groups beside each other: what the benchmark counts."""

import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType

import pytest

from gnn_vpa import processes

# By the clock that it tells, an epoch takes a hundredth of a second, or so many times as long.
_PROGRAM = "for epoch in range(5000): print(1000 + 0.01 * {} * epoch)"


def test_groups_beside_others_are_compared_with_the_same_alone(
    benchmark_module: Callable[[str], ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sharing, record = (benchmark_module(name) for name in ("sharing", "_record"))
    groups = [sharing.Group("MUTAG", "gin", (aggr,)) for aggr in ("sum", "vpa")]
    start, slower = processes.start, iter([1, 1, 2, 4])

    def fake(
        arguments: Sequence[str], environment: Mapping[str, str], stdout: int
    ) -> "subprocess.Popen[bytes]":
        return start(["-S", "-c", _PROGRAM.format(next(slower))], environment, stdout=stdout)

    monkeypatch.setattr(sharing.processes, "start", fake)
    sharing.report("cpu", [2], 0.5, record.Record(tmp_path / "out.md"), groups)
    rows = [line.split("|")[1:-1] for line in (tmp_path / "out.md").read_text().splitlines()[-2:]]
    assert [int(row[0]) for row in rows] == [1, 2]
    assert [row[1].strip() for row in rows] == ["10, 10", "20, 40"]
    assert float(rows[1][2].strip(" x")) == 0.75  # one half as fast, one a quarter


def test_a_process_tells_when_its_epochs_ended(
    benchmark_module: Callable[[str], ModuleType],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    sharing = benchmark_module("sharing")
    monkeypatch.setattr(sharing, "_EPOCHS", 3)
    sharing._train(sharing.Group("MUTAG", "gin", ("vpa",), precision="float32"), "cpu")
    times = [float(line) for line in capsys.readouterr().out.split()]
    assert len(times) >= 2
    assert times == sorted(times)
