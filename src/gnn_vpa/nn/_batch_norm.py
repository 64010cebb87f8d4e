"""Batch normalisation that counts nodes as often as they occur, in each lane by itself."""

import torch
from torch import Tensor, nn

from ._lanes import by_lane
from ._normalise import normalise


class BatchNorm(nn.BatchNorm1d):
    r"""``torch.nn.BatchNorm1d`` over nodes of multiplicity ``m``, for one model or many.

    With ``M = sum_i m_i`` in each lane, training normalises by

    ``mean = sum_i m_i x_i / M`` and ``var = sum_i m_i (x_i - mean)^2 / M``,

    and the running variance is that of ``M / (M - 1) * var``: what ``m_i`` copies of every row
    would give. A lane without nodes leaves its running statistics as they are.

    Example:
        >>> x = torch.tensor([[1.0], [4.0]])
        >>> merged = BatchNorm(1)(x, torch.tensor([2.0, 1.0]))
        >>> torch.allclose(merged[[0, 0, 1]], BatchNorm(1)(x[[0, 0, 1]]))
        True
    """

    momentum: float
    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor

    def __init__(self, num_features: int) -> None:
        super().__init__(num_features)

    def forward(self, x: Tensor, nodes: Tensor | None = None) -> Tensor:
        """Normalise ``x [rows, F]``, whose rows occur ``nodes [rows]`` times (by default once)."""
        if self.weight.dim() == 1 and (nodes is None or not self.training):
            return super().forward(x)
        scale, shift = self._broadcast(self.weight), self._broadcast(self.bias)
        rows = by_lane(x, len(scale))
        if self.training:
            count = rows.new_ones(len(x)) if nodes is None else nodes.to(rows)
            count = count.view(*rows.shape[:2], 1)
            total = count.sum(1, keepdim=True)
            share = count / torch.where(total > 0, total, 1)
            out, mean, var = normalise(rows, share, scale, shift, self.eps)
            self._follow(mean, var, total)
        else:
            mean, var = self._broadcast(self.running_mean), self._broadcast(self.running_var)
            slope = scale * (var + self.eps).rsqrt()
            out = torch.addcmul(shift - mean * slope, rows, slope)
        return out.flatten(0, 1)

    @torch.no_grad()
    def _follow(self, mean: Tensor, var: Tensor, total: Tensor) -> None:
        """Let the running statistics follow those of ``total [L, 1, 1]`` nodes."""
        busy = (total > 0).to(total)
        rate = busy * self.momentum
        unbiased = var * (total / (total - 1).clamp(min=1))
        self._broadcast(self.running_mean).lerp_(mean, rate)
        self._broadcast(self.running_var).lerp_(unbiased, rate)
        self.num_batches_tracked.add_(busy.view_as(self.num_batches_tracked).long())

    def _broadcast(self, values: Tensor) -> Tensor:
        """Shape ``[F]`` or ``[L, F]`` so that it meets rows ``[L, S, F]``: ``[L, 1, F]``."""
        return values.view(-1, 1, self.num_features)
