"""The fair comparison: nothing is chosen by what it comes to in the test."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ..errors import UsageError
from ..graphs import FeatureKind, SplitsAsked
from ..paper import FairSet, fair_sets
from ..training import Protocol
from .cell import Cell
from .grid import expand

WHERE: Final = "https://github.com/diningphil/gnn-comparison"
"""Where the splits are published."""

_KINDS: dict[str, FeatureKind] = {"own": "auto", "ones": "auto", "degree": "degree"}
_AGGREGATIONS = ("sum", "mean", "max", "vpa")
_OPTIONS = {"width": [32, 64], "depth": [2, 4], "dropout": [0.0, 0.5]}
_RATES = (0.01, 0.001)
_EPOCHS, _PATIENCE, _FINAL_RUNS = 300, 50, 3


def fair_cells(splits: Path, data_dir: Path | None = None) -> list[Cell]:
    """Return the cells of GIN with four aggregations on the fair comparison's splits.

    Learning rate, width, depth and dropout are chosen for each outer fold on its inner validation
    part, 16 settings in all; the chosen one is trained three times anew.

    Args:
        splits: A folder of `NAME.json`, with a folder `degree` for those of degree features.
        data_dir: A folder to look for data in first.

    Raises:
        UsageError: There are no such splits.

    Example:
        >>> fair_cells(Path("no/such/folder"))
        Traceback (most recent call last):
            ...
        gnn_vpa.errors.UsageError: there are no splits of the fair comparison in no/such/folder: ...
    """
    found = [(its, path) for its in fair_sets() if (path := _path(its, splits)).is_file()]
    if not found:
        raise UsageError(
            f"there are no splits of the fair comparison in {splits}: expected NCI1.json and the "
            f"like, and degree/IMDB-BINARY.json for degree features; they are public at {WHERE}"
        )
    return _cells(found, data_dir)


def every_fair_cell() -> list[Cell]:
    """Return the cells of all data sets of the comparison, by which one tells what names it knows.

    They cannot be run: their splits are looked for in no folder.

    Example:
        >>> len({cell.dataset for cell in every_fair_cell()})
        8
    """
    return _cells([(its, _path(its, Path())) for its in fair_sets()], None)


def _cells(found: Sequence[tuple[FairSet, Path]], data_dir: Path | None) -> list[Cell]:
    protocols = [
        Protocol(epochs=_EPOCHS, learning_rate=rate, patience=_PATIENCE) for rate in _RATES
    ]
    return [
        cell
        for its, path in found
        for cell in expand(
            [its.dataset],
            ["gin"],
            _AGGREGATIONS,
            features=_KINDS[its.features],
            options=_OPTIONS,
            protocol=protocols,
            division=SplitsAsked(asked=str(path)),
            final_runs=_FINAL_RUNS,
            data_dir=data_dir,
        ).cells
    ]


def _path(its: FairSet, splits: Path) -> Path:
    folder = splits / "degree" if its.features == "degree" else splits
    return folder / f"{its.dataset}.json"
