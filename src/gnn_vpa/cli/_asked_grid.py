"""From the options of commands that train to the cells that they ask for."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..errors import UsageError
from ..spelling import listed, whole_numbers
from ._training_options import Features, TaskKind, spelled

if TYPE_CHECKING:
    from ..experiments import Grid
    from ..graphs import FeatureKind


def asked_grid(
    datasets: Sequence[str],
    *,
    task: TaskKind,
    target: str | None,
    features: Features,
    data_dir: Path | None,
    model: str,
    aggr: str | None,
    variant: str,
    options: Mapping[str, list[Any]],
    training: Mapping[str, str | None],
    select: bool,
    final_runs: int | None,
    folds: int | None,
    repeats: int,
    splits: str | None,
    groups: str | None,
    seed: str,
    baselines: bool = False,
) -> "Grid":
    """Return the cells of what somebody has typed, see ``gnn_vpa.experiments.expand``.

    Example:
        >>> from gnn_vpa.cli._training_options import Features, TaskKind
        >>> grid = asked_grid(
        ...     ["MUTAG"], task=TaskKind.auto, target=None, features=Features.auto, data_dir=None,
        ...     model="gin", aggr="vpa", variant="released", options={}, training={"lr": "0.01"},
        ...     select=False, final_runs=None, folds=None, repeats=1, splits=None, groups=None,
        ...     seed="0",
        ... )
        >>> [str(cell) for cell in grid.cells]
        ['GIN+vpa (lr=0.01) on MUTAG']
    """
    from ..experiments import BASELINES, expand
    from ..experiments.asked import target_of
    from ..experiments.grid import final_runs_of
    from ..experiments.settings import protocols
    from ..graphs import division

    return expand(
        datasets,
        listed(model),
        None if aggr is None else listed(aggr),
        variant=variant,
        features=cast("FeatureKind", features.value),
        options=options,
        protocol=protocols(training, spelled),
        folds=folds,
        seeds=whole_numbers(seed, "--seed"),
        repeats=repeats,
        division=division(splits, groups),
        target=target_of(target, task.value),
        final_runs=final_runs_of(select, final_runs),
        baselines=tuple(BASELINES) if baselines else (),
        data_dir=data_dir,
    )


def read_model_options(
    given: Mapping[str, str | None], texts: Sequence[str]
) -> dict[str, list[Any]]:
    """Return the options of models, those with a name of their own on the command line first.

    Example:
        >>> read_model_options({"width": "8,16"}, ["hidden=32"])
        {'width': [8, 16], 'hidden': [32]}
    """
    from ..experiments.settings import read_options

    named = read_options([f"{name}={text}" for name, text in given.items() if text is not None])
    more = read_options(list(texts))
    for name in named.keys() & more.keys():
        raise UsageError(f"--{name} and --set {name} are the same: give one of them")
    return named | more
