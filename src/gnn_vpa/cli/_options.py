"""Options that several commands share."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

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


def listed(text: str) -> list[str]:
    """Split names that are separated by commas.

    Example:
        >>> listed("gin, gcn")
        ['gin', 'gcn']
    """
    return [name.strip() for name in text.split(",") if name.strip()]
