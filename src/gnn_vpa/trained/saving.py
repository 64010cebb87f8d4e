"""Models in files: weights as safetensors, all else as JSON, and a card for people."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ..errors import GnnVpaError, UsageError
from ..random_state import seeded
from ..training import METRICS, Protocol, Task
from ..training.own import is_own, planned
from . import container
from .card import card
from .encoding import Encoding
from .fingerprint import agrees, fingerprint
from .model import TrainedModel, Units
from .record import Record
from .target import Target
from .typed import typed

FORMAT = 1
WEIGHTS, CARD = "model.safetensors", "README.md"
# In front of the names of what is no weight.
_UNITS, _CHECK = "units.", "check."
_CHECKS = {"outputs": False, "one_way": True}  # by name: whether edges go one way
_FIRST = ("outputs",)  # what files have that do not say which
_REPEATS = ("depth", "K")  # options of our models that say how often, and not how wide
_USUAL = 1 << 12  # inputs, outputs and repeats that cost nothing, whatever the weights are
_MAKE_AGAIN = "Make it as it was made for the training"


def save_model(model: TrainedModel, path: str | os.PathLike[str]) -> None:
    """Write a model into a folder.

    Example:
        >>> save_model.__name__
        'save_model'
    """
    target = Path(path)
    if odd := [own for own in model.target.classes if not isinstance(own, str | int | float)]:
        raise UsageError(
            f"classes such as {odd[0]!r} cannot be saved: fit with text or numbers as labels"
        )
    files = {
        WEIGHTS: save_tensors(_tensors(model)),
        CARD: card(model, target.name).encode(),
    }
    config = {
        "format": FORMAT,
        "what": "a trained model of gnn-vpa",
        "task": _asdict(model.task),
        "parameters": model.task.parameters,
        "protocol": asdict(model.protocol),
        "encoding": asdict(model.encoding),
        "target": asdict(model.target),
        "record": asdict(model.record),
        "checks": list(_CHECKS),
    }
    container.write(target, files, config)


def check_place(path: str | os.PathLike[str]) -> None:
    """Refuse a place that `save_model` would refuse, before there is a model that could be lost.

    Raises:
        UsageError: There is something else in that place.

    Example:
        >>> check_place("mutag-vpa")
    """
    container.check_place(Path(path), (WEIGHTS, CARD))


def check_replaced(path: str | os.PathLike[str], trained: Iterable[tuple[Task, str]]) -> None:
    """Refuse a place that holds a model of another network, aggregation, features or data.

    Args:
        path: The place.
        trained: What may be saved there: tasks, of which other options make no other model, each
            with the SHA-256 of its data.

    Raises:
        UsageError: There is another model, or one that cannot be read; it would be lost.

    Example:
        >>> check_replaced("mutag-vpa", [(Task("gin", "vpa"), "350999e7")])
    """
    place = Path(path)
    if not holds_model(place):
        return
    try:
        saved = _read(place)[0]
    except GnnVpaError as error:
        raise UsageError(
            f"{path} holds a model that cannot be read ({error}): name another folder, or remove it"
        ) from error
    there, data = saved.task, saved.record.data
    known_by = there.model, there.aggr, there.features, data.content
    if known_by not in [(t.model, t.aggr, t.features, content) for t, content in trained]:
        shown = [there.model, there.aggr, f"{there.features} features", data.name]
        raise UsageError(
            f"{path} holds another model ({', '.join(filter(None, shown))}), and only one of the "
            "same network, aggregation, features and data is replaced: name another folder, or "
            "remove it"
        )


def holds_model(folder: Path) -> bool:
    """Say whether a model was saved into a folder.

    Example:
        >>> holds_model(Path("nowhere"))
        False
    """
    return all((folder / name).is_file() for name in (container.CONFIG, WEIGHTS))


def load_model(
    path: str | os.PathLike[str], model: Callable[..., nn.Module] | None = None
) -> TrainedModel:
    """Read a model that was saved. Nothing in its files is run.

    Args:
        path: Its folder.
        model: The function that makes the network, where it is not one of ours: called as
            ``model(in_channels, out_channels, **options)``, as it was for the training.

    Raises:
        UsageError: There is no such model, its network needs ``model``, or another one.
        GnnVpaError: A file is missing or damaged, or of a newer format.

    Example:
        >>> import tempfile
        >>> from gnn_vpa.graphs import load
        >>> from gnn_vpa.trained import train_model
        >>> mutag = load("MUTAG")
        >>> trained = train_model(mutag, Task("gin", "vpa"), Protocol(epochs=2))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     trained.save(f"{folder}/mutag-vpa")
        ...     again = load_model(f"{folder}/mutag-vpa")
        >>> bool((again.outputs(mutag) == trained.outputs(mutag)).all())
        True
    """
    source = Path(path)
    saved, tensors = _read(source)
    task, encoding, target = saved.task, saved.encoding, saved.target
    weights = {name: t for name, t in tensors.items() if not name.startswith((_UNITS, _CHECK))}
    # Whoever gives a function may give a wrong one; of ours only the file can be wrong.
    wrong = GnnVpaError if model is None else UsageError
    for module, task in _modules(source, saved, model):
        if differ := _difference(module, weights):
            raise wrong(
                f"{source}: the network that {task.model} makes does not fit the weights that were "
                f"saved: {differ}. "
                f"{'Save or copy the model again' if model is None else _MAKE_AGAIN}"
            )
    _load(module, weights)
    module.eval()
    if not all(
        agrees(
            fingerprint(module, encoding, task.model, one_way=_CHECKS[name]),
            tensors.get(f"{_CHECK}{name}"),
        )
        for name in saved.checks
        if name in _CHECKS
    ):
        raise wrong(
            f"{source}: the network that {task.model} makes takes the weights that were saved, but "
            f"computes something else with them. {_MAKE_AGAIN}, with the versions that its card "
            "names"
        )
    units = None
    if target.kind == "regression":
        units = Units(*(tensors[f"{_UNITS}{name}"] for name in Units._fields))
    return TrainedModel(module, task, saved.protocol, encoding, target, saved.record, units)


@dataclass(frozen=True)
class _Saved:
    """What the configuration says of a model."""

    task: Task
    encoding: Encoding
    target: Target
    record: Record
    protocol: Protocol
    checks: tuple[str, ...] = _FIRST


def _read(source: Path) -> tuple[_Saved, dict[str, Tensor]]:
    """Read a configuration and the weights, and see that they fit each other."""
    files, config = container.read(source, FORMAT, (WEIGHTS, CARD))
    try:
        names = [each.name for each in fields(_Saved)]
        saved: _Saved = typed({k: config[k] for k in names if k in config}, _Saved, "it")
        tensors = load_tensors(files[WEIGHTS])
        _check(saved, tensors)
    except (KeyError, ValueError, UsageError, SafetensorError) as error:
        raise _no_model(source, error) from error
    return saved, tensors


def _no_model(source: Path, error: Exception) -> GnnVpaError:
    return GnnVpaError(f"{source}: {container.CONFIG} is not of a model: {error}")


def _check(saved: _Saved, tensors: Mapping[str, Tensor]) -> None:
    """Refuse numbers that nothing could be made with, and more of something than weights are for.

    Raises:
        ValueError: There are some.
    """
    target, record, encoding = saved.target, saved.record, saved.encoding
    if len(target.classes) != (target.outputs if target.kind == "classes" else 0):
        raise ValueError(f"{len(target.classes)} classes for {target.outputs} outputs")
    if record.metric not in record.scores or not record.scores.keys() <= METRICS.keys():
        raise ValueError(f"the metric {record.metric!r}, with scores in {[*record.scores]}")
    if record.interval is not None and not record.interval_by:
        raise ValueError("an interval that was made in no way")
    if target.kind == "regression":
        for name in Units._fields:
            if [*tensors[f"{_UNITS}{name}"].shape] != [target.outputs]:
                raise ValueError(f"{_UNITS}{name} is not of {target.outputs} numbers")
    encoding.check()
    # What weights tell of sizes is compared where the network is made. These are made before.
    largest = max((size for tensor in tensors.values() for size in tensor.shape), default=0)
    counts = [("inputs", encoding.width, largest), ("outputs", target.outputs, largest)]
    counts += [(k, v, len(tensors)) for k, v in saved.task.options if k in _REPEATS]
    for name, count, weights in counts:
        if isinstance(count, int) and count > max(weights, _USUAL):
            raise ValueError(f"{name}: {count} are more than there are weights for")


def _tensors(model: TrainedModel) -> dict[str, Tensor]:
    # A copy of each: tensors that share memory are written as often as they are named.
    weights = {
        name: tensor.detach().cpu().clone().contiguous()
        for name, tensor in model.module.state_dict().items()
    }
    if clash := [name for name in weights if name.startswith((_UNITS, _CHECK))]:
        raise UsageError(f"the network's {clash[0]!r} cannot be saved: name the module otherwise")
    if model.units is not None:
        own = model.units._asdict()
        weights |= {f"{_UNITS}{name}": t.detach().cpu().contiguous() for name, t in own.items()}
    for name, one_way in _CHECKS.items():
        outputs = fingerprint(model.module, model.encoding, model.task.model, one_way=one_way)
        if outputs is not None:
            weights[f"{_CHECK}{name}"] = outputs.contiguous()
    return weights


def _asdict(task: Task) -> dict[str, Any]:
    try:
        json.dumps(task.options)
    except TypeError as error:
        raise UsageError(
            f"the options of {task.model} cannot be saved as JSON ({error}): use numbers and text"
        ) from error
    return asdict(task)


def _modules(
    source: Path, saved: _Saved, make: Callable[..., nn.Module] | None
) -> Iterator[tuple[nn.Module, Task]]:
    """Yield the network and the task that makes it in this process; before it, one without memory.

    If the first does not fit the weights, whatever sizes the file names, the second is not made.
    """
    task, sizes = saved.task, (saved.encoding.width, saved.target.outputs)
    if is_own(task.model):
        if make is None:
            raise UsageError(
                f"{source} is a model of {task.model}, and no code is run that a file names: give "
                "the function that makes it, --model module:function on the command line, or "
                "load_model(path, model=make)"
            )
        name, known_by = planned(make)
        task = replace(task, model=name, source=known_by)
    elif make is not None:
        raise UsageError(
            f"{source} is one of our models ({task.model}), which needs no function: leave --model "
            "away on the command line, model= in Python"
        )
    else:
        try:
            with torch.device("meta"):
                module = task.build(*sizes)
        except Exception as error:
            raise _no_model(source, error) from error
        yield module, task
    with seeded():
        module = task.build(*sizes)
    yield module, task


def _difference(module: nn.Module, weights: dict[str, Tensor]) -> str:
    """Say in what a network's weights differ from those that were saved; nothing if they fit."""
    state, lazy = module.state_dict(), _lazy(module)
    own = {name: _shape(t) for name, t in state.items() if name not in lazy}
    saved = {name: _shape(t) for name, t in weights.items() if name not in lazy}
    differ = sorted(name for name in own.keys() | saved.keys() if own.get(name) != saved.get(name))
    differ += sorted(lazy - weights.keys())
    if not differ:
        return ""
    name, none = differ[0], "nothing"
    return (
        f"{name} is {own.get(name, none)} there, and {saved.get(name, none)} in the file "
        f"({len(differ)} of {len(own.keys() | saved.keys())} differ)"
    )


def _load(module: nn.Module, weights: dict[str, Tensor]) -> None:
    """Put weights into a network that has just these."""
    dtype = next((t.dtype for t in weights.values() if t.is_floating_point()), torch.float32)
    if not _lazy(module):
        module.to(dtype)
    module.load_state_dict(weights)


def _lazy(module: nn.Module) -> set[str]:
    """Return the names of weights that take the shape that they are given."""
    return {name for name, tensor in module.state_dict().items() if is_lazy(tensor)}


def _shape(tensor: Tensor) -> str:
    kind = "" if tensor.is_floating_point() else f" and {tensor.dtype}"
    return f"of shape {list(tensor.shape)}{kind}"
