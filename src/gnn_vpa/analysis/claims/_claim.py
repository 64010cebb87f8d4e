"""A claim of the paper, and the verdict that numbers give of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

_NEARLY_ALL, _MOST = 7 / 8, 0.5
_FEW = 6


class Verdict(StrEnum):
    """What was seen of a claim.

    Example:
        >>> Verdict.of([True, True, False])
        <Verdict.PART: 'holds in part'>
    """

    HOLDS = "holds"
    PART = "holds in part"
    NOT_SEEN = "not seen"
    UNTESTED = "not tested"

    @classmethod
    def of(cls, cases: Sequence[bool]) -> Verdict:
        """Judge by the share of cases in which a claim is true: seven of eight, or half.

        Example:
            >>> Verdict.of([True] * 9 + [False]).value, Verdict.of([False]).value
            ('holds', 'not seen')
        """
        if not cases:
            return cls.UNTESTED
        share = sum(cases) / len(cases)
        return cls.HOLDS if share >= _NEARLY_ALL else cls.PART if share >= _MOST else cls.NOT_SEEN


@dataclass(frozen=True)
class Claim:
    """What the paper says, and what came out here.

    Attributes:
        text: In the paper's words, or close to them.
        where: Where it says so.
        verdict: Computed from our results.
        seen: Our numbers, and the paper's own by the same count.

    Example:
        >>> Claim("All could be trained.", "Discussion", Verdict.HOLDS, "0 diverged.").verdict.value
        'holds'
    """

    text: str
    where: str
    verdict: Verdict
    seen: str


def tally(cases: Mapping[str, bool], noun: str) -> str:
    """Count the cases that are true, and name the others if they are few.

    Example:
        >>> tally({"GIN": True, "GCN": False}, "models")
        '1 of 2 models (not GCN)'
    """
    missed = [name for name, true in cases.items() if not true]
    named = f" (not {', '.join(missed)})" if 0 < len(missed) <= _FEW else ""
    return f"{len(cases) - len(missed)} of {len(cases)} {noun}{named}"
