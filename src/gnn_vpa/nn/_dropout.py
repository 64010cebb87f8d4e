"""Dropout whose random numbers can be handed in."""

from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import UsageError


class Dropout(nn.Module):
    """Set values to 0 with probability ``p`` while training, and scale the others by ``1/(1-p)``.

    Example:
        >>> import torch
        >>> Dropout(0.5)(torch.ones(4), torch.tensor([0.1, 0.5, 0.4, 0.9]))
        tensor([0., 2., 0., 2.])
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise UsageError(f"dropout: expected a probability from 0 to below 1, got {p}.")
        self.p: float | Tensor = p  # lanes may have one each, ``[L]``

    def forward(self, x: Tensor, uniform: Tensor | None = None) -> Tensor:
        """Drop values of ``x``: those whose ``uniform`` (in [0, 1), shaped as x) is below ``p``.

        Given numbers make a result that does not depend on what else draws from the generator,
        and can be filled in before a captured step; by default PyTorch draws.
        """
        if not self.training:
            return x
        if uniform is None:
            if isinstance(self.p, Tensor):
                raise UsageError("uniform: lanes that differ in dropout need numbers of their own.")
            return F.dropout(x, self.p)
        if uniform.shape != x.shape:
            raise UsageError(
                f"uniform: expected shape {list(x.shape)}, got {list(uniform.shape)}. "
                "The model's dropout_shape(num_graphs) tells it."
            )
        p = self.p
        if isinstance(p, Tensor):  # lanes stand along the axis of the graphs
            p = p.unsqueeze(1).expand(-1, x.shape[-2] // len(p)).reshape(-1, 1)
        return x * (uniform >= p) / (1 - p)

    def extra_repr(self) -> str:
        """Show the probability."""
        return f"p={self.p}"
