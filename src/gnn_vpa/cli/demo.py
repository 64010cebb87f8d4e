"""``gnn-vpa demo``: the main job on real data, in a minute or two."""

from pathlib import Path
from typing import Annotated

import typer

from ._experiment import execute
from ._options import DataDirOption, DevicesOption


def demo(
    epochs: Annotated[int, typer.Option(min=1, help="Fewer are quicker.")] = 200,
    device: DevicesOption = "auto",
    out: Annotated[Path, typer.Option(metavar="DIR", help="For the results.")] = Path("runs/demo"),
    data_dir: DataDirOption = None,
) -> None:
    """Which aggregation is right for MUTAG? GIN with all four, in the paper's ten folds.

    Needs no network: MUTAG comes with the package.

    Examples:

      gnn-vpa demo

      gnn-vpa demo --epochs 20 --out runs/quick
    """
    from gnn_vpa.experiments import expand
    from gnn_vpa.training import Protocol

    grid = expand(["MUTAG"], ["gin"], protocol=Protocol(epochs=epochs))
    configuration = {"command": "demo", "epochs": epochs}
    execute(grid.cells, out, data_dir=data_dir, device=device, configuration=configuration)
