"""The weights of a model: its Linear layers, and how its message-passing layers add them up."""

from collections.abc import Iterator

import torch
from torch import nn
from torch.nn.parameter import UninitializedParameter
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.dense import Linear as PyGLinear

from ..errors import UsageError

# Layers that add the results of several Linear layers: the one for neighbours, the one for the
# node itself.
_ADDED = {
    "ClusterGCNConv": ("lin_out", "lin_root"),
    "GraphConv": ("lin_rel", "lin_root"),
    "_GraphConv": ("lin_rel", "lin_root"),
    "SAGEConv": ("lin_l", "lin_r"),
    "TransformerConv": ("lin_value", "lin_skip"),
}
# Layers that add the node itself to what they aggregate, in front of an MLP.
_MLP_OF_SUM = ("GINConv", "GINEConv", "_GINConv")
_LOGITS = ("key", "query", "att", "gate", "edge")  # what does not carry the signal itself


def checked_model(model: object) -> nn.Module:
    """Return the module whose weights are meant; raise if there is none to be had."""
    if not isinstance(model, nn.Module):
        raise UsageError(
            f"model: expected a torch.nn.Module, got {type(model).__name__}. "
            "Pass the model itself, not its class or its output."
        )
    if isinstance(model, torch.jit.ScriptModule):
        raise UsageError(
            "model: a module compiled by TorchScript hides its layers. Pass it before that."
        )
    original = getattr(model, "_orig_mod", model)  # what torch.compile wraps: the same weights
    assert isinstance(original, nn.Module)
    return original


def linears(model: nn.Module) -> Iterator[tuple[str, nn.Linear]]:
    """Yield every Linear layer, torch's or PyG's, and its path; raise if it has no size yet."""
    for path, module in model.named_modules():
        if isinstance(module, nn.Linear | PyGLinear):
            if isinstance(module.weight, UninitializedParameter):
                raise UsageError(
                    f"model: {path} does not know its input size yet. Run the model once, under "
                    "torch.no_grad(), before."
                )
            yield path, module


def is_layer(module: nn.Module) -> bool:
    """Tell whether a module passes messages: of PyG, or one whose class is called ``...Conv``."""
    return isinstance(module, MessagePassing) or type(module).__name__.endswith("Conv")


def terms(layer: nn.Module) -> list[tuple[nn.Linear, int]]:
    """Return the Linear layers of a layer that share their variance, and with how many terms."""
    names = {cls.__name__ for cls in type(layer).__mro__}
    for known, children in _ADDED.items():
        if known in names:
            found = [getattr(layer, name, None) for name in children]
            there = [lin for lin in found if isinstance(lin, nn.Linear | PyGLinear)]
            return [(lin, len(there)) for lin in there]
    if names & set(_MLP_OF_SUM):
        return [(lin, 2) for _, lin in list(linears(layer))[:1]]
    return []


def outputs(layer: nn.Module) -> list[nn.Module]:
    """Return the modules whose weights the output of a layer is linear in, as far as can be told.

    Its own weights, its Linear layers (but not those that make attention) and the last one of
    each MLP in it.
    """
    found: list[nn.Module] = [layer] if own_weights(layer) else []
    for name, child in layer.named_children():
        inner = [lin for _, lin in linears(child)]
        if inner and not any(word in name for word in _LOGITS):
            found += inner if isinstance(child, nn.ModuleList) else inner[-1:]
    return found


def own_weights(module: nn.Module) -> list[nn.Parameter]:
    """Return the weights and biases that a module holds itself."""
    found = (getattr(module, name, None) for name in ("weight", "root", "bias"))
    return [weight for weight in found if isinstance(weight, nn.Parameter)]
