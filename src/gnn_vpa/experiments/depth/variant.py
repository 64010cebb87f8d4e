"""What the depth experiment compares, and how each of it is trained."""

from dataclasses import dataclass
from itertools import product
from typing import Literal, get_args

from ...aggregations import aggregation, operators
from ...errors import UsageError

Weights = Literal["default", "init", "calibrated"]

DEPTHS = (4, 8, 16, 32, 64, 128)


@dataclass(frozen=True)
class Variant:
    """A network but for its depth.

    Attributes:
        aggr: The aggregation, of neighbours and in the readout.
        weights: ``"default"``: PyTorch's; ``"init"``: those of ``gnn_vpa.init_``;
            ``"calibrated"``: these after ``gnn_vpa.calibrate`` on the training graphs.
        residual: Whether layers have residuals that preserve the variance.

    Example:
        >>> print(Variant("vpa", "calibrated", residual=True))
        vpa, calibrated weights, residuals
    """

    aggr: str
    weights: Weights
    residual: bool

    def branch(self, depth: int) -> float:
        """Return the share of the variance that a layer renews.

        Example:
            >>> Variant("vpa", "default", residual=True).branch(64)
            0.015625
        """
        return 1 / depth if self.residual else 1.0

    def __str__(self) -> str:
        return f"{self.aggr}, {self.weights} weights{', residuals' if self.residual else ''}"


@dataclass(frozen=True)
class Training:
    """How every network is trained: Adam on cross-entropy, in shuffled batches.

    Example:
        >>> Training(epochs=50).learning_rate
        0.001
    """

    epochs: int = 30
    width: int = 32
    batch_size: int = 64
    learning_rate: float = 1e-3
    dropout: float = 0.5
    seed: int = 0


def variants(
    aggrs: tuple[str, ...] = operators(),
    weights: tuple[str, ...] = ("default", "calibrated"),
    residuals: tuple[bool, ...] = (False, True),
) -> list[Variant]:
    """List the variants to compare: every combination.

    Example:
        >>> len(variants())
        16
    """
    aggrs = tuple(aggregation(aggr, among="operators").name for aggr in aggrs)
    for value in weights:
        if value not in get_args(Weights):
            known = ", ".join(get_args(Weights))
            raise UsageError(f"weights: {value!r} is unknown, expected {known}.")
    return [Variant(*each) for each in product(aggrs, weights, residuals)]  # type: ignore[arg-type]
