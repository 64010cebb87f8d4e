"""How graphs are divided into folds: as in the paper, as a file says, or by groups.

What somebody asks for is a `Division`; `Division.of` makes it one of a data set, and refuses what
does not fit it. Its name is all that results know of it: the content counts, not a file's name.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import UsageError
from .graphset import GraphSet
from .splits import Split, splits

_SEED = 42  # of the paper's folds; a repeat has the next one
_DIGITS = 16  # of a content's SHA-256 that a name has
_MASKS = "masks"


@dataclass(frozen=True)
class Division:
    """The paper's division: so many shuffled folds, stratified where there are classes.

    Attributes:
        name: What results know it by; empty for the paper's.

    Example:
        >>> len(Division().splits(torch.arange(60) % 2, folds=3))
        3
    """

    name: str = ""

    @property
    def folds(self) -> int | None:
        """How many folds there are, where the division itself says so."""
        return None

    def of(self, graphs: GraphSet) -> "Division":
        """Return the division of a data set, checked.

        Raises:
            UsageError: It does not fit the data; the message names the fold.
        """
        return self

    def splits(
        self, y: Tensor, folds: int, repeat: int = 0, classes: Sequence[object] | None = None
    ) -> list[Split]:
        """Return the parts of each fold; another repeat has other folds."""
        return splits(y, folds, _SEED + repeat, classes=classes)


@dataclass(frozen=True)
class FixedDivision(Division):
    """Splits that were made elsewhere.

    Example:
        >>> asked = SplitsAsked(asked=[[[0, 1], [2], [3]]])
        >>> from gnn_vpa.graphs import load
        >>> asked.of(load("MUTAG")).folds
        1
    """

    parts: tuple[Split, ...] = field(default=(), compare=False, repr=False)

    @property
    def folds(self) -> int:
        """How many folds there are."""
        return len(self.parts)

    def splits(
        self, y: Tensor, folds: int, repeat: int = 0, classes: Sequence[object] | None = None
    ) -> list[Split]:
        """Return the parts of each fold."""
        if repeat or not self.parts:
            raise UsageError(f"{self.name}: these splits are not here, or have no repeat {repeat}")
        return list(self.parts)


@dataclass(frozen=True)
class GroupedDivision(Division):
    """Folds that keep the graphs of a group together.

    Example:
        >>> division = GroupedDivision("groups", np.arange(30) // 3)
        >>> (first, *_) = division.splits(torch.arange(30) % 2, folds=3)
        >>> set((first.test // 3).tolist()) & set((first.train // 3).tolist())
        set()
    """

    groups: NDArray[np.int64] | None = field(default=None, compare=False, repr=False)

    def splits(
        self, y: Tensor, folds: int, repeat: int = 0, classes: Sequence[object] | None = None
    ) -> list[Split]:
        """Return the parts of each fold; another repeat has other folds."""
        if self.groups is None:
            raise UsageError(f"{self.name}: these groups are not here")
        return splits(y, folds, _SEED + repeat, self.groups, classes)


@dataclass(frozen=True, eq=False)
class SplitsAsked(Division):
    """Splits of a file, a list, or the data's own masks, before they are seen beside the data.

    Attributes:
        asked: The path of a JSON file, or of a folder with one for each data set (``NAME.json``);
            ``"masks"`` for the graphs' `train_mask`, `val_mask` and `test_mask`; or the splits
            themselves, as such a file has them. Each fold is
            ``{"test": [...], "model_selection": [{"train": [...], "validation": [...]}]}``,
            ``{"train": [...], "validation": [...], "test": [...]}`` or a list of the three; one
            fold may stand without a list around it. Graphs are numbered from 0; in the place of
            numbers there may be true or false for each graph.

    Example:
        >>> from gnn_vpa.graphs import load
        >>> SplitsAsked(asked=[[[0, 1], [2], [1]]]).of(load("MUTAG"))
        Traceback (most recent call last):
            ...
        gnn_vpa.errors.UsageError: splits, fold 0: graph 1 is in train and in test
    """

    asked: Any = None
    # Two of them are the same only where they are one: neither has a name yet to compare.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def of(self, graphs: GraphSet) -> FixedDivision:
        """Read, check and name the splits."""
        content, what = self._content(graphs)
        folds = [content] if _is_one_fold(content) else content
        if not isinstance(folds, Sequence) or isinstance(folds, str) or not folds:
            raise UsageError(f"{what}: expected a list of folds, got {_shown(content)}")
        parts = tuple(_split(fold, f"{what}, fold {n}", graphs) for n, fold in enumerate(folds))
        text = json.dumps([[part.tolist() for part in split] for split in parts])
        return FixedDivision(f"splits {_digest(text)}", parts)

    def _content(self, graphs: GraphSet) -> tuple[Any, str]:
        if self.asked == _MASKS:
            return _own_masks(graphs), f"{graphs.name}: masks"
        if not isinstance(self.asked, str | os.PathLike):
            return self.asked, "splits"
        path = Path(self.asked)
        if path.is_dir():
            path /= f"{graphs.name}.json"
        return read_json(path, "splits"), str(path)


@dataclass(frozen=True, eq=False)
class GroupsAsked(Division):
    """Groups that must stay together, before they are seen beside the data.

    Attributes:
        asked: A column of the data (``attributes:2``, or the name of an attribute that each PyG
            graph has), the path of a file (a JSON list, or a line for each graph), or the groups
            themselves, one for each graph.

    Example:
        >>> from gnn_vpa.graphs import load
        >>> GroupsAsked(asked=[1, 2, 3]).of(load("MUTAG"))
        Traceback (most recent call last):
            ...
        gnn_vpa.errors.UsageError: groups: there are 3, but MUTAG has 188 graphs: ...
    """

    asked: Any = None
    # Two of them are the same only where they are one: neither has a name yet to compare.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def of(self, graphs: GraphSet) -> GroupedDivision:
        """Read, check and name the groups."""
        what, values = self._values(graphs)
        if len(values) != graphs.num_graphs:
            raise UsageError(
                f"{what}: there are {len(values)}, but {graphs.name} has {graphs.num_graphs} "
                "graphs: give one group for each graph, in their order"
            )
        numbers: dict[str, int] = {}
        groups = [numbers.setdefault(value, len(numbers)) for value in map(_group_name, values)]
        name = f"{what} {_digest(json.dumps(groups))}"
        return GroupedDivision(name, np.array(groups, np.int64))

    def _values(self, graphs: GraphSet) -> tuple[str, list[Any]]:
        if isinstance(self.asked, str | os.PathLike):
            text = os.fspath(self.asked)
            path = Path(text)
            if path.suffix or path.name != text:
                return f"groups {path.name}", _read_groups(path)
            return f"groups {text}", _column(graphs, text)
        if not isinstance(self.asked, Iterable):
            raise UsageError(
                f"groups: expected a column, a file or a list, got {_shown(self.asked)}"
            )
        return "groups", list(self.asked)


def division(splits: object = None, groups: object = None) -> Division:
    """Return the division that somebody asks for: by splits, by groups, or the paper's.

    Example:
        >>> division() == Division()
        True
    """
    if splits is not None and groups is not None:
        raise UsageError("splits and groups: give one of them, both say what the folds are")
    if splits is not None:
        return SplitsAsked(asked=splits)
    return Division() if groups is None else GroupsAsked(asked=groups)


def read_json(path: Path, what: str) -> Any:
    """Read a user's JSON file.

    Raises:
        UsageError: It is not there, or no JSON.

    Example:
        >>> read_json(Path("no/such.json"), "splits")
        Traceback (most recent call last):
            ...
        gnn_vpa.errors.UsageError: splits: no/such.json cannot be read (No such file or directory)
    """
    try:
        return json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"{what}: {path} cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise UsageError(f"{what}: {path} is no JSON file ({error})") from error


# Splits -----------------------------------------------------------------------------------------

_NAMES = {"train": "train", "validation": "valid", "valid": "valid", "val": "valid", "test": "test"}
_SHOWN = {"train": "train", "valid": "validation", "test": "test"}


def _is_one_fold(content: object) -> bool:
    """Say whether a content is one fold by itself: by names, or three lists of graphs."""
    if isinstance(content, Mapping):
        return True
    if not isinstance(content, Sequence) or len(content) != 3:
        return False
    return all(_is_part(part) for part in content)


def _is_part(part: object) -> bool:
    if isinstance(part, Tensor | np.ndarray):
        return part.ndim == 1
    return isinstance(part, Sequence) and all(isinstance(n, int | np.integer) for n in part)


def _split(fold: Any, where: str, graphs: GraphSet) -> Split:
    if isinstance(fold, Mapping):
        named = _by_name(fold, where)
    elif isinstance(fold, Sequence) and not isinstance(fold, str) and len(fold) == 3:
        named = dict(zip(Split._fields, fold, strict=True))
    else:
        raise UsageError(
            f"{where}: expected train, validation and test by name, or a list of the three, got "
            f"{_shown(fold)}"
        )
    parts = [_part(named[part], f"{where}, {_SHOWN[part]}", graphs) for part in Split._fields]
    owner: dict[int, str] = {}
    for name, part in zip(_SHOWN.values(), parts, strict=True):
        for graph in part:
            if (other := owner.setdefault(graph, name)) != name:
                raise UsageError(f"{where}: graph {graph} is in {other} and in {name}")
        if len(set(part)) < len(part):
            twice = next(graph for graph in part if part.count(graph) > 1)
            raise UsageError(f"{where}: graph {twice} is in {name} twice")
    return Split(*(torch.tensor(part, dtype=torch.int64) for part in parts))


def _by_name(fold: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the parts of a fold by our names."""
    if "model_selection" in fold:
        inner = fold["model_selection"]
        if not isinstance(inner, Sequence) or len(inner) != 1 or not isinstance(inner[0], Mapping):
            raise UsageError(f"{where}: model_selection must be a list of one inner split")
        fold = {**{key: value for key, value in fold.items() if key == "test"}, **inner[0]}
    found: dict[str, Any] = {}
    for key, value in fold.items():
        if key not in _NAMES:
            raise UsageError(f"{where}: {key!r} is unknown: use train, validation and test")
        if _NAMES[key] in found:
            raise UsageError(f"{where}: the validation graphs are there twice")
        found[_NAMES[key]] = value
    for name in Split._fields:
        if name not in found:
            raise UsageError(f"{where}: there is no {_SHOWN[name]} part: each fold needs all three")
    return found


def _part(content: Any, where: str, graphs: GraphSet) -> list[int]:
    numbers = content.tolist() if isinstance(content, Tensor | np.ndarray) else content
    if not isinstance(numbers, Sequence) or isinstance(numbers, str):
        raise UsageError(f"{where}: expected the numbers of graphs, got {_shown(content)}")
    count = graphs.num_graphs
    if numbers and all(isinstance(n, bool | np.bool_) for n in numbers):
        if len(numbers) != count:
            raise UsageError(f"{where}: a mask of {len(numbers)} for {count} graphs")
        numbers = [graph for graph, chosen in enumerate(numbers) if chosen]
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise UsageError(f"{where}: {number!r} is not the number of a graph")
        if not 0 <= number < count:
            raise UsageError(
                f"{where}: there is no graph {number}, {graphs.name} has {count}, from 0"
            )
    if len(numbers) == 0:
        raise UsageError(f"{where}: there are no graphs in it")
    return [int(number) for number in numbers]


def _own_masks(graphs: GraphSet) -> dict[str, list[Any]]:
    parts = {"train": "train_mask", "validation": "val_mask", "test": "test_mask"}
    return {
        part: [_flag(value, mask) for value in _column(graphs, mask)]
        for part, mask in parts.items()
    }


def _flag(value: object, mask: str) -> bool:
    value = value.item() if isinstance(value, Tensor | np.generic) else value
    if value not in (0, 1):
        raise UsageError(f"{mask}: {value!r} of a graph is neither True nor False")
    return bool(value)


# Groups -----------------------------------------------------------------------------------------


def _read_groups(path: Path) -> list[Any]:
    if path.suffix == ".json":
        content = read_json(path, "groups")
        if not isinstance(content, list):
            raise UsageError(f"groups: {path} must be a list with a group for each graph")
        return content
    try:
        return list(path.read_text("utf-8").splitlines())
    except (OSError, UnicodeError) as error:
        raise UsageError(f"groups: {path} cannot be read ({error})") from error


def _group_name(value: object) -> str:
    value = value.item() if isinstance(value, Tensor | np.generic) else value
    if isinstance(value, str):
        value = value.strip()  # "a " and "a" are one group, wherever they come from
    if value is None or value == "" or value != value:
        raise UsageError("groups: a graph has none: give each graph a group")
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 1 and 1.0 are one group
    return repr(value)


def _column(graphs: GraphSet, name: str) -> list[Any]:
    """Return a column of the data: a value for each graph."""
    if name in graphs.columns:
        return list(graphs.columns[name])
    source, _, number = name.partition(":")
    attributes = graphs.graph_attributes
    there = sorted(graphs.columns)
    if attributes is not None:
        there += [f"attributes:{column}" for column in range(attributes.shape[1])]
        if source == "attributes" and attributes.shape[1] == 1:
            number = number or "0"
        if source == "attributes" and number.isdecimal() and int(number) < attributes.shape[1]:
            return attributes[:, int(number)].tolist()
    near = get_close_matches(name, there, n=1)
    has = f"it has {', '.join(there)}" if there else "it has none beside its graphs"
    advice = f"did you mean {near[0]}?" if near else has
    raise UsageError(f"{graphs.name} has no column {name!r}: {advice}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
