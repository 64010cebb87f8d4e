"""Options that several commands share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ..spelling import listed as listed

Device = StrEnum("Device", ["auto", "cpu", "cuda"])
Variant = StrEnum("Variant", ["released", "printed"])

DeviceOption = Annotated[Device, typer.Option(help="Where to train; auto: CUDA if it is there.")]
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
