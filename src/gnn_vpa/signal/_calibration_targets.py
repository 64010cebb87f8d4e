"""What layers that run several times are to give the first time, so that the mean of all is 1."""

import math
from collections.abc import Iterable, Mapping

import numpy as np
from torch import nn

TOLERANCE = 0.01  # of the variance
_LONGEST, _FARTHEST = 3.0, 15.0  # how far a target moves at once, and in all, as a logarithm


def geometric_mean(variances: Iterable[float]) -> float:
    """Return their geometric mean; where all are 0, that."""
    some = [math.log(value) for value in variances if value > 0]
    return math.exp(math.fsum(some) / len(some)) if some else 0.0


class Targets:
    """The variances that the first uses of layers are to have, so that the mean of all uses is 1.

    As logarithms the means are nearly linear in the targets, but one layer's depends on the
    others'. So the slopes are learned from pass to pass (Broyden's method); at first each layer is
    taken for one that is given its own output.

    Args:
        uses: The layers, and how often each of them runs.
    """

    def __init__(self, uses: Mapping[nn.Module, int]) -> None:
        self._layers = list(uses)
        self._targets = np.zeros(len(uses))
        self._slopes = np.diag([(times + 1) / 2 for times in uses.values()])
        self._step = self._means = self._best = np.zeros(len(uses))
        self._least = math.inf

    @property
    def variances(self) -> dict[nn.Module, float]:
        """The target of each layer."""
        return dict(zip(self._layers, np.exp(self._targets).tolist(), strict=True))

    def learn(self, found: Mapping[nn.Module, tuple[float, ...]]) -> bool:
        """Tell whether all means are 1; if not, choose other targets."""
        measured = [geometric_mean(found[layer]) for layer in self._layers]
        if all(abs(mean - 1) <= TOLERANCE for mean in measured):
            return True
        means = np.log(np.maximum(measured, 1e-30))
        if np.abs(means).max() < self._least:
            self._least, self._best = np.abs(means).max(), self._targets
        if (length := self._step @ self._step) > 0:
            missed = means - self._means - self._slopes @ self._step
            self._slopes = self._slopes + np.outer(missed, self._step) / length
        step = -np.linalg.lstsq(self._slopes, means)[0]
        wanted = np.clip(self._targets + np.clip(step, -_LONGEST, _LONGEST), -_FARTHEST, _FARTHEST)
        self._means, self._step, self._targets = means, wanted - self._targets, wanted
        return False

    def settle(self) -> None:
        """Go back to the targets that came nearest."""
        self._targets = self._best
