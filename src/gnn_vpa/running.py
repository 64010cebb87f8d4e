"""An experiment, from Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from .errors import UsageError
from .results import Results
from .spelling import listed, path_text, whole_number, whole_numbers

if TYPE_CHECKING:
    import torch
    from torch_geometric.data import Data, Dataset

    from .experiments import Progress
    from .experiments.ray_backend import RayCluster
    from .graphs import FeatureKind, GraphSet

    DataSet: TypeAlias = str | Path | GraphSet | Sequence[Data] | Dataset
    DataSets: TypeAlias = DataSet | Sequence[DataSet] | Mapping[str, DataSet]
    OneModel: TypeAlias = str | Callable[..., Any]
    Models: TypeAlias = OneModel | Sequence[OneModel]
    T = TypeVar("T")
    Values: TypeAlias = T | str | Sequence[T] | None


def run(
    datasets: DataSets,
    models: Models = "gin",
    aggrs: str | Sequence[str] | None = None,
    *,
    task: str = "auto",
    target: str | None = None,
    features: FeatureKind = "auto",
    variant: str = "released",
    baselines: bool | str | Sequence[str] = (),
    epochs: Values[int] = None,
    lr: Values[float] = None,
    batch_size: Values[int] = None,
    weight_decay: Values[float] = None,
    optimizer: Values[str] = None,
    schedule: Values[str] = None,
    patience: Values[int] = None,
    clip: Values[float] = None,
    loss: Values[str] = None,
    class_weight: Values[str] = None,
    precision: Values[str] = None,
    metric: str | None = None,
    select: bool = False,
    final_runs: int | None = None,
    folds: int | None = None,
    repeats: int = 1,
    splits: object = None,
    groups: object = None,
    seeds: int | str | Sequence[int] = 0,
    device: str | torch.device | Sequence[str | torch.device] = "auto",
    workers: int | None = None,
    ray: bool | str = False,
    runtime_env: Mapping[str, object] | None = None,
    out: str | Path | None = None,
    data_dir: str | Path | None = None,
    progress: Progress | None = None,
    tensorboard: str | Path | None = None,
    fresh: bool = False,
    model: Models | None = None,
    aggr: str | Sequence[str] | None = None,
    seed: int | str | Sequence[int] | None = None,
    **options: object,
) -> Results:
    """Run a grid of trainings, or the rest of one that was interrupted.

    Results belong to the data's content: other graphs by the same name are another data set. A
    setting that has several values, in a list or in a text with commas, makes a grid.

    Args:
        datasets: A name, the path of a TU archive or `module:function`, see `gnn_vpa.graphs.load`;
            or the graphs: a `GraphSet`, a list of PyG `Data` objects or a data set of PyG. Several
            in a list, or in a dictionary by the names that they are to have.
        models: Names of `gnn_vpa.nn.MODELS`, such as gin: one, a list, or a text with commas. A
            model of one's own is a function, or `module:function`.
        aggrs: Of sum, mean, max, vpa and default; None for all that a model has.
        task: What is learned: auto, classes, labels or regression.
        target: Which column of the data is learned; None for `y`.
        features: Node features: auto, ones, degree or labels.
        variant: The models as `released`, or as `printed` in the paper.
        baselines: Of majority, no_edges, no_features and wl; True for all.
        epochs: Epochs of each training, 200 by default.
        lr: The learning rate, 0.001 by default.
        batch_size: Graphs of a batch, 64 by default.
        weight_decay: Weight decay, 0 by default.
        optimizer: adam, adamw or sgd.
        schedule: Of the learning rate: constant, cosine or step.
        patience: Epochs without a better one after which a training ends.
        clip: Largest norm of a gradient.
        loss: cross_entropy, bce, l1, mse or huber.
        class_weight: none or balanced.
        precision: float32, or bfloat16 for rows of nodes on a GPU, which is faster.
        metric: What chooses the epoch and is tested, see `gnn_vpa.training.METRICS`.
        select: Choose the best setting by validation, for each fold by itself, and train it anew.
        final_runs: How often; 3 by default.
        folds: Number of folds, 10 by default.
        repeats: How often the graphs are divided into folds, each time otherwise.
        splits: Splits of one's own, see `gnn_vpa.graphs.SplitsAsked`.
        groups: Graphs that stay together, see `gnn_vpa.graphs.GroupsAsked`.
        seeds: A seed for each repetition.
        device: auto, cpu, cuda (every GPU that is visible), some of them such as
            "cuda:0,cuda:2", or a `torch.device`; several in a list.
        workers: Number of processes, on GPUs on each of them; None: as many as help.
        ray: Run on a Ray cluster: its address, ``host:port``; True for the one that is in use in
            this process, that RAY_ADDRESS names or that runs here, or else one that is started.
        runtime_env: What Ray is to prepare on its nodes: ``{"working_dir": "."}`` carries files.
        out: Folder for the results; without it, one under `runs/` named after the data sets.
        data_dir: A folder to look for data in first.
        progress: Told of each step, see `gnn_vpa.experiments.Progress`.
        tensorboard: A folder to write learning curves into for TensorBoard.
        fresh: Train anew what is finished; its earlier results are removed.
        model: The same as `models`, spelled as on the command line.
        aggr: The same as `aggrs`.
        seed: The same as `seeds`.
        **options: What else a model takes; ours: width, depth, dropout, hidden, K.

    Returns:
        The frame, the table, the tests and the report of all that the folder holds.

    Raises:
        UsageError: Something cannot be used; the message names it.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> results = run("MUTAG", "sgc", "vpa", epochs=2, folds=3, out=folder.name)
        >>> results.table[["dataset", "model", "aggregation", "folds"]].values.tolist()
        [['MUTAG', 'SGC', 'vpa', 3]]
        >>> results.report().name
        'report.html'
        >>> folder.cleanup()
    """
    from .experiments import (
        BASELINES,
        Progress,
        default_folder,
        expand,
        protocols,
        run_grid,
    )
    from .experiments.asked import data_sets, model_list, target_of
    from .experiments.grid import final_runs_of
    from .graphs import division

    if not isinstance(progress, Progress | None):
        raise UsageError(f"progress: expected a gnn_vpa.experiments.Progress, got {progress!r}")
    models = _either("models", models, "gin", "model", model)
    aggrs = _either("aggrs", aggrs, None, "aggr", aggr)
    seeds = _either("seeds", seeds, 0, "seed", seed)
    if isinstance(baselines, bool):
        baselines = tuple(BASELINES) if baselines else ()
    data_dir = None if data_dir is None else Path(path_text(data_dir, "data_dir"))
    column = None if target is None else _text(target, "target")
    learned = target_of(column, _text(task, "task"))
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
    grid = expand(
        data_sets(datasets, learned),
        model_list(models),
        None if aggrs is None else listed(aggrs, "aggrs"),
        variant=_text(variant, "variant"),
        features=cast("FeatureKind", _text(features, "features")),
        options=options,
        protocol=protocols(training),
        folds=None if folds is None else whole_number(folds, "folds", least=2),
        seeds=whole_numbers(seeds, "seeds"),
        repeats=whole_number(repeats, "repeats", least=1),
        division=division(splits, groups),
        target=learned,
        final_runs=final_runs_of(
            select, None if final_runs is None else whole_number(final_runs, "final_runs", least=1)
        ),
        baselines=listed(baselines, "baselines"),
        data_dir=data_dir,
        arguments=sorted(signature(run).parameters.keys() - {"options"}),
    )
    out = default_folder(grid.cells) if out is None else Path(path_text(out, "out"))
    if progress is not None:
        for text in (*(f"Left out: {text}." for text in grid.left_out), *grid.remarks):
            progress.note(text)
    with _cluster(ray, runtime_env) as cluster:
        run_grid(
            grid.cells,
            out,
            data_dir=data_dir,
            device=_device_text(device),
            workers=None if workers is None else whole_number(workers, "workers", least=1),
            progress=progress,
            cluster=cluster,
            tensorboard=None if tensorboard is None else path_text(tensorboard, "tensorboard"),
            fresh=fresh,
        )
    return Results(out)


def _cluster(
    ray: object, runtime_env: Mapping[str, object] | None
) -> AbstractContextManager[RayCluster | None]:
    if not isinstance(ray, bool | str):
        raise UsageError(f"ray: expected True, or an address like host:6379, got {ray!r}")
    if not ray:
        if runtime_env:
            raise UsageError("runtime_env is for Ray's nodes: use it with ray=True")
        return nullcontext()
    from .experiments.ray_backend import connected

    return connected(ray, runtime_env)


def _either(name: str, value: Any, default: Any, spelled: str, same: Any) -> Any:
    """Return what was given under either of two names, or the default."""
    if same is None:
        return value
    if value is not default:
        raise UsageError(f"{name} and {spelled} are the same: give one of them")
    return same


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{what}: expected a name, got {value!r}")
    return value


def _device_text(device: object) -> str:
    import torch

    several = device if isinstance(device, list | tuple) and device else [device]
    for each in several:
        if not isinstance(each, str | torch.device):
            raise UsageError(f"device: expected auto, cpu, cuda or a torch.device, got {each!r}")
    return ",".join(map(str, several))
