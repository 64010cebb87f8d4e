"""``gnn-vpa train``: one model, to be used on new graphs."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import GnnVpaError, UsageError
from ._asked_grid import asked_grid, read_model_options
from ._console import counted, print_table, say
from ._options import (
    Variant,
    check_out,
    data_dir_option,
    devices_option,
    tensorboard_option,
    variant_option,
)
from ._ray import ray_option, runtime_env_option
from ._training_options import (
    CHOOSING,
    DATA,
    METHODS,
    RUN,
    AggrOption,
    BatchSizeOption,
    ClassWeightOption,
    ClipOption,
    DepthOption,
    DropoutOption,
    EpochsOption,
    Features,
    FeaturesOption,
    FinalRunsOption,
    FoldsOption,
    GroupsOption,
    LossOption,
    LrOption,
    MetricOption,
    ModelOption,
    OptimizerOption,
    PatienceOption,
    PrecisionOption,
    RepeatsOption,
    ScheduleOption,
    SelectOption,
    SetOption,
    SplitsOption,
    TargetOption,
    TaskKind,
    TaskOption,
    WeightDecayOption,
    WidthOption,
)

if TYPE_CHECKING:
    from ..experiments import Cell
    from ..graphs import GraphSet
    from ..trained import TrainedModel

_FRACTION = "--validation-fraction"


def train(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="A name, a TU archive, or module:function that returns PyG graphs.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(metavar="MODEL", help="A folder for the model.", rich_help_panel=RUN),
    ],
    task: TaskOption = TaskKind.auto,
    target: TargetOption = None,
    features: FeaturesOption = Features.auto,
    data_dir: Annotated[Path | None, data_dir_option(DATA)] = None,
    model: ModelOption = "gin",
    aggr: AggrOption = None,
    variant: Annotated[Variant, variant_option(METHODS)] = Variant.released,
    width: WidthOption = None,
    depth: DepthOption = None,
    dropout: DropoutOption = None,
    set_: SetOption = None,
    epochs: EpochsOption = None,
    lr: LrOption = None,
    batch_size: BatchSizeOption = None,
    weight_decay: WeightDecayOption = None,
    optimizer: OptimizerOption = None,
    schedule: ScheduleOption = None,
    patience: PatienceOption = None,
    clip: ClipOption = None,
    loss: LossOption = None,
    class_weight: ClassWeightOption = None,
    precision: PrecisionOption = None,
    metric: MetricOption = None,
    validation_fraction: Annotated[
        float,
        typer.Option(
            metavar="X",
            help="Share of the graphs that choose the epoch.",
            rich_help_panel=CHOOSING,
        ),
    ] = 0.1,
    select: SelectOption = False,
    final_runs: FinalRunsOption = None,
    folds: FoldsOption = None,
    repeats: RepeatsOption = 1,
    splits: SplitsOption = None,
    groups: GroupsOption = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed.", rich_help_panel=RUN)] = 0,
    device: Annotated[str, devices_option(RUN)] = "auto",
    ray: Annotated[str | None, ray_option(RUN)] = None,
    runtime_env: Annotated[list[str] | None, runtime_env_option(RUN)] = None,
    tensorboard: Annotated[Path | None, tensorboard_option(RUN)] = None,
) -> None:
    """Train one model on a data set, and keep it for new graphs.

    A part of the graphs (--validation-fraction) chooses the epoch; all others are trained on. With
    --select a cross-validation chooses the setting first, and says how good it is.

    Examples:

      gnn-vpa train MUTAG --model gin --aggr vpa --out mutag-vpa

      gnn-vpa train my/DATA.zip --lr 0.01,0.001 --width 32,64 --select --out mymodel

      gnn-vpa predict mutag-vpa NEW.zip --out predictions.csv
    """
    if aggr is None and ":" not in model:
        aggr = "vpa"
    if not select:
        _only_with_select(folds=folds, splits=splits, groups=groups, repeats=repeats - 1)
        if ray is not None:
            raise UsageError(
                "--ray is for the cross-validation of --select, which has many trainings: one "
                "model is one training, and is trained here; leave --ray away"
            )
    check_out(out.parent)
    from ..trained.saving import check_place
    from ..trained.train import check_fraction

    check_place(out)
    check_fraction(validation_fraction, _FRACTION)
    training = {
        "epochs": epochs,
        "lr": lr,
        "batch_size": batch_size,
        "weight_decay": weight_decay,
        "optimizer": optimizer,
        "schedule": schedule,
        "patience": patience,
        "clip": clip,
        "loss": loss,
        "class_weight": class_weight,
        "precision": precision,
        "metric": metric,
    }
    grid = asked_grid(
        [data],
        task=task,
        target=target,
        features=features,
        data_dir=data_dir,
        model=model,
        aggr=aggr,
        variant=variant,
        options=read_model_options(
            {"width": width, "depth": depth, "dropout": dropout}, set_ or []
        ),
        training=training,
        select=select,
        final_runs=final_runs,
        folds=folds,
        repeats=repeats,
        splits=splits,
        groups=groups,
        seed=str(seed),
    )
    for text in grid.left_out:
        say(f"Left out: {text}.", err=True)
    where = data_dir, device, validation_fraction, seed, target, tensorboard
    if select:
        trained = _chosen(grid.cells, out, *where, ray=ray, runtime_env=runtime_env)
    else:
        trained = _trained(grid.cells, out, *where)
    _save(trained, out)
    _summary(trained, out)
    if tensorboard is not None:
        say(f"Curves: tensorboard --logdir {tensorboard}")


def _save(trained: "TrainedModel", out: Path) -> None:
    """Save a model; where the place fails after all, into one for things that pass."""
    try:
        trained.save(out)
    except OSError as error:
        place = Path(tempfile.mkdtemp(prefix="gnn-vpa-"))
        try:
            trained.save(place / out.name)
        except OSError:
            raise error from None
        raise GnnVpaError(
            f"{out} cannot be written ({error.strerror}). The model is not lost: it is in "
            f"{place / out.name}, copy it from there"
        ) from error


def _only_with_select(**options: Any) -> None:
    for name, value in options.items():
        if value:
            raise UsageError(f"--{name} is for the cross-validation of --select: leave it away")


def _trained(
    cells: "list[Cell]",
    out: Path,
    data_dir: Path | None,
    device: str,
    fraction: float,
    seed: int,
    target: str | None,
    tensorboard: Path | None,
) -> "TrainedModel":
    from ..experiments import identify
    from ..trained.saving import check_replaced

    if len(cells) > 1:
        raise UsageError(
            f"{len(cells)} models are asked for ({cells[0]}; {cells[1]}; …): name one, or let "
            "--select choose"
        )
    found = identify(cells, data_dir)
    for absent in found.absent.values():
        raise absent
    (cell,) = found.cells
    check_replaced(out, [(cell.task, cell.content)])
    graphs = found.data[cell.content]
    return _fit(cell, graphs, device, fraction, seed, target, tensorboard)


def _fit(
    cell: "Cell",
    graphs: "GraphSet",
    device: str,
    fraction: float,
    seed: int,
    target: str | None,
    tensorboard: Path | None,
) -> "TrainedModel":
    from ..experiments import resolve_device
    from ..experiments.tensorboard import CurveFile
    from ..trained import train_model, validation_split

    assert cell.protocol is not None
    split = validation_split(graphs.y, fraction, seed, _FRACTION)
    curves = None if tensorboard is None else CurveFile(tensorboard, cell)
    total = cell.protocol.epochs
    with counted(f"Training {cell}", "epochs", total) as progress:
        return train_model(
            graphs,
            cell.task,
            cell.protocol,
            split,
            seed=seed,
            column=target,
            device=resolve_device(device),
            workers=1,
            progress=progress,
            curves=curves,
        )


def _chosen(
    cells: "list[Cell]",
    out: Path,
    data_dir: Path | None,
    device: str,
    fraction: float,
    seed: int,
    target: str | None,
    tensorboard: Path | None,
    *,
    ray: str | None,
    runtime_env: list[str] | None,
) -> "TrainedModel":
    """Choose by cross-validation, then train the chosen setting on everything."""
    import math
    from dataclasses import replace

    from ..analysis.resampled import corrected_mean, per_train
    from ..experiments import identify, resolve_devices
    from ..experiments.chosen import choose_setting
    from ..trained.saving import check_replaced
    from ..training import METRICS
    from ._experiment import execute

    check_replaced(out, [(cell.task, cell.content) for cell in identify(cells, data_dir).cells])
    folder = out.with_name(f"{out.stem}-selection")
    execute(
        cells,
        folder,
        data_dir=data_dir,
        device=device,
        configuration={"command": "train --select"},
        ray=ray,
        runtime_env=runtime_env,
        tensorboard=tensorboard,
    )
    if ray is not None:
        say("The chosen setting is trained on this machine: one model is one training.", err=True)
    found = identify(cells, data_dir)
    chosen = choose_setting(folder, found.cells)
    say(f"Chosen: {chosen.cell}")
    if lost := sum(map(math.isnan, chosen.folds)):
        say(
            f"{lost} of {len(chosen.folds)} folds diverged: the scores are of the others, and may "
            "flatter it.",
            err=True,
        )
    first = resolve_devices(device)[0]
    graphs = found.data[chosen.cell.content]
    model = _fit(chosen.cell, graphs, first, fraction, seed, target, tensorboard)
    share = chosen.test_per_train
    share = per_train(chosen.cell.folds) if math.isnan(share) else share
    low, high = corrected_mean(chosen.folds, share).interval()
    if METRICS[model.record.metric].is_share:
        low, high = max(low, 0.0), min(high, 1.0)
    is_known = not math.isnan(low + high)
    model.record = replace(
        model.record,
        judged="cross-validation",
        scores={name: None if math.isnan(v) else v for name, v in chosen.scores.items()},
        interval=(low, high) if is_known else None,
        interval_by="folds" if is_known else "",
    )
    return model


def _summary(model: "TrainedModel", out: Path) -> None:
    from ..trained.card import score_line
    from ..trained.saving import CARD

    record = model.record
    say(f"Trained {model.task.model} on {record.data.name}: {score_line(record)}")
    rows = [[layer, "" if v is None else f"{v:.3g}"] for layer, v in record.signal.items()]
    if rows:
        print_table("Signal", ["layer", "variance"], rows)
    option = f" --model {model.task.model}" if ":" in model.task.model else ""
    say(f"Model: {out}")
    say(f"Card:  {out / CARD}")
    say(f"Next:  gnn-vpa predict {out} NEW.zip{option} --out predictions.csv")
