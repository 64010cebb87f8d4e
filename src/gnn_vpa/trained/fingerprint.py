"""What a network makes of two small graphs that are always the same.

It is saved with the weights, so that a network that takes them but computes something else (another
factory, an edited one, another version of a library) is noticed.
"""

from contextlib import suppress

import torch
from torch import Tensor, nn

from ..nn import Model
from ..training.own import Adapter, Inputs, two_graphs
from .encoding import Encoding

TOLERANCE = 1e-3  # relative: other versions of a library may round otherwise


def fingerprint(
    module: nn.Module, encoding: Encoding, name: str, *, one_way: bool = False
) -> Tensor | None:
    """Return the outputs of a network for two small graphs; None if it cannot compute them.

    Args:
        module: The network.
        encoding: What it sees.
        name: What it is called in messages.
        one_way: Whether edges go one way alone, and numbers are large.

    Example:
        >>> from gnn_vpa import build_model
        >>> fingerprint(build_model("gin", 3, 2).eval(), Encoding("labels", attributes=3), "").shape
        torch.Size([2, 2])
    """
    moved = sample(encoding, next(module.parameters(), torch.empty(0)), one_way=one_way)
    with torch.inference_mode(), suppress(Exception):  # such inputs are not for every model
        if isinstance(module, Model):
            found = module(moved.x, moved.edge_index, moved.batch)
        else:
            found = Adapter.of(module, name)(module, moved)
        if isinstance(found, Tensor) and bool(torch.isfinite(found).all()):
            return found.clone().cpu()
    return None


def sample(encoding: Encoding, like: Tensor, copies: int = 1, *, one_way: bool = False) -> Inputs:
    """Return two small graphs with all that a network of this encoding may see.

    Args:
        encoding: The network's.
        like: A tensor of the device and type that numbers are to have.
        copies: How often the two graphs are there.
        one_way: Whether edges go one way alone, and features of nodes are large.

    Example:
        >>> sample(Encoding("ones"), torch.empty(0), copies=3).ptr
        tensor([ 0,  4,  7, 11, 14, 18, 21])
    """
    columns = None
    if encoding.edge_attributes is not None:
        columns = encoding.edge_attributes + sum(width for _, width in encoding.edge_labels)
    inputs = two_graphs(
        encoding.width,
        columns,
        encoding.positions,
        has_weights=encoding.edge_weights,
        copies=copies,
        one_way=one_way,
    )
    return inputs.to(like.device, like.dtype)


def agrees(own: Tensor | None, saved: Tensor | None) -> bool:
    """Say whether two fingerprints are of the same network.

    Example:
        >>> agrees(torch.tensor([1.0]), torch.tensor([1.1])), agrees(None, None)
        (False, True)
    """
    if own is None or saved is None:
        return own is saved
    return own.shape == saved.shape and torch.allclose(
        own.double(), saved.double(), rtol=TOLERANCE, atol=TOLERANCE * float(saved.abs().max())
    )
