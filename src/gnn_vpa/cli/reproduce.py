"""``gnn-vpa reproduce``: the paper's experiments."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ._console import print_table, progress
from ._experiment import execute
from ._options import (
    DataDirOption,
    Device,
    DeviceOption,
    Variant,
    VariantOption,
    listed,
)

if TYPE_CHECKING:
    from ..experiments import Cell

_Preset = StrEnum(
    "_Preset",
    {"paper": "paper", "table1": "table1", "table_a1": "table-a1", "curves": "curves"},
)


def reproduce(
    what: Annotated[
        _Preset,
        typer.Argument(
            help="table1: 12 methods on 9 data sets. table-a1: on the 5 social ones, with degrees "
            "as features. paper: both, and SGC with K = 5. curves: GIN's learning curves."
        ),
    ],
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME,...",
            help="Only these models, aggregations, methods or data sets; may be repeated.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what is done, what remains and how long.")
    ] = False,
    variant: VariantOption = Variant.released,
    device: DeviceOption = Device.auto,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="For the results. [default: runs/ and what is run]"),
    ] = None,
    data_dir: DataDirOption = None,
) -> None:
    """Run the paper's experiments under its own protocol, and put ours beside its numbers.

    What is finished is kept: the same command goes on where it was.

    Examples:

      gnn-vpa reproduce table1 --dry-run

      gnn-vpa reproduce table1 --only gin,sgc --only MUTAG,PTC

      gnn-vpa reproduce paper --device cuda --out runs/paper
    """
    from gnn_vpa.experiments import preset, select

    names = [name for text in only or [] for name in listed(text)]
    cells = preset(what, variant)
    cells = select(cells, names) if names else cells
    out = out or Path("runs", what)
    if dry_run:
        _show_plan(cells, out, data_dir, device)
        return
    configuration = {"command": "reproduce", "what": what, "only": names, "variant": variant}
    execute(cells, out, data_dir=data_dir, device=device, configuration=configuration)


def _show_plan(cells: list["Cell"], out: Path, data_dir: Path | None, device: str) -> None:
    from gnn_vpa.experiments import (
        calibrate,
        estimate,
        finished,
        resolve_device,
        seen,
        size,
        worker_count,
    )

    done = finished(out)
    rest = [cell for cell in cells if cell.key not in done]
    paces, basis = seen(out), "from the cells that are finished"
    if rest and not paces:
        with progress("Training each model for a moment to see how quick it is here"):
            paces = calibrate(rest, data_dir=data_dir, device=device)
        basis = "from a few epochs on the smallest data set"
    sizes = {cell.dataset: size(cell) for cell in cells}
    workers = worker_count(resolve_device(device), len(rest))
    rows = []
    for dataset in sizes:
        of_set = [cell for cell in cells if cell.dataset == dataset]
        left = [cell for cell in of_set if cell in rest]
        time = str(estimate(left, paces, sizes, workers)) if left and paces else "-"
        rows.append([dataset, str(len(of_set) - len(left)), str(len(left)), time])
    print_table("What is done, and what remains", ["data set", "done", "to run", "time"], rows)
    if not rest:
        typer.echo(f"All {len(cells)} cells are finished, in {out}.")
    elif paces:
        total = estimate(rest, paces, sizes, workers)
        typer.echo(f"{len(rest)} of {len(cells)} cells remain: {total}, {basis}.")
    else:
        typer.echo(f"{len(rest)} of {len(cells)} cells remain; no data set is here to time them.")
