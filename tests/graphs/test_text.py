import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnn_vpa.errors import GnnVpaError
from gnn_vpa.graphs import _text


def read(text: bytes, dtype: type[int] | type[float] = int, columns: int | None = None):
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
    assert np.isnan(read(b"nan\n", float)[0][0])


def test_an_empty_file_has_no_numbers() -> None:
    assert read(b"") == read(b"\n\n") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"1,2\nx,4\n", "F, line 2: 'x' is not a whole number"),
        (b"1,2\n3,4.0\n", "F, line 2: '4.0' is not a whole number"),
        (b"1,2\n\n3,4\n", "F, line 2: 2 number.s. expected, 1 found"),
        (b"1,2,3\n4\n", "F, line 1: 2 number.s. expected, 3 found"),
        (b"1 2,3\n4,5\n", "F, line 1: '1 2' is not a whole number"),
        (b"1,2\n-,4\n", "F, line 2: '-' is not a whole number"),
        (b"1-2,3\n4,5\n", "F, line 1: '1-2' is not a whole number"),
        (b"1,2\n,4\n", "F, line 2: '' is not a whole number"),
        (b"1,2\nx" + b"9" * 30 + b",4\n", "line 2"),
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
    with pytest.raises(GnnVpaError, match=r"line 34: '\?'"):
        read("\n".join(lines).encode(), columns=2)


@given(
    rows=st.lists(st.tuples(*[st.integers(-(2**62), 2**62)] * 3), max_size=30),
    end=st.sampled_from(["\n", "\r\n"]),
    separator=st.sampled_from([",", ", ", " ,"]),
)
def test_what_was_written_is_read(rows: list[tuple[int, ...]], end: str, separator: str) -> None:
    text = "".join(separator.join(map(str, row)) + end for row in rows)
    assert read(text.encode(), columns=3) == [list(row) for row in rows]
