"""What became slower is said, and noise is not."""

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

MACHINE = {"cpu": "A", "cores": 2, "torch": "2.13.0"}


@pytest.fixture
def history(benchmark_module: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark_module("history")


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Add to a made-up history: ``write((machine, name, ratios), ...)``, a run for each ratio."""

    def run(*series: tuple[dict[str, object], str, list[float]]) -> Path:
        path = tmp_path / "history.jsonl"
        with path.open("a") as file:
            for machine, name, ratios in series:
                for number, ratio in enumerate(ratios):
                    entry = {
                        "commit": f"c{number}",
                        "machine": machine,
                        "ours over peer": {name: ratio},
                    }
                    file.write(json.dumps(entry) + "\n")
        return path

    return run


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ([0.50, 0.51, 0.49, 0.60], "slower"),
        ([0.50, 0.51, 0.49, 0.40], "faster"),
        ([0.50, 0.51, 0.49, 0.54], "the same"),  # beyond the spread, and less than 10 %
        ([0.40, 0.60, 0.50, 0.59], "the same"),  # 18 %, and within the spread
        ([0.40, 0.60, 0.50, 0.61], "slower"),
        ([0.50, 0.51, 0.90], "too little history"),
        ([0.50], "too little history"),
        ([5.00, *[0.50] * 20, 0.60], "slower"),  # an outlier counts until 20 runs have passed
        ([5.00, *[0.50] * 19, 0.60], "the same"),
    ],
)
def test_a_change_is_named_beyond_the_spread_and_ten_percent(
    history: ModuleType, write: Callable[..., Path], ratios: list[float], verdict: str
) -> None:
    path = write((MACHINE, "loop", ratios))
    (change,) = history.changes(history.read(path))
    assert change.verdict == verdict
    text, slower = history.compare(path)
    assert slower == (verdict == "slower")
    if verdict in ("slower", "faster"):
        assert f"{verdict} at c{len(ratios) - 1}: loop: {ratios[-1]:.3g} of the peer's time" in text
    elif verdict == "the same":
        assert "1 as before" in text
    else:
        assert "1 with too little history: a comparison needs 3 earlier runs" in text


def test_only_the_same_kind_of_machine_is_compared(
    history: ModuleType, write: Callable[..., Path]
) -> None:
    path = write(
        (MACHINE, "loop", [0.5, 0.5, 0.5]),
        ({**MACHINE, "cores": 64}, "loop", [0.9]),
        ({**MACHINE, "torch": "2.14.0"}, "loop", [0.9]),
    )
    text, slower = history.compare(path)
    assert not slower
    assert text.count("too little history") == 3
    # A line that comes later belongs to the kind that it was measured on.
    text, slower = history.compare(write((MACHINE, "loop", [0.5, 0.9])))
    assert slower
    assert "cores 2, cpu A, torch 2.13.0:\n  slower at c1: loop: 0.9 of the peer's time" in text


# The fixture is a module, which no example changes.
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(earlier=st.lists(st.floats(0.01, 100), min_size=3, max_size=9), factor=st.floats(0.01, 100))
def test_what_happened_before_is_never_named(
    history: ModuleType, earlier: list[float], factor: float
) -> None:
    for ratio in earlier:
        assert history.Change("", "", "", ratio, tuple(earlier)).verdict == "the same"
    newest = factor * max(earlier)
    verdict = history.Change("", "", "", newest, tuple(earlier)).verdict
    assert verdict != "faster" or newest < min(earlier)
    assert verdict != "slower" or newest > max(earlier)


def test_a_run_is_added_as_ratios_with_commit_and_machine_and_no_times(
    history: ModuleType, tmp_path: Path
) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nmodel name\t: A CPU at 3 GHz\nserial\t: 17\n")
    kind = history.machine("cpu", cpuinfo)
    assert kind["cpu"] == "A CPU at 3 GHz"
    assert set(kind) == {"cpu", "cores", "torch"}

    ratios = history.Ratios()
    ratios.add("loop", "MUTAG", ours=0.00123456, peer=0.00246912)
    with pytest.raises(ValueError, match="loop / MUTAG was measured twice"):
        ratios.add("loop", "MUTAG", ours=1, peer=1)
    path = tmp_path / "history.jsonl"
    for _ in range(2):
        history.append(ratios, "cpu", path)
    first, second = history.read(path)
    assert first == second
    assert first["ours over peer"] == {"loop / MUTAG": 0.5}
    assert set(first) == {"commit", "machine", "ours over peer"}


@pytest.mark.parametrize(
    "line",
    [
        "not JSON",
        "[]",
        '{"commit": "c", "machine": {}}',
        '{"commit": "c", "machine": {}, "ours over peer": {"a": 0}}',
        '{"commit": "c", "machine": {}, "ours over peer": {"a": "0.5"}}',
    ],
)
def test_a_line_that_is_no_run_is_named(
    history: ModuleType, write: Callable[..., Path], line: str
) -> None:
    path = write((MACHINE, "loop", [0.5]))
    with path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(SystemExit, match=r"history.jsonl, line 2: no run of the benchmarks"):
        history.compare(path)


def test_without_a_history_it_says_how_to_begin_one(history: ModuleType, tmp_path: Path) -> None:
    text, slower = history.compare(tmp_path / "history.jsonl")
    assert "make bench begins one" in text
    assert not slower


def test_the_history_of_this_repository_can_be_read(history: ModuleType) -> None:
    if history.FILE.exists():
        assert history.read(history.FILE)
