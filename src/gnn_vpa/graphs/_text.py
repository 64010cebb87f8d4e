"""Numbers out of comma-separated text: quickly, in blocks, and with the line of what is wrong."""

import warnings
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import GnnVpaError

_BLOCK = 1 << 18  # bytes at once; a zip unpacks as many compressed bytes, some 40 times the text
_INTEGER_CHARACTERS = b"0123456789- \r"
_FLOAT_CHARACTERS = _INTEGER_CHARACTERS + b"+.eE"


def read_blocks(
    stream: IO[bytes], file: str, dtype: type[int] | type[float], columns: int | None = None
) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield the file's numbers as (line of the first row, array [lines, columns]).

    Windows line endings, spaces around numbers and blank lines at the end are fine.

    Args:
        stream: The file, open for reading.
        file: What to call it in messages.
        dtype: `int` or `float`, both of 64 bits.
        columns: Numbers in a line; without it, as many as the first line has.

    Raises:
        GnnVpaError: A line holds something else; the message names it.
    """
    line = 1
    for text in _whole_lines(stream):
        if columns is None:
            columns = text[: text.index(b"\n")].count(b",") + 1
        values = _parse_block(text, dtype, columns)
        if values is None:
            values = _parse_lines(text, file, line, dtype, columns)
        yield line, values
        line += len(values)


def _whole_lines(stream: IO[bytes]) -> Iterator[bytes]:
    """Cut a stream into blocks of whole lines, without blank lines at the very end."""
    rest = b""
    while chunk := stream.read(_BLOCK):
        text = rest + chunk
        # The last line with something on it waits: it may go on, or blank lines may follow.
        end = text.rfind(b"\n", 0, len(text.rstrip())) + 1
        if end:
            yield text[:end]
        rest = text[end:]
    if last := rest.rstrip():
        yield last + b"\n"


def _parse_block(text: bytes, dtype: type[int] | type[float], columns: int) -> NDArray[Any] | None:
    """Parse a block at once, or return None where it is not exactly as it should be."""
    lines = text.count(b"\n")
    characters = _INTEGER_CHARACTERS if dtype is int else _FLOAT_CHARACTERS
    if text.translate(None, characters) != (b"," * (columns - 1) + b"\n") * lines:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # numpy only warns where it stops at a malformed number
        try:
            values = np.fromstring(text.replace(b",", b" "), dtype=dtype, sep=" ")
        except (DeprecationWarning, ValueError):
            return None
    return values.reshape(lines, columns) if values.size == lines * columns else None


def _parse_lines(
    text: bytes, file: str, first: int, dtype: type[int] | type[float], columns: int
) -> NDArray[Any]:
    """Parse a block line by line: slow, but it finds the line that is wrong."""
    kind = "a whole number" if dtype is int else "a number"
    rows = []
    for number, line in enumerate(text.split(b"\n")[:-1], first):
        fields = line.split(b",")
        if len(fields) != columns:
            raise GnnVpaError(
                f"{file}, line {number}: {columns} number(s) expected, {len(fields)} found"
            )
        for field in fields:
            try:
                rows.append(np.array(dtype(field), dtype=dtype))
            except (ValueError, OverflowError):
                shown = field.strip().decode(errors="replace")[:40]
                raise GnnVpaError(f"{file}, line {number}: {shown!r} is not {kind}") from None
    return np.array(rows, dtype=dtype).reshape(-1, columns)
