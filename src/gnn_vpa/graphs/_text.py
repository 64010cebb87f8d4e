"""Numbers out of comma-separated text: quickly, in blocks, and with the line of what is wrong."""

import math
import re
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import GnnVpaError

# A zip unpacks as many compressed bytes at once as are asked for: 7000 times the text, if it is
# made to harm. So a block is read in small steps.
_STEP = 1 << 15
_BLOCK = 1 << 18
_LONGEST_LINE = 1 << 22

_INTEGER_CHARACTERS = b"0123456789-"
_FLOAT_CHARACTERS = _INTEGER_CHARACTERS + b"+.eE"
_INTEGER = re.compile(rb"[+-]?[0-9]+")
_FLOAT = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(rb"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_LONELY_MINUS = re.compile(rb"-(?![0-9.])")
_AROUND_NUMBERS = re.compile(rb"\A[ \r]+|(?<=[,\n])[ \r]+|[ \r]+(?=[,\n])")


def read_blocks(
    stream: IO[bytes], file: str, dtype: type[int] | type[float], columns: int | None = None
) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield the file's numbers as (line of the first row, array [lines, columns]).

    Windows line endings, spaces around numbers and blank lines at the end are fine.

    Args:
        stream: The file, open for reading.
        file: What to call it in messages.
        dtype: `int` or `float`, both of 64 bits; a `float` is finite.
        columns: Numbers in a line; without it, as many as the first line has.

    Raises:
        GnnVpaError: A line holds something else; the message names it.
    """
    line = 1
    for text in _whole_lines(stream):
        if len(text) > _LONGEST_LINE:
            raise GnnVpaError(
                f"{file}, line {line}: no line of numbers ends within {_LONGEST_LINE:,} bytes"
            )
        if columns is None:
            columns = text[: text.index(b"\n")].count(b",") + 1
        values = _parse_block(text, dtype, columns)
        if values is None:
            values = _parse_lines(text, file, line, dtype, columns)
        yield line, values
        line += len(values)


def _whole_lines(stream: IO[bytes]) -> Iterator[bytes]:
    """Cut a stream into blocks of whole lines, without blank lines at the very end.

    The last block is longer than `_LONGEST_LINE` where no line ends within it.
    """
    rest = b""
    while chunk := b"".join(stream.read(_STEP) for _ in range(max(_BLOCK // _STEP, 1))):
        text = rest + chunk
        # The last line with something on it waits: it may go on, or blank lines may follow.
        end = text.rfind(b"\n", 0, len(text.rstrip())) + 1
        if end:
            yield text[:end]
        rest = text[end:]
        if len(rest) > _LONGEST_LINE:
            yield rest
            return
    if last := rest.rstrip():
        yield last + b"\n"


def _parse_block(text: bytes, dtype: type[int] | type[float], columns: int) -> NDArray[Any] | None:
    """Parse a block at once, or return None where it is not exactly as it should be."""
    lines = text.count(b"\n")
    characters = _INTEGER_CHARACTERS if dtype is int else _FLOAT_CHARACTERS
    if b"\r" in text or _has_space_behind(text):
        text = _AROUND_NUMBERS.sub(b"", text)
    if text.translate(None, characters + b" ") != (b"," * (columns - 1) + b"\n") * lines:
        return None
    fields = text.replace(b"\n", b",")
    if b"-" in fields and _LONELY_MINUS.search(fields):  # numpy takes it for a 0
        return None
    try:
        # numpy stops at a malformed number, with a warning or an error depending on its version.
        # The 0 appended to the last field is then missing.
        values = np.fromstring(fields + b"0", dtype=dtype, sep=",")
    except (DeprecationWarning, ValueError):
        return None
    if values.size != lines * columns + 1 or not _is_exact(values):
        return None
    return values[:-1].reshape(lines, columns)


def _has_space_behind(text: bytes) -> bool:
    """Whether a field ends with a space: one of nothing else numpy takes for a 0."""
    code = np.frombuffer(text, np.uint8)
    this, following = code[:-1], code[1:]
    ends = (following == ord(",")) | (following == ord("\n"))
    return bool((ends & (this == ord(" "))).any())


def _is_exact(values: NDArray[Any]) -> bool:
    """Whether no number was beyond what its type holds: numpy takes the limit for it."""
    if values.dtype.kind == "f":
        return bool(np.isfinite(values).all())
    return int(values.max(initial=0)) < np.iinfo(values.dtype).max  # for negative ones as well


def _parse_lines(
    text: bytes, file: str, first: int, dtype: type[int] | type[float], columns: int
) -> NDArray[Any]:
    """Parse a block line by line: slow, but it finds the line that is wrong."""
    rows = []
    for number, line in enumerate(text.split(b"\n")[:-1], first):
        fields = line.split(b",")
        if len(fields) != columns:
            raise GnnVpaError(
                f"{file}, line {number}: {columns} number(s) expected, {len(fields)} found"
            )
        for column, field in enumerate(fields, 1):
            value = _number(field.strip(), dtype)
            if isinstance(value, str):
                where = f"line {number}, column {column}" if columns > 1 else f"line {number}"
                shown = field.strip().decode(errors="replace")[:40]
                raise GnnVpaError(f"{file}, {where}: {shown!r} is not {value}")
            rows.append(value)
    return np.array(rows, dtype=dtype).reshape(-1, columns)


def _number(field: bytes, dtype: type[int] | type[float]) -> int | float | str:
    """Return a field's number, or what it is not."""
    if dtype is int:
        if not _INTEGER.fullmatch(field):
            return "a whole number"
        # Python refuses to read integers of thousands of digits.
        value = int(field) if len(field.lstrip(b"+-0")) < 20 else 2**63
        return value if -(2**63) <= value < 2**63 else "a whole number of 64 bits"
    if not _FLOAT.fullmatch(field):
        return "a finite number" if _NOT_FINITE.fullmatch(field) else "a number"
    number = float(field)
    return number if math.isfinite(number) else "a finite number"
