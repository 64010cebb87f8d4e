"""The lines that are counted are those that run."""

import ast
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from . import lines
from .lines import _Loader, noted, reached

SOURCE = '''"""A module."""
from __future__ import annotations
import functools
FIRST = 1

def unused():
    """Return nothing."""
    return None

@functools.cache
@functools.wraps(unused)
def branches(value):
    """Say which way it goes."""
    match value:
        case 0:
            found = "none"
        case 1 | 2:
            found = "few"
        case _:
            found = "many"
    if value > 5:
        found += "!"
    elif value > 4:
        found += "?"
    else:
        pass
    for _ in range(value):
        continue
    else:
        found = str(found)
    while False:
        found = ""
    try:
        [][value]
        found = "never"
    except IndexError:
        found = found.upper()
    finally:
        last = lambda: (
            found
        )
    with open(__file__) as file:
        class Local:
            """A class."""
            kept = file
            def method(self): return 1
    return last()

assert branches(2) == "FEW"
assert branches(5) == "MANY?"
'''


def traced(names: dict[str, Any]) -> set[int]:
    """Return the lines that a tracer sees."""
    found: set[int] = set()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename != "sample":
            return None
        if event == "line":
            found.add(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        exec(compile(SOURCE, "sample", "exec"), names)
    finally:
        sys.settrace(before)
    return found


def test_they_are_those_that_a_tracer_sees() -> None:
    names: dict[str, Any] = {"__file__": __file__, "__name__": "sample"}
    exec(compile(noted(ast.parse(SOURCE)), "sample", "exec"), names)
    seen = traced({"__file__": __file__, "__name__": "sample"})
    docstrings = {1, SOURCE.count("\n", 0, SOURCE.index('"""A class')) + 1}
    inner = {SOURCE.count("\n", 0, SOURCE.index("            found\n")) + 1}  # not the first of its
    unmatched = {SOURCE.count("\n", 0, SOURCE.index("case 0")) + 1}  # tried, and not taken
    assert reached(names) == seen - docstrings - inner - unmatched


def test_docstrings_stay() -> None:
    names: dict[str, Any] = {"__file__": __file__, "__name__": "sample"}
    exec(compile(noted(ast.parse(SOURCE)), "sample", "exec"), names)
    assert names["__doc__"] == "A module."
    assert names["unused"].__doc__ == "Return nothing."


def test_what_was_compiled_before_is_taken_for_the_same_source_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path, compiled = tmp_path / "module.py", list[ast.AST]()
    monkeypatch.setattr(lines, "noted", lambda tree: (compiled.append(tree), noted(tree))[1])
    for text in ("value = 1", "value = 1", "value = 2"):  # of one length, within a second
        path.write_text(text)
        names: dict[str, Any] = {}
        exec(_Loader("module", str(path)).get_code("module"), names)
        assert names["value"] == int(text[-1])
        assert reached(names) == {1}
    assert len(compiled) == 2
