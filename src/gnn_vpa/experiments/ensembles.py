"""The models that a run has kept of a method, to speak together.

What belongs together is what the run's results say: all finished cells of a method, with its seeds
and repeats. A model that is lost, or one of another run, would make a mean of something else.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from torch import nn

from ..errors import UsageError
from ..trained import Ensemble, load_model
from ..trained.saving import holds_model
from ..training import Protocol
from .frames import read_mapping
from .kept import FOLDER, METHOD, is_kept, name_of_model
from .selection import Selection
from .store import query

_OF_ONE_CELL = ("id", "key", "session", "seed", "repeat")  # all else its seeds and repeats share
_AS_JSON = ("protocol", "selection")
_LONG = {  # what a line has no room for
    "content": "their data",
    "source": "the source of the model",
    "division": "how graphs are divided",
    "settings": "the settings to choose from",
}


class _Recorded(NamedTuple):
    """What the results know of a cell.

    Attributes:
        key: Its key.
        method: What its seeds and repeats share, by name.
        models: The names of its models: of a fold that diverged there is none.
        candidates: The keys of the cells that it has chosen from.
    """

    key: str
    method: dict[str, Any]
    models: list[str]
    candidates: list[str]


def _recorded(out: Path) -> list[_Recorded]:
    """Return all finished cells of a run."""
    cells = query(out, "SELECT * FROM cells ORDER BY id")
    folds: dict[int, list[int]] = {}
    for row in query(out, "SELECT cell, fold FROM folds WHERE status = 'done' ORDER BY fold"):
        folds.setdefault(row["cell"], []).append(row["fold"])
    return [_described(out, cell, folds.get(cell["id"], [])) for cell in cells]


def _described(out: Path, row: Mapping[str, Any], folds: Sequence[int]) -> _Recorded:
    """Return what the results know of a cell, from its row and the folds that went well."""
    protocol = read_mapping(out, row["protocol"] or "{}", "protocol of a cell")
    selection = read_mapping(out, row["selection"] or "{}", "choices of a cell")
    candidates = selection.pop("candidates", [])
    method = {name: row[name] for name in row if name not in (*_OF_ONE_CELL, *_AS_JSON)}
    method |= {**asdict(Protocol()), **protocol, **selection}
    seeds = [row["seed"]]
    if selection:
        seeds = Selection((), selection["final_runs"]).seeds(row["seed"])
    models = [name_of_model(fold, seed, seeds) for fold in folds for seed in seeds]
    return _Recorded(row["key"], method, models, candidates)


def _difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Say in what two methods differ first, in words."""
    name = next(name for name in {**one, **other} if one.get(name) != other.get(name))
    shown = name.removeprefix("num_").replace("_", " ")
    return _LONG.get(name, f"{shown} ({one.get(name)}, {other.get(name)})")


def load_run(
    out: Path, method: str | None = None, model: Callable[..., nn.Module] | None = None
) -> Ensemble:
    """Read the models of a run's folds, of all seeds and repeats of a method, to speak together.

    Args:
        out: The run's folder.
        method: Which of its methods, as the run calls it, or a part of that; None: there is one.
        model: The function that makes the network, where it is not one of ours.

    Raises:
        UsageError: The run has kept no models, not all of them, or those of several methods.
    """
    name, keys = _method(out, method)
    folders = [
        out / FOLDER / cell.key / kept for cell in _cells(out, name, keys) for kept in cell.models
    ]
    for folder in folders:
        if not holds_model(folder):
            raise UsageError(
                f"{folder.parent} has no {folder.name}, the model of a fold that the run has "
                "finished: it is lost, or the run was without --keep-models. Copy it again, or run "
                "everything with --keep-models into a new folder"
            )
    if not folders:
        raise UsageError(f"{out} has no model of {name}: all folds diverged")
    return Ensemble([load_model(folder, model=model) for folder in folders])


def _method(out: Path, asked: str | None) -> tuple[str, list[str]]:
    """Return the name of the one method that is meant, and the keys of its cells with models."""
    found = {
        path.parent.name: path.read_text(encoding="utf-8").strip()
        for path in sorted((out / FOLDER).glob(f"*/{METHOD}"))
    }
    if not found:
        raise UsageError(
            f"{out} has kept no models: run it with --keep-models, into a new folder if it is done"
        )
    part = "" if asked is None else asked.casefold()
    chosen = {key: name for key, name in found.items() if part in name.casefold()}
    chosen = {key: name for key, name in chosen.items() if name.casefold() == part} or chosen
    if len(set(chosen.values())) != 1:
        there = "; ".join(sorted(set(chosen.values()) or set(found.values())))
        wrong = "models of several methods" if chosen else f"no method {asked!r}"
        raise UsageError(f"{out} has {wrong}: name one with --method. There are: {there}")
    return next(iter(chosen.values())), list(chosen)


def _cells(out: Path, name: str, keys: Sequence[str]) -> list[_Recorded]:
    """Return all recorded cells of a method: those of these keys, and their seeds and repeats.

    Candidates of a choice count only where a run of their own has kept their models.
    """
    recorded = _recorded(out)
    if unfinished := [key for key in keys if key not in {cell.key for cell in recorded}]:
        raise UsageError(
            f"{out / FOLDER / unfinished[0]} is of a part of {name} that is not finished: type the "
            "run's command again, or remove that folder"
        )
    with_models = [cell for cell in recorded if cell.key in keys]
    first = with_models[0]
    for cell in with_models:
        if cell.method != first.method:
            differ = _difference(first.method, cell.method)
            alike = [other.key for other in with_models if other.method == first.method]
            raise UsageError(
                f"{out} has kept models of several runs under one name, {name}: they differ in "
                f"{differ}. Their mean would be of no method: run each into a folder of its own, "
                f"or leave in {out / FOLDER} what is of one run, such as {', '.join(alike)}, and "
                "move the rest away"
            )
    tried = {key for cell in recorded for key in cell.candidates}
    return [
        cell
        for cell in recorded
        if cell.method == first.method and (cell.key not in tried or is_kept(out, cell.key))
    ]
