"""What predict, evaluate and export have in common: a saved model, and new graphs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UsageError

if TYPE_CHECKING:
    from ..trained import Predictor, TrainedModel

ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A saved model, or the folder of a run.")
]
GraphsArgument = Annotated[
    str,
    typer.Argument(
        metavar="GRAPHS",
        help="A TU archive (zip or folder), a name, or module:function that returns PyG graphs.",
    ),
]
FactoryOption = Annotated[
    str | None,
    typer.Option(
        "--model", metavar="MODULE:FUNCTION", help="What makes the network, if it is your own."
    ),
]
MethodOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Which method of a run, if it has several."),
]


def open_model(path: Path, factory: str | None, method: str | None) -> "Predictor":
    """Return a saved model, or the models of a run's folds.

    Example:
        >>> open_model(Path("nowhere"), None, None)
        Traceback (most recent call last):
            ...
        gnn_vpa.errors.UsageError: nowhere does not exist: give the folder of a saved model
    """
    from ..experiments.ensembles import load_run
    from ..experiments.kept import is_run

    if not is_run(path):
        if method is not None:
            raise UsageError(f"--method is for the folder of a run, and {path} is none")
        return open_single(path, factory)
    return load_run(path, method, _factory(factory))


def open_single(path: Path, factory: str | None) -> "TrainedModel":
    """Return a saved model.

    Example:
        >>> open_single(Path("nowhere"), None)
        Traceback (most recent call last):
            ...
        gnn_vpa.errors.UsageError: nowhere does not exist: give the folder of a saved model
    """
    from ..trained import load_model

    return load_model(path, model=_factory(factory))


def _factory(name: str | None):  # type: ignore[no-untyped-def]
    if name is None:
        return None
    from ..training.own import factory

    return factory(name)
