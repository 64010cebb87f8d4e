"""What can be set about a training and a model, each with one value or with several to try."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import product
from math import isfinite
from numbers import Integral, Real
from typing import Any, Final, get_args

from ..errors import UsageError
from ..spelling import listed
from ..training import METRICS, Protocol
from ..training.task import ClassWeight, Loss, Optimizer, Precision, Schedule

_NONE = "none"


@dataclass(frozen=True)
class Control:
    """One thing that can be set about a training.

    Attributes:
        field: What the protocol calls it.
        read: Makes a value of what somebody has written, or raises ValueError with what it expects.

    Example:
        >>> CONTROLS["lr"].field, CONTROLS["lr"].read("0.01")
        ('learning_rate', 0.01)
    """

    field: str
    read: Callable[[object], Any]

    def values(self, asked: object, name: str) -> list[Any]:
        """Return what is to be tried: one value, several, or a text of them with commas.

        Raises:
            UsageError: One of them cannot be; the message names it.
        """
        values = []
        for value in several(asked, name):
            try:
                values.append(self.read(value))
            except ValueError as error:
                raise UsageError(f"{name}: {error}") from None
        return list(dict.fromkeys(values))


def several(asked: object, name: str) -> list[object]:
    """Return the values of a setting: of a text those between its commas.

    Example:
        >>> several("0.01,0.001", "lr"), several(5, "depth"), several([3, 5], "depth")
        (['0.01', '0.001'], [5], [3, 5])
    """
    if isinstance(asked, str):
        values: list[object] = list(listed(asked))
    elif isinstance(asked, Iterable) and not isinstance(asked, Mapping):
        values = list(asked)
    else:
        values = [asked]
    if not values:
        raise UsageError(f"{name}: there is no value in {asked!r}")
    return values


def _number(least: float, *, above: bool = False) -> Callable[[object], float]:
    wanted = f"a number {'above' if above else 'from'} {least:g}{'' if above else ' on'}"

    def read(value: object) -> float:
        number = _real(value, wanted)
        if number < least or (above and number == least):
            raise ValueError(f"expected {wanted}, got {value!r}")
        return number

    return read


def _whole(least: int) -> Callable[[object], int]:
    wanted = f"a whole number from {least} on"

    def read(value: object) -> int:
        number = _real(value, wanted)
        if number != int(number) or number < least:
            raise ValueError(f"expected {wanted}, got {value!r}")
        return int(number)

    return read


def _real(value: object, wanted: str) -> float:
    try:
        if isinstance(value, bool) or not isinstance(value, Real | str):
            raise ValueError
        number = float(value)
        if not isfinite(number):
            raise ValueError
    except ValueError:
        raise ValueError(f"expected {wanted}, got {value!r}") from None
    return number


def _or_none(read: Callable[[object], Any]) -> Callable[[object], Any]:
    def read_or_none(value: object) -> Any:
        return None if value is None or value == _NONE else read(value)

    return read_or_none


def _one_of(*names: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        if isinstance(value, str) and value.strip().casefold() in names:
            return value.strip().casefold()
        near = get_close_matches(str(value).casefold(), names, n=1)
        advice = f"did you mean {near[0]}?" if near else f"use {', '.join(names)}"
        raise ValueError(f"{value!r} is unknown: {advice}")

    return read


CONTROLS: Final[dict[str, Control]] = {
    "lr": Control("learning_rate", _number(0, above=True)),
    "batch_size": Control("batch_size", _whole(1)),
    "weight_decay": Control("weight_decay", _number(0)),
    "epochs": Control("epochs", _whole(1)),
    "patience": Control("patience", _or_none(_whole(1))),
    "clip": Control("clip", _or_none(_number(0, above=True))),
    "schedule": Control("schedule", _one_of(*get_args(Schedule))),
    "optimizer": Control("optimizer", _one_of(*get_args(Optimizer))),
    "loss": Control("loss", _one_of(*get_args(Loss))),
    "class_weight": Control("class_weight", _one_of(*get_args(ClassWeight))),
    "metric": Control("metric", _one_of("auto", *METRICS)),
    "precision": Control("precision", _one_of(*get_args(Precision))),
}
"""What can be set about a training, by the names that commands and functions have for it."""


def protocols(asked: Mapping[str, object], spelled: Callable[[str], str] = str) -> list[Protocol]:
    """Combine ways to train: all values of a setting with all of the others.

    Args:
        asked: Values by the names of `CONTROLS`; None is what the protocol has by itself.
        spelled: How a name is written in messages.

    Raises:
        UsageError: A value cannot be used; the message names it.

    Example:
        >>> [p.learning_rate for p in protocols({"lr": "0.01,0.001", "epochs": 5})]
        [0.01, 0.001]
    """
    given = {name: value for name, value in asked.items() if value is not None}
    values = {name: CONTROLS[name].values(value, spelled(name)) for name, value in given.items()}
    if len(values.get("metric", ())) > 1:
        raise UsageError(f"{spelled('metric')}: one metric chooses the epoch, not several")
    fields = [CONTROLS[name].field for name in values]
    combined = product(*values.values())
    return [Protocol(**dict(zip(fields, chosen, strict=True))) for chosen in combined]


def option_grid(options: Mapping[str, object]) -> list[tuple[tuple[str, Any], ...]]:
    """Combine options of a model: all values of one with all of the others.

    Example:
        >>> option_grid({"width": [32, 64], "depth": 3})
        [(('depth', 3), ('width', 32)), (('depth', 3), ('width', 64))]
    """
    values = {name: _option_values(name, asked) for name, asked in options.items()}
    combined = product(*values.values())
    return [tuple(sorted(zip(values, chosen, strict=True))) for chosen in combined]


def _option_values(name: str, asked: object) -> list[Any]:
    read = _value if isinstance(asked, str) else _identity
    return list(dict.fromkeys(_plain(read(value), name) for value in several(asked, name)))


def _identity(value: Any) -> Any:
    return value


def _plain(value: object, name: str) -> Any:
    """Return a value that a file keeps: a number, a truth or a name; not NumPy's."""
    if isinstance(value, bool):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real) and isfinite(value):
        return float(value)
    if isinstance(value, str) and value:
        return value
    raise UsageError(f"{name}: expected a number, a name, true or false, got {value!r}")


def read_options(texts: Sequence[str]) -> dict[str, list[Any]]:
    """Read what the command line says of a model's options: `name=value,value`.

    Example:
        >>> read_options(["hidden=64,128", "act=relu", "bias=true"])
        {'hidden': [64, 128], 'act': ['relu'], 'bias': [True]}
    """
    found: dict[str, list[Any]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        name = name.strip()
        if not equals or not name.isidentifier():
            raise UsageError(f"--set {text}: expected NAME=VALUE, or NAME=VALUE,VALUE,...")
        if name in found:
            raise UsageError(f"--set {name}: it is there twice: write {name}=VALUE,VALUE")
        check_option(name)
        found[name] = [_value(value) for value in listed(values)]
        if not found[name]:
            raise UsageError(f"--set {text}: expected a value after =")
    return found


def check_option(name: str) -> None:
    """Refuse an option of a model that has the name of a setting of the training.

    Example:
        >>> check_option("hidden")
    """
    fields = {control.field: spelled for spelled, control in CONTROLS.items()}
    if name in fields or name in CONTROLS:
        spelled = fields.get(name, name).replace("_", "-")
        raise UsageError(f"{name} is a setting of the training, not of a model: use --{spelled}")


def _value(text: Any) -> Any:
    """Read what somebody has written: a number, true or false, or a name."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.casefold(), text)
