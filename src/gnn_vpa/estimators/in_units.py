"""A regression's network with outputs in the data's units."""

from typing import Any

from torch import Tensor, nn

from ..trained import Units


class InUnits(nn.Module):
    """A network whose outputs are brought from a mean of 0 and a variance of 1 to the data's units.

    Example:
        >>> import torch
        >>> network = InUnits(nn.Identity(), Units(torch.tensor([5.0]), torch.tensor([2.0])))
        >>> network(torch.ones(1, 1))
        tensor([[7.]])
    """

    centre: Tensor
    spread: Tensor

    def __init__(self, network: nn.Module, units: Units) -> None:
        super().__init__()
        self.network = network
        for name, tensor in units._asdict().items():
            self.register_buffer(name, tensor)

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        """Call the network."""
        out: Tensor = self.network(*args, **kwargs) * self.spread + self.centre
        return out
