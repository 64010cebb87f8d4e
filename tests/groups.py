"""Tests that run in one worker, because what they share is slow to make.

With pytest 9.2 the mark ``xdist_group`` of pytest-xdist 3.8 groups nothing, and nobody is told
(pytest-xdist, issue 1386): so groups are made from the names of tests.
"""

FILES = {
    "tests/experiments/test_ray.py": "a cluster",
    "tests/test_docs_site.py": "the site",
    "tests/analysis/report/test_browser.py": "the report",
    "tests/analysis/test_record.py": "the record",
    "tests/auditing/test_browser.py": "the page of an audit",
    "tests/pyg/test_traps.py": "a process with PyG",
    # A server that forks processes, see the fixture `in_process`.
    "tests/experiments/test_locks.py": "processes",
    "tests/experiments/test_store.py": "processes",
    "tests/experiments/test_survival.py": "processes",
    "tests/experiments/test_workers.py": "processes",
    "tests/training/test_workers.py": "processes",
}
LARGE = ("COLLAB", "REDDIT-BINARY", "REDDIT-MULTI-5K")  # data sets that take seconds to load


# Groups that mostly wait for processes: one is the first, and another comes after groups that work.
FIRST, LATE = "a cluster", "processes"


def turn_of(test: str) -> int:
    """Return when it is a test's turn: groups come before single tests, and no core is idle."""
    group = group_of(test)
    return 3 if group == test else 0 if group == FIRST else 2 if group == LATE else 1


def group_of(test: str) -> str:
    """Return the group of a test, by its name; that of most is they themselves."""
    large = (name for name in LARGE if f"[{name}" in test)
    return FILES.get(test.partition("::")[0]) or next(large, test)
