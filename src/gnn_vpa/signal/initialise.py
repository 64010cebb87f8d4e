"""Initial weights that fit the activation and the variance-preserving aggregation."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn

from ..errors import UsageError
from ._activations import Activation, activation_around, gain, name_of, named
from ._weights import checked_model, is_layer, linears, terms


@dataclass(frozen=True)
class Drawn:
    """How the weights of one Linear layer were drawn: ``std = gain / sqrt(terms * fan_in)``.

    Example:
        >>> print(Drawn("convs.1.lin_rel", fan_in=64, activation="relu", terms=2, std=0.125))
        convs.1.lin_rel: std 0.125 (fan-in 64, relu, 2 terms)
    """

    path: str
    fan_in: int
    activation: str
    terms: int
    std: float

    def __str__(self) -> str:
        shared = f", {self.terms} terms" if self.terms > 1 else ""
        return f"{self.path}: std {self.std:.3g} (fan-in {self.fan_in}, {self.activation}{shared})"


@dataclass(frozen=True)
class InitReport:
    """What ``init_`` did: how each Linear layer was drawn, and which weights it left.

    Example:
        >>> print(init_(nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))))
        2 layers drawn, 0 weights left
          0: std 1 (fan-in 2, relu)
          2: std 0.5 (fan-in 8, relu)
    """

    drawn: tuple[Drawn, ...]
    left: tuple[str, ...]

    def __str__(self) -> str:
        layers, weights = len(self.drawn), len(self.left)
        head = f"{layers} layer{'s' * (layers != 1)} drawn, "
        head += f"{weights} weight{'s' * (weights != 1)} left"
        lines = [f"  {entry}" for entry in self.drawn]
        return "\n".join([head, *lines, *(f"  {path}: left as it was" for path in self.left)])


@torch.no_grad()
def init_(
    model: nn.Module,
    activation: str | Activation | None = None,
    *,
    generator: torch.Generator | None = None,
) -> InitReport:
    r"""Draw initial weights that keep the variance, in place.

    Every weight of a Linear layer is drawn from ``N(0, gain^2 / (terms * fan_in))`` and every bias
    becomes 0. ``gain^2 = 1 / E f(z)^2`` makes up for the activation ``f`` that its input comes
    from: 2 for ReLU, as He et al. have it; 1 without one, as LeCun et al. ``terms`` is 2 where a
    layer adds two results, the neighbours' and the node's own (``GraphConv``, ``SAGEConv``), or
    adds the node to its neighbours before an MLP (``GINConv``). An aggregation that preserves the
    variance (``gnn_vpa.convert``) then hands on what it is given, as far as messages are
    independent; ``gnn_vpa.calibrate`` mends the rest.

    Norms are left, and so are weights of any other kind (attention vectors, embeddings), which are
    listed.

    Args:
        model: Any module: one's own, of PyG, converted, or of ``gnn_vpa.nn``.
        activation: What the layers' inputs come from: a name such as ``"relu"``, a function, or
            ``"identity"``. By default it is looked for in the modules and in the code of the model,
            for each layer in what is nearest around it.
        generator: The source of random numbers; torch's own by default.

    Returns:
        What was drawn how, and what was left.

    Raises:
        UsageError: The model has no Linear layer, one that does not know its size yet, or several
            activations of which none is nearer.

    Example:
        >>> from torch_geometric.nn import GCN
        >>> model = GCN(8, 16, num_layers=2)
        >>> print(init_(model))
        2 layers drawn, 0 weights left
          convs.0.lin: std 0.5 (fan-in 8, relu)
          convs.1.lin: std 0.354 (fan-in 16, relu)
    """
    model = checked_model(model)
    shares = {lin: count for layer in _layers(model) for lin, count in terms(layer)}
    given = named(activation) if isinstance(activation, str) else activation
    drawn, seen = [], set()
    for path, lin in linears(model):
        act = activation_around(model, path) if given is None else given
        fan_in, count = lin.weight.shape[1], shares.get(lin, 1)
        std = gain(act) / math.sqrt(count * fan_in)
        lin.weight.normal_(0, std, generator=generator)
        seen.add(lin.weight)
        if lin.bias is not None:
            lin.bias.zero_()
            seen.add(lin.bias)
        drawn.append(Drawn(path, fan_in, name_of(act), count, std))
    if not drawn:
        raise UsageError("model: it has no Linear layer, so there are no weights to draw.")
    for layer in _layers(model):
        if isinstance(bias := getattr(layer, "bias", None), nn.Parameter):
            bias.zero_()
            seen.add(bias)
    norms = {
        weight for m in model.modules() if "Norm" in type(m).__name__ for weight in m.parameters()
    }
    left = (name for name, weight in model.named_parameters() if weight not in seen | norms)
    return InitReport(tuple(drawn), tuple(left))


def _layers(model: nn.Module) -> Iterator[nn.Module]:
    return (module for module in model.modules() if is_layer(module))
