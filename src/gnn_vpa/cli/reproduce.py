"""``gnn-vpa reproduce``: the paper's experiments."""

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UsageError
from ._experiment import execute
from ._options import (
    DataDirOption,
    DevicesOption,
    PlanOption,
    TensorBoardOption,
    Variant,
    VariantOption,
    WorkersOption,
    listed,
)
from ._ray import RayOption, RuntimeEnvOption, planned_on
from ._training_options import RowsOption, spelled

if TYPE_CHECKING:
    from ..experiments import Cell

_Preset = StrEnum(
    "_Preset",
    {
        "paper": "paper",
        "table1": "table1",
        "table_a1": "table-a1",
        "curves": "curves",
        "fair": "fair",
    },
)

_ROUNDED = (
    "Rows of nodes are kept in {}: quicker, and these tables are as accurate; "
    "--precision float32 keeps all digits."
)


def reproduce(
    what: Annotated[
        _Preset,
        typer.Argument(
            help="table1: 12 methods on 9 data sets. table-a1: on the 5 social ones, with degrees "
            "as features. paper: both, and SGC with K = 5. curves: GIN's learning curves. fair: "
            "GIN with settings chosen by validation, on the fair comparison's splits (--splits)."
        ),
    ],
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME,...",
            help="Only these models, aggregations, methods or data sets; may be repeated.",
        ),
    ] = None,
    splits: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="For fair: the folder of its splits, NCI1.json and the like."
        ),
    ] = None,
    plan: PlanOption = False,
    variant: VariantOption = Variant.released,
    precision: RowsOption = None,
    device: DevicesOption = "auto",
    workers: WorkersOption = None,
    ray: RayOption = None,
    runtime_env: RuntimeEnvOption = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="For the results.", show_default="runs/ and what is run"),
    ] = None,
    data_dir: DataDirOption = None,
    tensorboard: TensorBoardOption = None,
) -> None:
    """Run the paper's experiments under its own protocol, and put ours beside its numbers.

    What is finished is kept: the same command goes on where it was.

    Examples:

      gnn-vpa reproduce paper --plan

      gnn-vpa reproduce table1 --only gin,sgc --only MUTAG,PTC

      gnn-vpa reproduce paper --device cuda --out runs/paper

      gnn-vpa reproduce fair --splits fair/splits --only NCI1
    """
    from gnn_vpa.experiments import (
        fair_cells,
        preset,
        protocols,
        resolve_devices,
        select,
        usual_precision,
    )

    from ..experiments.fair import every_fair_cell
    from ._plan import show_plan

    names = [name for text in only or [] for name in listed(text)]
    if names:  # a wrong one is told first: whoever fetches splits for it fetches them in vain
        select(every_fair_cell() if what == _Preset.fair else preset(what, variant), names)
    if (what == _Preset.fair) == (splits is None):
        raise UsageError(
            "--splits: fair needs the folder of the fair comparison's splits, and the paper's own "
            "experiments have theirs"
        )
    cells = preset(what, variant) if splits is None else fair_cells(splits, data_dir)
    if splits is not None:
        _check_splits(cells, names, splits)
    cells = select(cells, names) if names else cells
    out = out or Path("runs", what)
    notes = []
    if splits is not None and precision is not None:
        raise UsageError("--precision: the fair comparison's is float32")
    if splits is None and precision is None:
        precision = usual_precision(out, "cpu" if ray else resolve_devices(device)[0])
        if precision != "float32":
            notes = [_ROUNDED.format(precision)]
    if precision is not None:
        asked = [own.precision for own in protocols({"precision": precision}, spelled)]
        cells = [
            replace(cell, protocol=replace(cell.protocol, precision=each))
            for each in asked
            for cell in cells
            if cell.protocol is not None
        ]
    if plan:
        with planned_on(ray, runtime_env, device) as slots:
            show_plan(cells, out, data_dir, device, workers=workers, slots=slots)
        return
    configuration = {"command": "reproduce", "what": what, "only": names, "variant": variant}
    configuration |= {} if precision is None else {"precision": precision}
    execute(
        cells,
        out,
        data_dir=data_dir,
        device=device,
        workers=workers,
        notes=notes,
        configuration=configuration,
        ray=ray,
        runtime_env=runtime_env,
        tensorboard=tensorboard,
    )


def _check_splits(cells: list["Cell"], names: list[str], splits: Path) -> None:
    """Refuse a name of the fair comparison for whose data sets there are no splits."""
    from ..experiments import select
    from ..experiments.fair import every_fair_cell
    from ..graphs import SplitsAsked

    there = {cell.dataset for cell in cells}
    for name in names:
        asked = select(every_fair_cell(), [name])
        if there.isdisjoint(cell.dataset for cell in asked):
            divisions = (cell.division for cell in asked)
            files = dict.fromkeys(d.asked for d in divisions if isinstance(d, SplitsAsked))
            raise UsageError(
                f"--splits: there are no splits for {name} in {splits}: expected "
                f"{' or '.join(map(str, files))}"
            )
