"""Passes over data that give every layer the variance 1."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch_geometric.nn.models.rev_gnn import InvertibleModule

from ..errors import GnnVpaError, UsageError
from ._calibration_targets import TOLERANCE, Targets, geometric_mean
from ._inputs import Call, call_of, private_inputs
from ._start import as_training_starts
from ._variance import variance
from ._weights import checked_model, is_layer, linears, outputs, own_weights

_ATTEMPTS = 10
_PASSES = 30  # at most, where layers run several times


@dataclass(frozen=True)
class Calibrated:
    """One layer: the variance of its output before, and what its weights were multiplied by.

    Attributes:
        path: Where it is in the model.
        before: The variance of its output with its former weights, those before it calibrated; of
            several uses the first.
        factor: What its weights and biases were multiplied by.
        after: The variance of its output now, measured when all was done; of several uses the
            geometric mean.
        remark: Why ``after`` is not 1, if it is not.
        uses: The variance of its output now, each time that it runs.
        rescaled_by: The layer that this one is a part of, where that is scaled as a whole
            afterwards, by these weights too: ``after`` need not be 1 then.

    Example:
        >>> print(Calibrated("lin", before=4.0, factor=0.5, after=1.0))
        lin: variance 4 -> 1 (weights x 0.5)
        >>> print(Calibrated("lin", before=4.0, factor=0.5, after=1.0, uses=(0.5, 2.0)))
        lin: variance 4 -> 1 (weights x 0.5; 2 uses: 0.5, 2)
    """

    path: str
    before: float
    factor: float
    after: float
    remark: str = ""
    uses: tuple[float, ...] = ()
    rescaled_by: str = ""

    def __str__(self) -> str:
        done = self.remark or f"weights x {self.factor:.3g}"
        if self.rescaled_by:
            done += f", with {self.rescaled_by}"
        if len(self.uses) > 1:
            done += f"; {len(self.uses)} uses: {', '.join(f'{use:.3g}' for use in self.uses)}"
        return f"{self.path}: variance {self.before:.3g} -> {self.after:.3g} ({done})"


@dataclass(frozen=True)
class CalibrationReport:
    """What ``calibrate`` did, layer by layer, in the order in which they ran.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> model = nn.Sequential(nn.Linear(2, 50), nn.ReLU(), nn.Linear(50, 3))
        >>> report = calibrate(model, (torch.randn(100, 2),))
        >>> [(layer.path, round(layer.after, 3)) for layer in report.layers]
        [('0', 1.0), ('2', 1.0)]
    """

    layers: tuple[Calibrated, ...]

    @property
    def left(self) -> tuple[Calibrated, ...]:
        """The layers that could not be brought to variance 1."""
        return tuple(layer for layer in self.layers if layer.remark)

    def __str__(self) -> str:
        head = f"{len(self.layers) - len(self.left)} layers calibrated, {len(self.left)} left"
        return "\n".join([head, *(f"  {layer}" for layer in self.layers)])


def calibrate(
    model: nn.Module,
    data: Iterable[Any] | Mapping[str, Any] | Tensor | Any,
    *,
    max_nodes: int = 100_000,
    nodes: Tensor | None = None,
) -> CalibrationReport:
    r"""Scale every layer's weights so that its output has variance 1 at the start, in place.

    The data pass through the model. As each layer runs, its weights and biases are divided by
    the standard deviation of its output, over all nodes and features, before activation; then the
    layers behind it run on what it gives now. What is measured is what the data do, so the
    correlation of messages is included, and so is every aggregation.

    A layer gets **one number**. No node is normalised by its own size: what a sum over many
    neighbours was to one over few, it still is. The model can learn the same functions as before;
    its parameters have the same names and shapes, and nothing is added to it.

    Linear layers are calibrated one by one, and a message-passing layer as a whole after them
    (modules of PyG, and those whose class is called ``...Conv``), by the Linear layers that its
    output is made of. One that has no weights, or whose output does not follow them, because a
    norm comes behind, is left and listed. The parts of a layer have variance 1 first, and what the
    scale of the whole leaves them in the end.

    One that runs several times has one number all the same: the geometric mean of the variances
    that it gives is made 1, and the report lists each. That takes some passes more.

    Norms use the batch's own statistics and dropout is off meanwhile. Buffers, modes, gradients and
    the random state stay as they were; after an error the weights do too.

    Args:
        model: Any module: one's own, of PyG, converted, or of ``gnn_vpa.nn``.
        data: A loader (or list) of PyG ``Data``, one ``Data``, or a tuple or mapping of the model's
            inputs. Of ``Data`` each argument of ``forward`` takes the attribute of its name.
        max_nodes: Of a loader, take batches until so many nodes are there. They pass as one.
        nodes: How often the node of each row occurs, ``[rows]``, where alike nodes were merged; by
            default once.

    Returns:
        The variance of each layer before and after, the latter measured in a pass of its own.

    Raises:
        UsageError: The model does not run on the data, or has no layer to scale.

    Example:
        >>> from torch_geometric.data import Data
        >>> from torch_geometric.nn import GraphSAGE
        >>> _ = torch.manual_seed(0)
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> model = GraphSAGE(4, 32, num_layers=3)
        >>> report = calibrate(model, [Data(x=torch.randn(3, 4), edge_index=path)] * 10)
        >>> [(layer.path, round(layer.after, 2)) for layer in report.layers[:3]]
        [('convs.0.lin_l', 0.45), ('convs.0.lin_r', 0.45), ('convs.0', 1.0)]
    """
    model = checked_model(model)
    if any(isinstance(module, InvertibleModule) for module in model.modules()):
        raise UsageError(
            "model: it has layers that free their inputs (PyG's GroupAddRev), which cannot run "
            "twice on them. Calibrate the layers inside before they are wrapped."
        )
    call = call_of(model, data, max_nodes)
    own = [weight for weight in model.parameters() if not is_lazy(weight)]
    weights = {weight: weight.detach().clone() for weight in own}
    try:
        return _calibrated(model, call, nodes, weights)
    except BaseException:
        _put_back(weights)
        raise


def _calibrated(
    model: nn.Module, call: Call, nodes: Tensor | None, weights: dict[nn.Parameter, Tensor]
) -> CalibrationReport:
    """Scale layer by layer, until those that run several times have the right mean."""
    targets: Targets | None = None
    for left in reversed(range(_PASSES)):
        _put_back(weights)
        work = _Scaling(model, nodes, {} if targets is None else targets.variances)
        _run(model, call, work)
        if not work.layers:
            raise UsageError(
                "model: no Linear or message-passing layer ran, so there is none to scale."
            )
        found = _measured(model, call, nodes)
        if targets is None:
            targets = Targets({module: len(found[module]) for module in work.shared(found)})
        if targets.learn(found):
            break
        if left == 1:
            targets.settle()
    assert targets is not None
    return CalibrationReport(tuple(work.reported(found, set(targets.variances))))


def _measured(
    model: nn.Module, call: Call, nodes: Tensor | None
) -> dict[nn.Module, tuple[float, ...]]:
    """Return the variance that each layer gives each time that it runs."""
    fresh = _Measuring(model, nodes)
    _run(model, call, fresh)
    return {module: tuple(uses) for module, uses in fresh.found.items()}


def _put_back(weights: dict[nn.Parameter, Tensor]) -> None:
    with torch.no_grad():
        for weight, value in weights.items():
            weight.copy_(value)


def _run(model: nn.Module, call: Call, watching: "_Hooks") -> None:
    args, kwargs = private_inputs(tuple(call), differentiable=False)
    try:
        with as_training_starts(model), watching:
            model(*args, **kwargs)
    except GnnVpaError:
        raise
    except Exception as error:
        raise UsageError(
            f"data: {type(model).__name__} does not run on it: {type(error).__name__}: {error}"
        ) from error


class _Hooks(ABC):
    """Hooks on every layer, for one pass."""

    def __init__(self, model: nn.Module, nodes: Tensor | None) -> None:
        self._nodes = nodes
        self._paths = {module: path for path, module in model.named_modules()}
        self._linears: set[nn.Module] = {lin for _, lin in linears(model)}
        self._handles: list[Any] = []

    def __enter__(self) -> None:
        for module in self._paths:
            if module in self._linears or is_layer(module):
                self._handles.append(
                    module.register_forward_hook(self._after, with_kwargs=True, prepend=True)
                )

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()

    @abstractmethod
    def _after(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any
    ) -> Any:
        """Look at what a module gives, or give something else in its place."""

    def _variance(self, out: Tensor) -> float:
        merged = self._nodes is not None and out.dim() == 2 and len(out) == len(self._nodes)
        return variance(out, self._nodes if merged else None)


class _Measuring(_Hooks):
    """What each layer gives, each time that it runs."""

    def __init__(self, model: nn.Module, nodes: Tensor | None) -> None:
        super().__init__(model, nodes)
        self.found: dict[nn.Module, list[float]] = {}

    def _after(self, module: nn.Module, args: Any, kwargs: Any, out: Any) -> None:
        if isinstance(out, Tensor):
            self.found.setdefault(module, []).append(_finite(self._variance(out)))


class _Scaling(_Hooks):
    """Scales each layer the first time that it runs, and remembers what was done.

    Args:
        targets: The variance that a layer is to have then; 1 where none is named.
    """

    def __init__(
        self, model: nn.Module, nodes: Tensor | None, targets: Mapping[nn.Module, float]
    ) -> None:
        super().__init__(model, nodes)
        self.layers: dict[nn.Module, Calibrated] = {}
        self._targets = targets

    def _after(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any
    ) -> Any:
        """Scale a module that has just run, and hand on what it gives then."""
        if not isinstance(out, Tensor) or module in self.layers:
            return out
        scaled = self._scaled(module)
        target = self._targets.get(module, 1.0)
        # What is off in the first of several uses is off by more in the last.
        tolerance = TOLERANCE / 100 if module in self._targets else TOLERANCE
        before = _finite(self._variance(out))
        factor, now, remark = 1.0, before, _reason(before, scaled)
        for _ in range(_ATTEMPTS):
            if remark or abs(now / target - 1) <= tolerance:
                break
            step = 1 / math.sqrt(now / target)
            _multiply(scaled, step)
            last, out = now, module.forward(*args, **kwargs)
            now, factor = self._variance(out), factor * step
            left = abs(math.log(max(now, 1e-300) / target))
            if not left < 0.9 * abs(math.log(last / target)):
                remark = "its output does not follow its weights"
        if remark and factor != 1:
            _multiply(scaled, 1 / factor)
            factor, out = 1.0, module.forward(*args, **kwargs)
            now = self._variance(out)
        elif not remark and abs(now / target - 1) > tolerance:
            remark = f"still not 1 after {_ATTEMPTS} attempts"
        if not remark:
            self._rescaled(scaled, module, factor)
        self.layers[module] = Calibrated(self._paths[module], before, factor, now, remark)
        return out

    def shared(self, found: Mapping[nn.Module, tuple[float, ...]]) -> Iterator[nn.Module]:
        """Yield the layers that run several times and have a number that is theirs to choose."""
        several = [m for m, layer in self.layers.items() if len(found[m]) > 1 and not layer.remark]
        parts = {part for m in several for part in self._scaled(m) if part is not m}
        yield from (module for module in several if module not in parts)

    def reported(
        self, found: Mapping[nn.Module, tuple[float, ...]], shared: set[nn.Module]
    ) -> Iterator[Calibrated]:
        """Yield what was done to each layer, with what it gives now."""
        for module, layer in self.layers.items():
            uses, remark = found[module], layer.remark
            after = uses[0] if len(uses) == 1 else geometric_mean(uses)
            off = abs(after - 1) > TOLERANCE
            if off and not remark and not layer.rescaled_by:
                remark = (
                    f"no scale was found in {_PASSES} passes that suits its {len(uses)} uses"
                    if module in shared
                    else "it gives something else, now that all layers are scaled"
                )
            yield replace(layer, after=after, uses=uses, remark=remark)

    def _scaled(self, module: nn.Module) -> list[nn.Module]:
        return [module] if module in self._linears else outputs(module)

    def _rescaled(self, scaled: list[nn.Module], by: nn.Module, factor: float) -> None:
        """Note for the parts of a layer that they have been scaled once more."""
        for part in scaled:
            if part is not by and part in self.layers:
                known = self.layers[part]
                whole = self._paths[by] or type(by).__name__
                self.layers[part] = replace(known, factor=known.factor * factor, rescaled_by=whole)


def _finite(measured: float) -> float:
    if not math.isfinite(measured):
        raise UsageError(
            "data: a layer's output is not finite. Look for NaN or Inf in the inputs, or for a "
            "layer that runs so often that its output overflows."
        )
    return measured


def _reason(before: float, scaled: list[nn.Module]) -> str:
    """Return why a layer cannot be scaled, if so."""
    if before == 0:
        return "its output is the same everywhere"
    return "" if scaled else "it has no weights"


def _multiply(modules: list[nn.Module], factor: float) -> None:
    weights = {weight for module in modules for weight in own_weights(module)}
    for weight in weights:
        weight.mul_(factor)
