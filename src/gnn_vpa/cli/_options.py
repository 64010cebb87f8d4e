"""Options that several commands share."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ..errors import GnnVpaError, UsageError
from ..spelling import listed as listed

Variant = StrEnum("Variant", ["released", "printed"])

DeviceOption = Annotated[
    str,
    typer.Option(
        metavar="DEVICE", help="auto (CUDA if it is there), cpu, cuda, or one of several: cuda:1."
    ),
]
VariantOption = Annotated[
    Variant, typer.Option(help="The models as the authors released them, or as the paper prints.")
]
DataDirOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Look here first, before GNN_VPA_DATA and the downloads."),
]

PlanOption = Annotated[
    bool,
    typer.Option("--plan", help="Only show what would run: trainings at once, memory and time."),
]


@contextmanager
def current(device: str) -> Iterator[None]:
    """Make a GPU the one that kernels are launched on, where it is one.

    Example:
        >>> with current("cpu"):
        ...     answer = 42
    """
    import torch

    with torch.cuda.device(device) if device != "cpu" else nullcontext():
        yield


def check_out(out: Path) -> None:
    """Refuse a place for results that cannot be written to, before anything is computed.

    Args:
        out: A folder, or the folder of a file that is to be written; it need not be there.

    Example:
        >>> check_out(Path("runs/new"))
    """
    there = next(place for place in (out, *out.parents, Path()) if place.exists())
    if not there.is_dir():
        raise UsageError(f"--out {out}: {there} is a file: name a folder for the results")
    if not os.access(there, os.W_OK | os.X_OK):
        raise GnnVpaError(f"--out {out}: {there} may not be written to: choose another folder")
