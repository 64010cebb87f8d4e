"""``gnn-vpa run``: any grid of trainings."""

from pathlib import Path
from typing import Annotated

import typer

from ..spelling import whole_numbers
from ._asked_grid import asked_grid, read_model_options
from ._console import say
from ._experiment import execute
from ._options import (
    Variant,
    data_dir_option,
    devices_option,
    plan_option,
    tensorboard_option,
    variant_option,
    workers_option,
)
from ._ray import planned_on, ray_option, runtime_env_option
from ._training_options import (
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
    OutOption,
    PatienceOption,
    PrecisionOption,
    RepeatsOption,
    ScheduleOption,
    SeedOption,
    SelectOption,
    SetOption,
    SplitsOption,
    TargetOption,
    TaskKind,
    TaskOption,
    WeightDecayOption,
    WidthOption,
)


def run(
    datasets: Annotated[
        list[str],
        typer.Argument(
            metavar="DATASET...",
            help="Names, TU archives (zip or folder), or module:function that returns PyG graphs.",
        ),
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
    baselines: Annotated[
        bool,
        typer.Option(
            "--baselines",
            help="Also majority class, forests without edges or features, WL kernel + SVM.",
            rich_help_panel=METHODS,
        ),
    ] = False,
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
    select: SelectOption = False,
    final_runs: FinalRunsOption = None,
    folds: FoldsOption = None,
    repeats: RepeatsOption = 1,
    splits: SplitsOption = None,
    groups: GroupsOption = None,
    seed: SeedOption = "0",
    plan: Annotated[bool, plan_option(RUN)] = False,
    device: Annotated[str, devices_option(RUN)] = "auto",
    workers: Annotated[int | None, workers_option(RUN)] = None,
    ray: Annotated[str | None, ray_option(RUN)] = None,
    runtime_env: Annotated[list[str] | None, runtime_env_option(RUN)] = None,
    out: OutOption = None,
    keep_models: Annotated[
        bool,
        typer.Option(
            "--keep-models",
            help="Keep each fold's model, for gnn-vpa predict.",
            rich_help_panel=RUN,
        ),
    ] = False,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh",
            help="Train anew what is finished; its earlier results are removed.",
            rich_help_panel=RUN,
        ),
    ] = False,
    tensorboard: Annotated[Path | None, tensorboard_option(RUN)] = None,
) -> None:
    """Train a grid of methods on data sets, all folds of each, and compare them.

    The protocol is the paper's unless an option says otherwise. What is finished is kept: the same
    command goes on where it was, another one adds to the same folder.

    Examples:

      gnn-vpa run MUTAG

      gnn-vpa run MUTAG PTC --model gin,gcn --aggr sum,vpa --epochs 100

      gnn-vpa run NCI1 --lr 0.01,0.001 --width 32,64 --select --plan

      gnn-vpa run my/DATA.zip --model mynets:make --set hidden=64,128 --baselines

      gnn-vpa run mydata:load --target homo --metric rmse --repeats 10

      gnn-vpa run NCI1 --seed 0,1,2 --ray head:6379
    """
    from gnn_vpa.experiments import default_folder
    from gnn_vpa.experiments.groups import shortened

    from ._plan import show_plan

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
    options = read_model_options({"width": width, "depth": depth, "dropout": dropout}, set_ or [])
    grid = asked_grid(
        datasets,
        task=task,
        target=target,
        features=features,
        data_dir=data_dir,
        model=model,
        aggr=aggr,
        variant=variant,
        options=options,
        training=training,
        select=select,
        final_runs=final_runs,
        folds=folds,
        repeats=repeats,
        splits=splits,
        groups=groups,
        seed=seed,
        baselines=baselines,
    )
    out = out or default_folder(grid.cells)
    notes = [*(f"Left out: {text}." for text in grid.left_out), *grid.remarks]
    if plan:
        for note in notes:
            say(note, err=True)
        with planned_on(ray, runtime_env, device) as slots:
            show_plan(grid.cells, out, data_dir, device, workers=workers, slots=slots, fresh=fresh)
        return
    said = {
        "datasets": datasets,
        "task": task if task != TaskKind.auto else None,
        "target": target,
        "model": model,
        "aggr": aggr or "all",
        **{name: value for name, value in training.items() if name != "epochs"},
        "epochs": epochs or "200",
        "folds": folds or ("of the splits" if splits else 10),
        "repeats": repeats if repeats > 1 else None,
        "splits": splits,
        "groups": groups,
        "select": select or None,
        "final_runs": final_runs,
        "seed": ",".join(map(str, shortened(whole_numbers(seed, "--seed")))),
        "features": features,
        "variant": variant,
        **options,
    }
    execute(
        grid.cells,
        out,
        data_dir=data_dir,
        device=device,
        workers=workers,
        notes=notes,
        configuration={
            "command": "run",
            **{name: value for name, value in said.items() if value is not None},
        },
        keep_models=keep_models,
        ray=ray,
        runtime_env=runtime_env,
        tensorboard=tensorboard,
        fresh=fresh,
    )
