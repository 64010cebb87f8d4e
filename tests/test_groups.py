"""What tests share is made in one worker."""

from pathlib import Path

from .groups import FILES, group_of, turn_of


def test_tests_that_share_something_are_of_one_group(root: Path) -> None:
    assert [path for path in FILES if not (root / path).exists()] == []
    one, other = (f"tests/test_docs_site.py::test_{name}" for name in ("one", "other[1]"))
    assert group_of(one) == group_of(other) == "the site"
    assert group_of("tests/a.py::test_it[COLLAB-gin]") == group_of("tests/b.py::test_it[COLLAB]")
    assert group_of("tests/a.py::test_it[MUTAG]") == "tests/a.py::test_it[MUTAG]"


def test_groups_come_before_single_tests_and_those_that_wait_not_at_once() -> None:
    tests = [f"{path}::test_a" for path in reversed(FILES)]
    tests += ["tests/test_a.py::test_b", "tests/test_a.py::test_b[COLLAB]"]
    ordered = list(dict.fromkeys(group_of(test) for test in sorted(tests, key=turn_of)))
    assert ordered[0] == "a cluster"
    assert ordered[-2:] == ["processes", "tests/test_a.py::test_b"]
    assert "COLLAB" in ordered[1:-2]
