"""What a network makes of two small graphs that are always the same.

It is saved with the weights, so that a network that takes them but computes something else (another
factory, an edited one, another version of a library) is noticed.
"""

from contextlib import suppress

import torch
from torch import Tensor, nn

from ..nn import Model
from ..training.own import Adapter, Inputs
from .encoding import Encoding

_EDGES = [[1, 2, 3, 0, 0, 0, 5, 4, 6, 5], [0, 0, 0, 1, 2, 3, 4, 5, 5, 6]]  # a star and a path
_ONE_WAY = [[1, 2, 3, 4, 5], [0, 0, 0, 5, 6]]  # the same: an edge has a source and a target
_SIZES = [4, 3]  # nodes of each
_LARGE = 16.0  # numbers by which a bound between the layers shows
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
    edges, sizes = torch.tensor(_ONE_WAY if one_way else _EDGES), torch.tensor(_SIZES)
    shift = torch.arange(copies).repeat_interleave(edges.shape[1]) * int(sizes.sum())
    edges, sizes = edges.repeat(1, copies) + shift, sizes.repeat(copies)
    batch = torch.repeat_interleave(sizes)
    columns = None
    if encoding.edge_attributes is not None:
        columns = encoding.edge_attributes + sum(width for _, width in encoding.edge_labels)
    edge_attr = None if columns is None else _numbers(edges.shape[1], columns)
    weight = edge_attr[:, 0] if edge_attr is not None and columns == 1 else None
    inputs = Inputs(
        _numbers(len(batch), encoding.width) * (_LARGE if one_way else 1.0),
        edges,
        batch,
        torch.cat([sizes.new_zeros(1), sizes.cumsum(0)]),
        edge_attr,
        _numbers(edges.shape[1], 1)[:, 0] if encoding.edge_weights else weight,
        None if encoding.positions is None else _numbers(len(batch), encoding.positions),
    )
    return Inputs(*(_moved(value, like) for value in inputs))  # type: ignore[arg-type]


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


def _numbers(rows: int, columns: int) -> Tensor:
    """Return numbers between 0 and 1 that are all different."""
    count = torch.arange(1, rows * columns + 1, dtype=torch.float64)
    return (count * 0.6180339887498949 % 1).view(rows, columns).float()


def _moved(value: Tensor | None, like: Tensor) -> Tensor | None:
    if value is None:
        return None
    return value.to(like.device, like.dtype if value.is_floating_point() else None)
