"""Groups beside each other: what the benchmark counts."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType


def test_a_group_beside_others_is_compared_with_the_same_alone(
    benchmark_module: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    sharing, record = (benchmark_module(name) for name in ("sharing", "_record"))
    groups = [sharing.Group("MUTAG", "gin", ("vpa",), precision="float32")]
    sharing.report("cpu", [1], 0.2, record.Record(tmp_path / "out.md"), groups)
    rows = [line.split("|")[1:-1] for line in (tmp_path / "out.md").read_text().splitlines()[-2:]]
    assert [int(row[0]) for row in rows] == [1, 1]
    alone, beside = (float(row[1]) for row in rows)
    assert alone > 0
    assert abs(float(rows[1][2].strip(" x")) - alone / beside) < 0.1 * alone / beside + 0.02
