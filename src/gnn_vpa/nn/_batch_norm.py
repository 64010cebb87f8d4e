"""Batch normalisation that counts nodes as often as they occur, in each lane by itself."""

import torch
from torch import Tensor, nn

from ._lanes import by_lane


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

    def forward(self, x: Tensor, multiplicity: Tensor | None = None) -> Tensor:
        """Normalise ``x [rows, F]``, whose rows occur ``multiplicity [rows]`` times (default 1)."""
        if multiplicity is None and self.weight.dim() == 1:
            return super().forward(x)
        scale, shift = self._broadcast(self.weight), self._broadcast(self.bias)  # [L, 1, F]
        rows = by_lane(x, len(scale))
        if self.training:
            mean, var = self._statistics(rows, multiplicity)
        else:
            mean, var = self._broadcast(self.running_mean), self._broadcast(self.running_var)
        return ((rows - mean) * ((var + self.eps).rsqrt() * scale) + shift).flatten(0, 1)

    def _statistics(self, rows: Tensor, multiplicity: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return mean and variance of each lane, ``[L, 1, F]``, and let the running ones follow."""
        lanes, slots, _ = rows.shape
        count = rows.new_ones(lanes * slots) if multiplicity is None else multiplicity.to(rows)
        count = count.view(lanes, 1, slots)
        total = count.sum(2, keepdim=True)
        share = count / total.clamp(min=1)
        mean = share @ rows
        var = share @ (rows - mean).square()
        with torch.no_grad():
            busy = (total > 0).to(total)
            rate = busy * self.momentum
            unbiased = var * (total / (total - 1).clamp(min=1))
            self._broadcast(self.running_mean).lerp_(mean, rate)
            self._broadcast(self.running_var).lerp_(unbiased, rate)
            self.num_batches_tracked.add_(busy.view_as(self.num_batches_tracked).long())
        return mean, var

    def _broadcast(self, values: Tensor) -> Tensor:
        """Shape ``[F]`` or ``[L, F]`` so that it meets rows ``[L, S, F]``."""
        return values.view(-1, 1, self.num_features)
