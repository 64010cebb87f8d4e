"""A Linear layer for one model or many, and for one-hot features that are never written out."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ._lane_product import LaneProduct
from ._lanes import add_bias, by_lane
from ._traced import is_traced

Mix = Callable[[Tensor], Tensor]  # a sum over rows, [sources, F] -> [targets, F], of any width


class Linear(nn.Linear):
    """``torch.nn.Linear`` whose weight may have a lane axis: ``[L, out, in]``.

    Example:
        >>> codes = torch.tensor([2, 0])
        >>> layer = Linear(3, 4)
        >>> torch.equal(layer(codes), layer(torch.eye(3)[codes]))
        True
    """

    def forward(self, x: Tensor, mix: Mix | None = None, bias: bool = True) -> Tensor:
        """Return ``mix(x) W^T + b``.

        Args:
            x: Features ``[rows, in]``, or the codes ``[rows]`` of one-hot features, or each row's
                lane and code ``[rows, 2]``.
            mix: A linear map of rows that comes first. It commutes with ``W``: with codes, rows
                of ``W^T`` are looked up before it, and the one-hot matrix is not needed.
            bias: Whether to add ``b``, where there is one.
        """
        added = self.bias if bias else None
        if mix is None or x.is_floating_point():
            return product(x if mix is None else mix(x), self.weight, added)
        rows = mix(product(x, self.weight))
        return rows if added is None else add_bias(rows, added)


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return ``x W^T + b`` of rows ``x [rows, in]``, or rows of ``W^T`` for codes ``x``."""
    if not x.is_floating_point():
        rows = _lookup(x, weight)
        return rows if bias is None else add_bias(rows, bias)
    if weight.dim() == 2:
        return F.linear(x, weight, bias)
    x = by_lane(x.to(weight.dtype), weight.shape[0])
    if x.is_cuda and not is_traced():
        out: Tensor = LaneProduct.apply(x, weight)  # type: ignore[no-untyped-call]
        return (out if bias is None else out + bias.unsqueeze(1)).flatten(0, 1)
    if bias is None:
        return torch.bmm(x, weight.mT).flatten(0, 1)
    return torch.baddbmm(bias.unsqueeze(1), x, weight.mT).flatten(0, 1)


def _lookup(codes: Tensor, weight: Tensor) -> Tensor:
    if weight.dim() == 2:
        return _taken(weight.mT, codes)
    lanes, _, width = weight.shape
    if codes.dim() == 2:
        return _taken(weight.mT.flatten(0, 1), codes[:, 0] * width + codes[:, 1])
    first = torch.arange(0, lanes * width, width, device=codes.device)
    rows = by_lane(codes, lanes) + first.unsqueeze(1)
    return _taken(weight.mT.flatten(0, 1), rows.flatten())


def _taken(table: Tensor, rows: Tensor) -> Tensor:
    """Return rows of ``table``, by the call whose backward pass suits the device."""
    # On CUDA that of embedding waits for the device, which a captured step must not.
    return table.index_select(0, rows) if table.is_cuda else F.embedding(rows, table)
