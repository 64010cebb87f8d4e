"""A message-passing layer of a model whose activation is a ReLU."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

from ._bias_relu import bias_relu
from ._lanes import add_bias
from ._level_batch import Hop


class Layer(nn.Module, ABC):
    """``z = f(x) + b``, from the rows before a hop to the rows after, and ``relu(z)``."""

    @abstractmethod
    def combine(self, x: Tensor, hop: Hop, aggr: str) -> Tensor:
        """Return ``f(x)``, without the bias."""

    @property
    @abstractmethod
    def added(self) -> Tensor:
        """The bias ``b``."""

    def forward(self, x: Tensor, hop: Hop, aggr: str) -> Tensor:
        """Return ``z``."""
        return add_bias(self.combine(x, hop, aggr), self.added)

    def activated(self, x: Tensor, hop: Hop, aggr: str) -> Tensor:
        """Return ``relu(z)``, in one pass where no hook can be watching for ``z``."""
        if hop.is_plain:
            out: Tensor = self(x, hop, aggr)
            return out.relu()
        return bias_relu(self.combine(x, hop, aggr), self.added)
