"""An answer to one question: which aggregation of a model, on a data set or over all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ..measure import Measure, measure
from ..settings import Setting


@dataclass(frozen=True)
class Candidate:
    """An aggregation, and what may be said of it.

    Args:
        name: the aggregation.
        score: its mean, as tables print it.
        cost: how much worse it is than the best mean; 0 for that one, and for what has the same.
        low: it costs at least this, with 95 % confidence; 0 where it may be the best.
        high: it costs at most this against the true best; NaN where that is not known.
        half: half of the interval of its difference to the best mean; NaN where it is not known.
        share: of resampled folds in which its mean is the best; NaN for a single fold.
        beaten: whether it is shown not to be the best.

    Example:
        >>> Candidate("mean", 77.1, cost=8.0, low=3.1, high=12.9, half=4.9, share=0.0,
        ...           beaten=True).beaten
        True
    """

    name: str
    score: float
    cost: float
    low: float
    high: float
    half: float
    share: float
    beaten: bool


@dataclass(frozen=True)
class Choice:
    """Which aggregations of one model may be the best, on one data set or averaged over several.

    Args:
        setting: what the results were made under.
        model: the network.
        datasets: one, or all that are averaged.
        folds: on which all candidates are compared, of all repeats and data sets.
        repeats: how often the folds were drawn.
        candidates: the best mean first; empty where nothing can be compared.
        left_out: aggregations that cannot be compared, each with the reason.
        default: what to take; None where nothing can be said.
        why: the reason for it.
        surer: what would make the answer surer, in sentences.
        cautions: what the answer cannot tell, in sentences.
        lines: scores of what is no candidate, by name: baselines and the ceiling.
        digits: how many decimals to print.
        relative: whether scores are in percent of each data set's best median (see `percents`),
            their units differing.

    Example:
        >>> best = Candidate("vpa", 85.1, 0.0, 0.0, 0.0, 4.9, 1.0, False)
        >>> worst = Candidate("mean", 77.1, 8.0, 3.1, 12.9, 4.9, 0.0, True)
        >>> found = Choice(Setting("released", "auto"), "GIN", ("MUTAG",), 10, 1, (best, worst))
        >>> found.may_be_best, found.avoid
        (('vpa',), ('mean',))
        >>> found.where
        'GIN on MUTAG'
    """

    setting: Setting
    model: str
    datasets: tuple[str, ...]
    folds: int
    repeats: int
    candidates: tuple[Candidate, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    default: str | None = None
    why: str = ""
    surer: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    lines: dict[str, float] = field(default_factory=dict)
    digits: int = 1
    relative: bool = False

    @property
    def measure(self) -> Measure:
        """The metric of the scores."""
        return measure(self.setting.metric)

    @property
    def unit(self) -> str:
        """What costs are in."""
        return self.measure.unit(self.relative)

    @property
    def place(self) -> str:
        """The data set, or how many are averaged."""
        return self.datasets[0] if len(self.datasets) == 1 else f"{len(self.datasets)} data sets"

    @property
    def where(self) -> str:
        """The question's name: the model, and on what."""
        return f"{self.model} on {self.place}"

    @property
    def is_compared(self) -> bool:
        """Whether there is anything to choose between, and chance can be told."""
        return len(self.candidates) > 1 and not math.isnan(self.candidates[0].half)

    @property
    def may_be_best(self) -> tuple[str, ...]:
        """The aggregations among which the best is, with 95 % confidence; the best mean first."""
        return tuple(candidate.name for candidate in self.candidates if not candidate.beaten)

    @property
    def tied(self) -> tuple[str, ...]:
        """The aggregations of the best mean: one, or several with the same score."""
        return tuple(c.name for c in self.candidates if not c.cost)

    @property
    def avoid(self) -> tuple[str, ...]:
        """The aggregations that are shown not to be the best; the cheapest first."""
        return tuple(candidate.name for candidate in self.candidates if candidate.beaten)
