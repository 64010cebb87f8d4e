"""Options that several commands share."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import GnnVpaError, UsageError
from ..files import refuse_folder
from ..spelling import listed as listed

Variant = StrEnum("Variant", ["released", "printed"])


def device_option(panel: str | None = None) -> Any:
    """Return what says where to train, in a panel of the help."""
    return typer.Option(
        "--device",  # typer before 0.28 would take it from the metavar
        metavar="DEVICE",
        help="auto (CUDA if it is there), cpu, cuda, or one of several: cuda:1.",
        rich_help_panel=panel,
    )


def devices_option(panel: str | None = None) -> Any:
    """Return what says where to train a grid: on several GPUs too."""
    return typer.Option(
        "--device",
        metavar="DEVICE,...",
        help="auto (CUDA if it is there), cpu, cuda (all GPUs), or some: cuda:0,cuda:2.",
        rich_help_panel=panel,
    )


def workers_option(panel: str | None = None) -> Any:
    """Return what says how many processes there are."""
    return typer.Option(
        "--workers",
        min=1,
        metavar="N",
        help="Processes; on GPUs, on each of them.",
        show_default="as many as help",
        rich_help_panel=panel,
    )


def variant_option(panel: str | None = None) -> Any:
    """Return what says which form of the paper's models is meant."""
    text = "The models as the authors released them, or as the paper prints."
    return typer.Option(help=text, rich_help_panel=panel)


def data_dir_option(panel: str | None = None) -> Any:
    """Return what says where the data are."""
    text = "Look here first, before GNN_VPA_DATA and the downloads."
    return typer.Option(metavar="DIR", help=text, rich_help_panel=panel)


def plan_option(panel: str | None = None) -> Any:
    """Return what asks for a plan alone."""
    text = "Only show what would run: trainings at once, memory and time."
    return typer.Option("--plan", help=text, rich_help_panel=panel)


def tensorboard_option(panel: str | None = None) -> Any:
    """Return what says where TensorBoard's files go."""
    text = "Write learning curves for TensorBoard into this folder, while they grow."
    return typer.Option("--tensorboard", metavar="DIR", help=text, rich_help_panel=panel)


DeviceOption = Annotated[str, device_option()]
DevicesOption = Annotated[str, devices_option()]
WorkersOption = Annotated[int | None, workers_option()]
VariantOption = Annotated[Variant, variant_option()]
DataDirOption = Annotated[Path | None, data_dir_option()]
PlanOption = Annotated[bool, plan_option()]
TensorBoardOption = Annotated[Path | None, tensorboard_option()]


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


def check_out(out: Path, option: str = "--out") -> None:
    """Refuse a place for results that cannot be written to, before anything is computed.

    Args:
        out: A folder, or the folder of a file that is to be written; it need not be there.
        option: Which named it.

    Example:
        >>> check_out(Path("runs/new"))
    """
    there = next(place for place in (out, *out.parents, Path()) if place.exists())
    if not there.is_dir():
        raise UsageError(f"{option} {out}: {there} is a file: name a folder for the results")
    if not os.access(there, os.W_OK | os.X_OK):
        raise GnnVpaError(f"{option} {out}: {there} may not be written to: choose another folder")


def check_file(file: Path, like: str, option: str = "--out") -> None:
    """Refuse a file for results that cannot be written, before anything is computed.

    Args:
        file: The file; neither it nor its folder need be there.
        like: A name that such a file could have, for whoever has named a folder.
        option: Which named it.

    Example:
        >>> check_file(Path("runs/new.csv"), "predictions.csv")
    """
    refuse_folder(file, like)
    if not file.exists() or file.is_file():  # others, like /dev/stdout, are written to as they are
        check_out(file.parent, option)
