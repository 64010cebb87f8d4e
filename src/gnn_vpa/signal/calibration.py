"""One pass over data that gives every layer the variance 1."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn.models.rev_gnn import InvertibleModule

from ..errors import GnnVpaError, UsageError
from ._inputs import Call, call_of
from ._start import as_training_starts
from ._variance import variance
from ._weights import checked_model, is_layer, linears, outputs, own_weights

_TOLERANCE = 0.01  # of the variance
_ATTEMPTS = 10


@dataclass(frozen=True)
class Calibrated:
    """One layer: the variance of its output before, and what its weights were multiplied by.

    Attributes:
        path: Where it is in the model.
        before: The variance of its output with its former weights, those before it calibrated.
        factor: What its weights and biases were multiplied by.
        after: The variance of its output now.
        remark: Why ``after`` is not 1, if it is not.

    Example:
        >>> print(Calibrated("lin", before=4.0, factor=0.5, after=1.0))
        lin: variance 4 -> 1 (weights x 0.5)
    """

    path: str
    before: float
    factor: float
    after: float
    remark: str = ""

    def __str__(self) -> str:
        done = f"weights x {self.factor:.3g}" if not self.remark else self.remark
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

    The data pass through the model once. As each layer runs, its weights and biases are divided by
    the standard deviation of its output, over all nodes and features, before activation; then the
    layers behind it run on what it gives now. What is measured is what the data do, so the
    correlation of messages is included, and so is every aggregation.

    A layer gets **one number**. No node is normalised by its own size: what a sum over many
    neighbours was to one over few, it still is. The model can learn the same functions as before;
    its parameters have the same names and shapes, and nothing is added to it.

    Linear layers are calibrated one by one, and a message-passing layer as a whole after them
    (modules of PyG, and those whose class is called ``...Conv``), by the Linear layers that its
    output is made of. One that has no weights, or whose output does not follow them, because a
    norm comes behind, is left and listed. So is one that runs a second time.

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
        The variance of each layer before and after.

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
        [('convs.0.lin_l', 1.0), ('convs.0.lin_r', 1.0), ('convs.0', 1.0)]
    """
    model = checked_model(model)
    if any(isinstance(module, InvertibleModule) for module in model.modules()):
        raise UsageError(
            "model: it has layers that free their inputs (PyG's GroupAddRev), which cannot run "
            "twice on them. Calibrate the layers inside before they are wrapped."
        )
    call = call_of(model, data, max_nodes)
    work = _Work(model, nodes)
    weights = {weight: weight.detach().clone() for weight in model.parameters()}
    try:
        with as_training_starts(model), work:
            _run(model, call)
    except BaseException:
        with torch.no_grad():
            for weight, value in weights.items():
                weight.copy_(value)
        raise
    if not work.layers:
        raise UsageError(
            "model: no Linear or message-passing layer ran, so there is none to scale."
        )
    return CalibrationReport(tuple(work.layers))


def _run(model: nn.Module, call: Call) -> None:
    try:
        model(*call.args, **call.kwargs)
    except GnnVpaError:
        raise
    except Exception as error:
        raise UsageError(
            f"data: {type(model).__name__} does not run on it: {type(error).__name__}: {error}"
        ) from error


class _Work:
    """The hooks of one pass, and what they have done so far."""

    def __init__(self, model: nn.Module, nodes: Tensor | None) -> None:
        self._nodes = nodes
        self.layers: list[Calibrated] = []
        self._paths = {module: path for path, module in model.named_modules()}
        self._linears: set[nn.Module] = {lin for _, lin in linears(model)}
        self._done: set[nn.Module] = set()
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

    def _after(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any
    ) -> Any:
        """Scale a module that has just run, and hand on what it gives then."""
        if not isinstance(out, Tensor) or module in self._done:
            return out
        self._done.add(module)
        scaled: list[nn.Module] = [module] if module in self._linears else outputs(module)
        path, before = self._paths[module], self._variance(out)
        factor, now, remark = 1.0, before, _reason(before, scaled)
        for _ in range(_ATTEMPTS):
            if remark or abs(now - 1) <= _TOLERANCE:
                break
            step = 1 / math.sqrt(now)
            _multiply(scaled, step)
            last, out = now, module.forward(*args, **kwargs)
            now, factor = self._variance(out), factor * step
            if not abs(math.log(max(now, 1e-300))) < 0.9 * abs(math.log(last)):
                remark = "its output does not follow its weights"
        if remark and factor != 1:
            _multiply(scaled, 1 / factor)
            factor, out = 1.0, module.forward(*args, **kwargs)
            now = self._variance(out)
        elif not remark and abs(now - 1) > _TOLERANCE:
            remark = f"still not 1 after {_ATTEMPTS} attempts"
        self.layers.append(Calibrated(path, before, factor, now, remark))
        return out

    def _variance(self, out: Tensor) -> float:
        merged = self._nodes is not None and out.dim() == 2 and len(out) == len(self._nodes)
        return variance(out, self._nodes if merged else None)


def _reason(before: float, scaled: list[nn.Module]) -> str:
    """Return why a layer cannot be scaled, if so."""
    if not math.isfinite(before):
        raise UsageError("data: a layer's output is not finite. Look for NaN or Inf in the inputs.")
    if before == 0:
        return "its output is the same everywhere"
    return "" if scaled else "it has no weights"


def _multiply(modules: list[nn.Module], factor: float) -> None:
    weights = {weight for module in modules for weight in own_weights(module)}
    for weight in weights:
        weight.mul_(factor)
