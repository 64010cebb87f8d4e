"""What tests share is made in one worker."""

from pathlib import Path

from .groups import FILES, group_of


def test_tests_that_share_something_are_of_one_group(root: Path) -> None:
    assert [path for path in FILES if not (root / path).exists()] == []
    one, other = (f"tests/test_docs_site.py::test_{name}" for name in ("one", "other[1]"))
    assert group_of(one) == group_of(other) == "the site"
    assert group_of("tests/a.py::test_it[COLLAB-gin]") == group_of("tests/b.py::test_it[COLLAB]")
    assert group_of("tests/a.py::test_it[MUTAG]") == "tests/a.py::test_it[MUTAG]"
