import io
import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnn_vpa.errors import GnnVpaError
from gnn_vpa.graphs import _text


def read(
    text: bytes, dtype: type[int] | type[float] = int, columns: int | None = None
) -> list[Any]:
    blocks = [values for _, values in _text.read_blocks(io.BytesIO(text), "F", dtype, columns)]
    return np.concatenate(blocks).tolist() if blocks else []


@pytest.mark.parametrize(
    "text",
    [b"1,2\n3,4\n", b"1, 2\n3, 4", b"1,2\r\n3,4\r\n", b"1 , 2\n3,4\n\n \n\r\n", b" 1,+2\n3,4 \n"],
    ids=["plain", "spaces", "windows", "blank end", "plus"],
)
def test_the_layouts_that_occur(text: bytes) -> None:
    assert read(text, columns=2) == [[1, 2], [3, 4]]


def test_negative_and_decimal_numbers() -> None:
    assert read(b"-1\n1\n") == [[-1], [1]]
    assert read(b"-1.5, 2e-3\n.5, 1E4\n", float) == [[-1.5, 0.002], [0.5, 10000.0]]


def test_an_empty_file_has_no_numbers() -> None:
    assert read(b"") == read(b"\n\n") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"1,2\nx,4\n", "F, line 2, column 1: 'x' is not a whole number"),
        (b"1,2\n3,4.0\n", "F, line 2, column 2: '4.0' is not a whole number"),
        (b"1,2\n\n3,4\n", "F, line 2: 2 number.s. expected, 1 found"),
        (b"1,2,3\n4\n", "F, line 1: 2 number.s. expected, 3 found"),
        (b"1 2,3\n4,5\n", "F, line 1, column 1: '1 2' is not a whole number"),
        (b"1,2\n-,4\n", "F, line 2, column 1: '-' is not a whole number"),
        (b"1-2,3\n4,5\n", "F, line 1, column 1: '1-2' is not a whole number"),
        (b"1,2\n,4\n", "F, line 2, column 1: '' is not a whole number"),
        (b"1,2\nx" + b"9" * 30 + b",4\n", "line 2"),
        (b"1,2\n3 4,\n", "F, line 2, column 1: '3 4' is not a whole number"),
        (b"1,2\n3-4,\n", "F, line 2, column 1: '3-4' is not a whole number"),
        (b"1, 2\n3, \n", "F, line 2, column 2: '' is not a whole number"),
        (b"1, 2\n3, -\n", "F, line 2, column 2: '-' is not a whole number"),
        (b"1, 2\n- 3, 4\n", "F, line 2, column 1: '- 3' is not a whole number"),
        (b"1, 2\n1_000, 4\n", "F, line 2, column 1: '1_000' is not a whole number"),
        (b"1, 2\n9223372036854775808, 4\n", "line 2, column 1: .* is not a whole number of 64"),
        (b"1, 2\n-9223372036854775809, 4\n", "line 2, column 1: .* is not a whole number of 64"),
        (b"1, 2\n3, " + b"9" * 5000 + b"\n", "line 2, column 2: .* is not a whole number of 64"),
    ],
)
def test_the_line_of_a_fault_is_named(text: bytes, message: str) -> None:
    with pytest.raises(GnnVpaError, match=message):
        read(text, columns=2)


def test_lines_are_counted_through_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_text, "_BLOCK", 7)
    lines = [f"{number}, {number + 1}" for number in range(50)]
    assert read("\n".join(lines).encode(), columns=2) == [[n, n + 1] for n in range(50)]
    lines[33] = "33, ?"
    with pytest.raises(GnnVpaError, match=r"line 34, column 2: '\?'"):
        read("\n".join(lines).encode(), columns=2)


@given(
    rows=st.lists(st.tuples(*[st.integers(-(2**63), 2**63 - 1)] * 3), max_size=30),
    end=st.sampled_from(["\n", "\r\n"]),
    separator=st.sampled_from([",", ", ", " ,"]),
)
def test_what_was_written_is_read(rows: list[tuple[int, ...]], end: str, separator: str) -> None:
    text = "".join(separator.join(map(str, row)) + end for row in rows)
    assert read(text.encode(), columns=3) == [list(row) for row in rows]


WHOLE = re.compile(r"[+-]?[0-9]+")
DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def one_by_one(text: str, dtype: type[int] | type[float], columns: int) -> list[list[float]] | None:
    """Read as the layout is meant, a field at a time; None where a line is not in it."""
    rows = []
    for line in text.rstrip(" \r\n").split("\n") if text.strip(" \r\n") else []:
        fields = [field.strip(" \r") for field in line.split(",")]
        pattern = WHOLE if dtype is int else DECIMAL
        if len(fields) != columns or not all(map(pattern.fullmatch, fields)):
            return None
        numbers = [dtype(field) for field in fields]
        if dtype is int and any(not -(2**63) <= number < 2**63 for number in numbers):
            return None
        if dtype is float and not all(map(math.isfinite, numbers)):
            return None
        rows.append(numbers)
    return rows


@settings(max_examples=400)
@given(
    text=st.lists(
        st.sampled_from([*"0123456789", *"-+.e,,  \r\n\n_x", ", ", "1, 2\n", "9" * 18, "e400"]),
        max_size=30,
    ).map("".join),
    dtype=st.sampled_from([int, float]),
    columns=st.integers(1, 3),
)
def test_whatever_is_written_is_read_as_it_is_meant_or_refused(
    text: str, dtype: type[int] | type[float], columns: int
) -> None:
    meant = one_by_one(text, dtype, columns)
    if meant is None:
        with pytest.raises(GnnVpaError, match=r"^F, line "):
            read(text.encode(), dtype, columns)
    else:
        assert read(text.encode(), dtype, columns) == meant


@pytest.mark.parametrize("field", ["nan", "NaN", "inf", "-inf", "Infinity", "1e400", "-1e999"])
def test_a_number_that_is_not_finite_is_refused(field: str) -> None:
    with pytest.raises(
        GnnVpaError, match=rf"F, line 2, column 2: '{field}' is not a finite number"
    ):
        read(f"1, 2\n3, {field}\n".encode(), float)


class Endless(io.RawIOBase):
    """A file without an end, which counts what was read of it."""

    def __init__(self, content: bytes) -> None:
        self.content, self.done = content, 0

    def read(self, size: int = -1) -> bytes:
        assert self.done < 2 * _text._LONGEST_LINE, "it is read on and on"
        self.done += size
        return self.content * (size // len(self.content))


@pytest.mark.parametrize(
    "content", [b"\0", b"1", b" ", b"\n"], ids=["zeros", "ones", "spaces", "blank"]
)
def test_a_line_without_an_end_is_not_waited_for(content: bytes) -> None:
    with pytest.raises(GnnVpaError, match=r"F, line 1: no line of numbers ends within"):
        list(_text.read_blocks(Endless(content), "F", int))  # type: ignore[arg-type]


def test_a_zip_is_asked_for_little_at_once() -> None:
    # It unpacks as many compressed bytes as it is asked for, each of which may be 7000 of text.
    asked = []

    class Counted(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            asked.append(size)
            return super().read(size)

    blocks = list(_text.read_blocks(Counted(b"1, 2\n" * 200_000), "F", int))
    assert sum(len(values) for _, values in blocks) == 200_000
    assert set(asked) == {1 << 15}
