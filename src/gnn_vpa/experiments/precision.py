"""What nodes' rows are kept in where nobody says, see `Protocol.precision`."""

import json
from pathlib import Path

from ..errors import UsageError
from ..training.task import Precision, Protocol
from .groups import shares_steps
from .store import query_if_any


def usual_precision(folder: str | Path, device: str) -> Precision:
    """Return what a run of the paper's models takes: bfloat16 on a GPU, and float32 elsewhere.

    The paper's tables are as accurate with it, and need two thirds of the time. What a folder has
    is gone on with.

    Args:
        folder: Of the run.
        device: Where it trains.

    Raises:
        UsageError: The folder has nothing but cells in bfloat16, and the device is no GPU.

    Example:
        >>> usual_precision("no/such/run", "cuda"), usual_precision("no/such/run", "cpu")
        ('bfloat16', 'float32')
    """
    recorded = _recorded(folder)
    if shares_steps(device):
        return "float32" if recorded == {"float32"} else "bfloat16"
    if recorded == {"bfloat16"}:
        raise UsageError(
            f"{folder} has cells whose rows were kept in bfloat16: go on with --precision bfloat16 "
            "on a GPU, or train all of them with --precision float32."
        )
    return "float32"


def _recorded(folder: str | Path) -> set[str]:
    """Return the precisions of a run's finished cells; none where there is no run."""
    cells = query_if_any(folder, "SELECT protocol FROM cells")
    return {Protocol(**json.loads(cell["protocol"] or "{}")).precision for cell in cells}
