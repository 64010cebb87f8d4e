"""The models of a run's folds, kept beside its results."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from torch import nn

from ..errors import UsageError
from ..files import write_whole
from ..graphs import GraphSet
from ..trained import Ensemble, TrainedModel, load_model, model_of
from ..trained.container import CONFIG
from ..trained.saving import WEIGHTS, holds_model
from ..training import Lane, Outcome, Protocol, Task
from .cell import Cell
from .groups import first_fold
from .store import FILE, query

FOLDER, METHOD = "models", "method.txt"


def keep_fold_models(
    out: Path,
    cell: Cell,
    graphs: GraphSet,
    task: Task,
    protocol: Protocol,
    lanes: Sequence[Lane],
    outcomes: Sequence[Outcome],
) -> None:
    """Write the chosen weights of a cell's folds; a fold that diverged has none.

    Where a fold was trained several times, with several seeds, each has its own.
    """
    folder = out / FOLDER / cell.key
    write_whole(folder / METHOD, f"{replace(cell, seed=0, repeat=0)}\n")
    several = len({lane.seed for lane in lanes}) > 1
    for lane, outcome in zip(lanes, outcomes, strict=True):
        if outcome.diverged_epoch is not None:
            continue
        name = f"fold-{lane.fold - first_fold(cell)}" + (f"-seed-{lane.seed}" if several else "")
        model = model_of(graphs, task, protocol, lane, outcome, column=cell.target.column)
        model.save(folder / name)


def kept_keys(cells: Sequence[Cell]) -> frozenset[str]:
    """Return which cells' models are kept: all but those that others choose from.

    Example:
        >>> kept_keys([])
        frozenset()
    """
    tried = {candidate.key for cell in cells for candidate in cell.candidates()}
    trained = [cell.key for cell in cells if cell.protocol is not None]
    return frozenset(key for key in trained if key not in tried)


def is_kept(out: Path, key: str) -> bool:
    """Say whether a run has kept the models of a cell.

    Example:
        >>> is_kept(Path("nowhere"), "350999e7")
        False
    """
    return (out / FOLDER / key / METHOD).is_file()


def check_no_model(out: Path) -> None:
    """Refuse a folder for a run that holds a saved model, which the run's models would hide.

    Raises:
        UsageError: There is a model.

    Example:
        >>> check_no_model(Path("nowhere"))
    """
    if holds_model(out):
        raise UsageError(f"{out} holds a saved model: name another folder for the results")


def is_run(path: Path) -> bool:
    """Say whether a folder is that of a run, and not a model.

    Raises:
        UsageError: It is both, so that nobody knows which is meant.

    Example:
        >>> is_run(Path("nowhere"))
        False
    """
    has_results = (path / FILE).is_file()
    if has_results and holds_model(path):
        raise UsageError(
            f"{path} holds a saved model ({CONFIG}, {WEIGHTS}) and a run ({FILE}): move one of "
            "them into a folder of its own, and name that"
        )
    return has_results


def load_run(
    out: Path, method: str | None = None, model: Callable[..., nn.Module] | None = None
) -> Ensemble:
    """Read the models of a run's folds, to speak together.

    Args:
        out: The run's folder.
        method: Which of its methods, as the run calls it, or a part of that; None: there is one.
        model: The function that makes the network, where it is not one of ours.

    Raises:
        UsageError: The run has kept no models, or those of several methods.
    """
    found = {
        path.parent: path.read_text(encoding="utf-8").strip()
        for path in sorted((out / FOLDER).glob(f"*/{METHOD}"))
    }
    if not found:
        raise UsageError(
            f"{out} has kept no models: run it with --keep-models, into a new folder if it is done"
        )
    part = "" if method is None else method.casefold()
    chosen = {folder: name for folder, name in found.items() if part in name.casefold()}
    chosen = {f: n for f, n in chosen.items() if n.casefold() == part} or chosen
    if len(set(chosen.values())) != 1:
        there = "; ".join(sorted(set(chosen.values()) or set(found.values())))
        wrong = "models of several methods" if chosen else f"no method {method!r}"
        raise UsageError(f"{out} has {wrong}: name one with --method. There are: {there}")
    for folder in chosen:
        _check_whole(out, folder)
    folds = [fold for folder in chosen for fold in sorted(folder.iterdir()) if fold.is_dir()]
    if not folds:
        raise UsageError(f"{out} has no model of {next(iter(chosen.values()))}: all folds diverged")
    models = [load_model(fold, model=model) for fold in folds]
    for fold, other in zip(folds, models, strict=True):
        if differ := _differs(models[0], other, folds[0].parent == fold.parent):
            raise UsageError(
                f"{out} has kept models of several runs under one name, {chosen[fold.parent]}: "
                f"they differ in {differ} ({folds[0].parent.name}, {fold.parent.name}). Their mean "
                f"would be of no method: remove one of these folders from {out / FOLDER}"
            )
    return Ensemble(models)


def _check_whole(out: Path, folder: Path) -> None:
    """Refuse a cell whose results have folds of which no model is there any more."""
    sql = "SELECT key, fold, status FROM folds JOIN cells ON cells.id = folds.cell"
    finished = [
        row["fold"]
        for row in query(out, sql)
        if row["key"] == folder.name and row["status"] == "done"
    ]
    lacking = [
        n
        for n in finished
        if not any(folder.glob(f"fold-{n}")) and not any(folder.glob(f"fold-{n}-seed-*"))
    ]
    if lacking:
        raise UsageError(
            f"{folder} has no model of fold {lacking[0]}, which the run has finished: copy it "
            "again, or run with --keep-models into a new folder"
        )


def _differs(one: TrainedModel, other: TrainedModel, same_cell: bool) -> str:
    """Say what sets the trainings of two models apart, if anything but seeds and folds does."""
    if one.record.data.content != other.record.data.content:
        return "their data"
    if same_cell:
        return ""  # where settings were chosen from, each fold has its own
    if one.task != other.task:
        return "their options"
    for name, value in asdict(one.protocol).items():
        if (found := getattr(other.protocol, name)) != value:
            return f"{name} ({value}, {found})"
    sizes = [sum((own.train, own.valid, own.test)) for own in (one.record.data, other.record.data)]
    return "their graphs" if sizes[0] != sizes[1] else ""
