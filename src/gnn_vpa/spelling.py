"""What people write in lists: `gin,gcn` on the command line, the same or a list in Python."""

import os
from collections.abc import Iterable
from operator import index

from .errors import UsageError


def listed(names: str | Iterable[str], what: str = "names") -> list[str]:
    """Split names that are separated by commas, or take a list of them.

    Args:
        names: One name, several in one text, or several texts.
        what: What to call them in messages.

    Raises:
        UsageError: There is something else in it.

    Example:
        >>> listed("gin, gcn"), listed(["gin", "gcn"])
        (['gin', 'gcn'], ['gin', 'gcn'])
    """
    if isinstance(names, str):
        return [name.strip() for name in names.split(",") if name.strip()]
    if not isinstance(names, Iterable):
        raise UsageError(f"{what}: expected a name or several, got {names!r}")
    found = []
    for name in names:
        if not isinstance(name, str):
            raise UsageError(f"{what}: expected names, but there is {name!r} among them")
        found += listed(name)
    return found


def whole_numbers(numbers: str | int | Iterable[int], what: str) -> list[int]:
    """Take one whole number or several, also as a text of them with commas.

    Raises:
        UsageError: There is something else in it.

    Example:
        >>> whole_numbers("0,1, 2", "seeds"), whole_numbers(7, "seeds"), whole_numbers([7], "seeds")
        ([0, 1, 2], [7], [7])
    """
    if isinstance(numbers, str):
        try:
            return [int(number) for number in listed(numbers)]
        except ValueError:
            raise UsageError(
                f"{what}: {numbers!r} must be whole numbers, like 0 or 0,1,2"
            ) from None
    if not isinstance(numbers, Iterable):
        return [whole_number(numbers, what)]
    return [whole_number(number, what) for number in numbers]


def whole_number(number: object, what: str, least: int | None = None) -> int:
    """Return a whole number as Python's own, also one of NumPy.

    Raises:
        UsageError: It is something else, or too small.

    Example:
        >>> whole_number(2.5, "epochs")
        Traceback (most recent call last):
            ...
        gnn_vpa.errors.UsageError: epochs: expected a whole number, got 2.5
    """
    wanted = "a whole number" if least is None else f"a whole number from {least} on"
    try:
        value = index(number)  # type: ignore[arg-type]
    except TypeError:
        value = None
    if value is None or isinstance(number, bool) or (least is not None and value < least):
        raise UsageError(f"{what}: expected {wanted}, got {number!r}")
    return value


def path_text(path: object, what: str) -> str:
    """Return a path as text.

    Raises:
        UsageError: It is no path.

    Example:
        >>> path_text(7, "out")
        Traceback (most recent call last):
            ...
        gnn_vpa.errors.UsageError: out: expected a path, got 7
    """
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise UsageError(f"{what}: expected a path, got {path!r}")
    return str(os.fspath(path))
