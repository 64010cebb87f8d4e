"""``gnn-vpa run``: any grid of trainings."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ..aggregations import names
from ..spelling import whole_numbers
from ._console import say
from ._experiment import execute
from ._options import (
    DataDirOption,
    DeviceOption,
    PlanOption,
    Variant,
    VariantOption,
    listed,
)

if TYPE_CHECKING:
    from ..graphs import FeatureKind

_Features = StrEnum("_Features", ["auto", "ones", "degree", "labels"])


def run(
    datasets: Annotated[
        list[str],
        typer.Argument(
            metavar="DATASET...",
            help="Names, TU archives (zip or folder), or module:function that returns PyG graphs.",
        ),
    ],
    model: Annotated[str, typer.Option(help="Of gin, gcn, sgc, gat, deep.")] = "gin",
    aggr: Annotated[
        str | None,
        typer.Option(help=f"Of {names()}.", show_default="all that a model has"),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of each training.")] = 200,
    folds: Annotated[int, typer.Option(min=2, help="Number of folds.")] = 10,
    seed: Annotated[
        str, typer.Option("--seed", "--seeds", help="One seed, or several: 0,1,2.")
    ] = "0",
    features: Annotated[
        _Features, typer.Option(help="Node features; auto: the data's own, else ones.")
    ] = _Features.auto,
    variant: VariantOption = Variant.released,
    width: Annotated[int | None, typer.Option(min=1, help="Width of the layers.")] = None,
    depth: Annotated[int | None, typer.Option(min=1, help="Number of layers.")] = None,
    baselines: Annotated[
        bool, typer.Option("--baselines", help="Also the majority class and the WL kernel + SVM.")
    ] = False,
    plan: PlanOption = False,
    device: DeviceOption = "auto",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="For the results.", show_default="runs/ and the data sets"
        ),
    ] = None,
    data_dir: DataDirOption = None,
) -> None:
    """Train a grid of methods on data sets, all folds of each, and compare them.

    The protocol is the paper's unless an option says otherwise. What is finished is kept: the same
    command goes on where it was, another one adds to the same folder.

    Examples:

      gnn-vpa run MUTAG

      gnn-vpa run MUTAG PTC --model gin,gcn --aggr sum,vpa --epochs 100

      gnn-vpa run NCI1 --plan

      gnn-vpa run my/DATA.zip --model sgc --seeds 0,1,2 --baselines --out runs/mine
    """
    from gnn_vpa.experiments import BASELINES, default_folder, expand
    from gnn_vpa.experiments.groups import shortened
    from gnn_vpa.training import Protocol

    from ._plan import show_plan

    options = {name: value for name, value in (("width", width), ("depth", depth)) if value}
    grid = expand(
        datasets,
        listed(model),
        None if aggr is None else listed(aggr),
        variant=variant,
        features=cast("FeatureKind", features.value),
        options=options,
        protocol=Protocol(epochs=epochs),
        folds=folds,
        seeds=whole_numbers(seed, "--seed"),
        baselines=BASELINES if baselines else (),
        data_dir=data_dir,
    )
    out = out or default_folder(grid.cells)
    notes = [f"Left out: {text}." for text in grid.left_out]
    if plan:
        for note in notes:
            say(note, err=True)
        show_plan(grid.cells, out, data_dir, device)
        return
    execute(
        grid.cells,
        out,
        data_dir=data_dir,
        device=device,
        notes=notes,
        configuration={
            "command": "run",
            "datasets": datasets,
            "model": model,
            "aggr": aggr or "all",
            "epochs": epochs,
            "folds": folds,
            "seed": ",".join(map(str, shortened(whole_numbers(seed, "--seed")))),
            "features": features,
            "variant": variant,
            **options,
        },
    )
