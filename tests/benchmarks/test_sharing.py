"""Groups beside each other: what the benchmark counts."""

from pathlib import Path

from benchmarks import sharing
from benchmarks._record import Record
from benchmarks.sharing import Group


def test_a_group_beside_others_is_compared_with_the_same_alone(tmp_path: Path) -> None:
    groups = [Group("MUTAG", "gin", ("vpa",), precision="float32")]
    sharing.report("cpu", [1], 0.2, Record(tmp_path / "out.md"), groups)
    rows = [line.split("|")[1:-1] for line in (tmp_path / "out.md").read_text().splitlines()[-2:]]
    assert [int(row[0]) for row in rows] == [1, 1]
    alone, beside = (float(row[1]) for row in rows)
    assert alone > 0
    assert abs(float(rows[1][2].strip(" x")) - alone / beside) < 0.1 * alone / beside + 0.02
