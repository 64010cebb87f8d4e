"""Choosing a setting for each fold by its validation score, and by nothing else."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from math import isnan
from typing import Any, NamedTuple

from ..training import Protocol


class Setting(NamedTuple):
    """What a method is tried with: the model's options, and how it is trained.

    Example:
        >>> Setting((("width", 32),), Protocol(learning_rate=0.01)).values()["width"]
        32
    """

    options: tuple[tuple[str, Any], ...]
    protocol: Protocol

    def values(self) -> dict[str, Any]:
        """Return all of it by name; no option has the name of a field of the protocol."""
        return {**asdict(self.protocol), **dict(self.options)}


@dataclass(frozen=True)
class Selection:
    """Settings to choose from, for each fold anew.

    Attributes:
        settings: In the order of the grid: of equal ones the first is chosen.
        final_runs: How often the chosen one is trained anew; the scores are averaged.

    Example:
        >>> slow, quick = (Setting((), Protocol(learning_rate=rate)) for rate in (0.001, 0.01))
        >>> Selection((slow, quick)).shown(1)
        {'learning_rate': 0.01}
    """

    settings: tuple[Setting, ...]
    final_runs: int = 3

    def seeds(self, seed: int) -> list[int]:
        """Return the seeds of the final runs: of no two cells the same, and never a cell's own.

        Example:
            >>> chosen = Selection((Setting((), Protocol()),), final_runs=3)
            >>> chosen.seeds(0), chosen.seeds(1)
            ([1, 2, 3], [5, 6, 7])
        """
        return [seed * (self.final_runs + 1) + run for run in range(1, self.final_runs + 1)]

    def common(self) -> dict[str, Any]:
        """Return what all settings have in common, by name."""
        first, *rest = (setting.values() for setting in self.settings)
        return {
            name: value
            for name, value in first.items()
            if all(name in other and other[name] == value for other in rest)
        }

    def shown(self, number: int) -> dict[str, Any]:
        """Return what tells a setting apart from the others, by name."""
        common = self.common()
        values = self.settings[number].values()
        return {name: value for name, value in values.items() if name not in common}

    def described(self) -> dict[str, Any]:
        """Return all that the choice depends on, as a file keeps it."""
        settings = [
            {"options": dict(setting.options), "protocol": setting.protocol.settings()}
            for setting in self.settings
        ]
        return {"settings": settings, "final_runs": self.final_runs}


def best(scores: Sequence[float], *, higher_is_better: bool) -> int:
    """Return the place of the best validation score, the first of several.

    A training that diverged has no score (NaN), and is chosen only where all have.

    Example:
        >>> best([0.7, 0.8, float("nan"), 0.8], higher_is_better=True)
        1
        >>> best([0.7, 0.8], higher_is_better=False)
        0
    """
    known = [place for place, score in enumerate(scores) if not isnan(score)]
    sign = -1.0 if higher_is_better else 1.0
    return min(known, key=lambda place: sign * scores[place], default=0)


def choose(by_setting: Iterable[Sequence[float]], *, higher_is_better: bool) -> list[int]:
    """Choose a setting for each fold.

    Args:
        by_setting: Validation scores of each setting's folds.
        higher_is_better: Whether a high score is a good one.

    Example:
        >>> choose([[0.7, 0.6], [0.5, 0.9]], higher_is_better=True)
        [0, 1]
    """
    folds = zip(*by_setting, strict=True)
    return [best(scores, higher_is_better=higher_is_better) for scores in folds]
