"""Batch normalisation that counts nodes as often as they occur, in each lane by itself."""

import torch
from torch import Tensor, nn

from ..ops import backend
from ._lane_rows import LaneRows, rates
from ._lanes import add_bias, by_lane
from ._normalise import normalise
from ._traced import is_traced


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

    def forward(
        self,
        x: Tensor,
        nodes: Tensor | LaneRows | None = None,
        *,
        offset: Tensor | None = None,
        relu: bool = False,
    ) -> Tensor:
        """Normalise rows; with ``offset`` those of ``x + offset``, with ``relu`` a ReLU follows.

        Args:
            x: ``[rows, F]``.
            nodes: How often each row occurs, ``[rows]``: by default once; or the rows of lanes.
            offset: ``[F]`` or ``[L, F]``, added before. Batch statistics take it out again, so
                that with lanes or ``nodes`` it is not added at all: its gradient is 0 (with lanes
                None), and only the running mean knows of it.
            relu: Whether to return ``max(0, y)``.
        """
        if self.weight.dim() == 1 and (nodes is None or not self.training):
            if not self.training and _is_read_only(x):
                return self._affine(x, offset, relu)
            out = super().forward(x if offset is None else add_bias(x, offset))
            return out.relu() if relu else out
        scale, shift = (w.view(-1, self.num_features) for w in (self.weight, self.bias))
        if offset is not None and self.weight.dim() == 1:
            shift = torch.add(shift, offset, alpha=0)
        fusible = not is_traced() and x.dtype in (torch.bfloat16, torch.float32, torch.float64)
        lane_rows = nodes if isinstance(nodes, LaneRows) else None
        if fusible and backend(x) == "triton":
            return self._fused(x, nodes, scale, shift, offset, relu)
        if lane_rows is not None and lane_rows.lane is not None:
            return self._by_block(x, lane_rows, offset, relu)
        rows = by_lane(x, len(scale))
        scale, shift = self._broadcast(scale), self._broadcast(shift)
        if self.training:
            if lane_rows is None:
                ones = rows.new_ones(len(x)) if nodes is None else nodes.to(rows)  # type: ignore[union-attr]
                lane_rows = LaneRows.even(ones, len(rows))
            assert lane_rows.share is not None
            out, mean, var = normalise(rows, lane_rows.share, scale, shift, self.eps, relu)
            self.follow(mean, var, lane_rows, offset)
        else:
            added = 0 if offset is None else self._broadcast(offset.detach())
            mean, var = self._broadcast(self.running_mean), self._broadcast(self.running_var)
            slope = scale * (var + self.eps).rsqrt()
            out = torch.addcmul(shift - (mean - added) * slope, rows, slope)
            if relu:
                out = out.relu() if torch.is_grad_enabled() else out.relu_()
        return out.flatten(0, 1)

    def _affine(self, x: Tensor, offset: Tensor | None, relu: bool) -> Tensor:
        """Normalise by what is known: a factor and a summand for each column, in one pass."""
        slope = self.weight * (self.running_var + self.eps).rsqrt()
        mean = self.running_mean if offset is None else self.running_mean - offset
        out = torch.addcmul(self.bias - mean * slope, x, slope)
        return out.relu_() if relu else out

    def _fused(
        self,
        x: Tensor,
        nodes: Tensor | LaneRows | None,
        scale: Tensor,
        shift: Tensor,
        offset: Tensor | None,
        relu: bool,
    ) -> Tensor:
        from . import _norm_kernels
        from ._fused_norm import FusedNorm

        offset = None if offset is None else offset.detach().contiguous()
        running = (self.running_mean, self.running_var, self.num_batches_tracked)
        lane_rows = nodes if isinstance(nodes, LaneRows) else None
        parts = _norm_kernels.parts_of(len(x), len(scale), lane_rows)
        if not self.training:
            return _norm_kernels.judge(
                x.contiguous(), scale, shift, offset, *running[:2], self.eps, relu, parts
            )
        count = nodes.multiplicity if isinstance(nodes, LaneRows) else nodes
        count = scale.new_ones(len(x)) if count is None else count
        settings = (offset, running, self.eps, self.momentum, relu, parts)
        return FusedNorm.apply(x, count, scale, shift, settings)  # type: ignore[no-any-return, no-untyped-call]

    def _by_block(self, x: Tensor, blocks: LaneRows, offset: Tensor | None, relu: bool) -> Tensor:
        """Write the formula down, for every device: each row with its lane's statistics."""
        lane, added = blocks.row_lane, 0 if offset is None else offset.detach()
        dtype, x = x.dtype, x.to(self.weight.dtype)
        if self.training:
            count = blocks.multiplicity.to(x).unsqueeze(1)
            total = count.new_zeros(len(self.weight), 1).index_add(0, lane, count)
            safe = torch.where(total > 0, total, 1)
            nothing = torch.zeros_like(self.weight)
            mean = nothing.index_add(0, lane, count * x) / safe
            var = nothing.index_add(0, lane, count * (x - mean[lane]).square()) / safe
            mean_now, var_now = (t.detach().unsqueeze(1) for t in (mean + added, var))
            self._follow(mean_now, var_now, *rates(total.unsqueeze(1)))
        else:
            mean, var = self.running_mean - added, self.running_var
        slope = self.weight * (var + self.eps).rsqrt()
        out = ((x - mean[lane]) * slope[lane] + self.bias[lane]).to(dtype)
        return out.relu() if relu else out

    def follow(self, mean: Tensor, var: Tensor, rows: LaneRows, offset: Tensor | None) -> None:
        """Let the running statistics follow those of a batch before ``offset`` was added.

        Args:
            mean: ``[L, 1, F]``.
            var: ``[L, 1, F]``.
            rows: Of lanes that own equally many.
            offset: ``[F]`` or ``[L, F]``.
        """
        assert rows.busy is not None
        assert rows.unbiased is not None
        mean = mean if offset is None else mean + self._broadcast(offset.detach())
        self._follow(mean, var, rows.busy, rows.unbiased)

    @torch.no_grad()
    def _follow(self, mean: Tensor, var: Tensor, busy: Tensor, unbiased: Tensor) -> None:
        """Let the running statistics follow those of a batch, ``[L, 1, F]``."""
        rate = busy * self.momentum
        self._broadcast(self.running_mean).lerp_(mean, rate)
        self._broadcast(self.running_var).lerp_(var * unbiased, rate)
        self.num_batches_tracked.add_(busy.view_as(self.num_batches_tracked).long())

    def _broadcast(self, values: Tensor) -> Tensor:
        """Shape ``[F]`` or ``[L, F]`` so that it meets rows ``[L, S, F]``: ``[L, 1, F]``."""
        return values.view(-1, 1, self.num_features)


def _is_read_only(x: Tensor) -> bool:
    """Say whether rows are on the CPU, and neither derivatives nor a trace are asked for."""
    plain = x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64)
    return plain and not torch.is_grad_enabled() and not is_traced()
