"""The models of a run's folds, kept beside its results."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from ..errors import UsageError
from ..files import write_whole
from ..graphs import GraphSet
from ..trained import model_of
from ..trained.container import CONFIG
from ..trained.saving import WEIGHTS, holds_model
from ..training import Lane, Outcome, Protocol, Task
from .cell import Cell
from .groups import first_fold
from .store import FILE

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
    seeds = {lane.seed for lane in lanes}
    for lane, outcome in zip(lanes, outcomes, strict=True):
        if outcome.diverged_epoch is not None:
            continue
        name = name_of_model(lane.fold - first_fold(cell), lane.seed, seeds)
        model = model_of(graphs, task, protocol, lane, outcome, column=cell.target.column)
        model.save(folder / name)


def name_of_model(fold: int, seed: int, seeds: Collection[int]) -> str:
    """Return what the model of a fold is called, that was trained with one of these seeds.

    Example:
        >>> name_of_model(3, 0, [0]), name_of_model(3, 1, [0, 1])
        ('fold-3', 'fold-3-seed-1')
    """
    return f"fold-{fold}-seed-{seed}" if len(seeds) > 1 else f"fold-{fold}"


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
