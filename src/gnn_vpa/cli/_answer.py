"""The answer in a terminal: in words, a picture made of signs, and a line for each data set."""

import math
from typing import TYPE_CHECKING

from ._console import console, headline, print_table, prose, say

if TYPE_CHECKING:
    from gnn_vpa.analysis import Answer, Candidate, Choice

_WIDTH = 33  # signs of a drawn interval


def print_answer(answer: "Answer") -> None:
    """Print which aggregations may be the best, of each model and then on each data set."""
    from gnn_vpa.analysis.answer import sentences, short
    from gnn_vpa.analysis.format import capital

    for warning in answer.warnings:
        prose(f"Note: {warning}")
    if not answer.choices:
        headline(answer.text)
    several = len({choice.setting for choice in answer.choices}) > 1
    setting = None
    for main in answer.main:
        if several and main.setting != setting:
            prose(f"\n{capital(str(main.setting))}")
            setting = main.setting
        first, *rest = sentences(main)
        headline(first)
        for sentence in rest:
            prose(f"  {sentence}")
        if console().is_terminal and len(main.candidates) > 1:
            _print_candidates(main)
        if parts := answer.parts(main):
            rows = [[choice.place, *short(choice)] for choice in parts]
            header = ["data set", f"{main.model}: may be the best", "avoid (what it costs)"]
            say("")
            print_table("Data set by data set", header, rows)
            say("")


def _print_candidates(choice: "Choice") -> None:
    from gnn_vpa.analysis.format import MISSING, number

    say("")
    rows = [
        [
            candidate.name,
            number(candidate.score, choice.digits),
            drawn(choice, candidate),
            MISSING if math.isnan(candidate.share) else f"{100 * candidate.share:.0f} %",
        ]
        for candidate in choice.candidates
    ]
    print_table(
        f"{choice.where}: {choice.measure.label}",
        ["aggregation", "mean", "● may be the best, ○ beaten", "leads"],
        rows,
    )
    say("")


def drawn(choice: "Choice", candidate: "Candidate") -> str:
    """Draw a dot with its interval as a line of signs, and the best mean as an upright line.

    Example:
        >>> from gnn_vpa.analysis import Candidate, Choice, Setting
        >>> both = (Candidate("vpa", 85.0, 0, 0, 0, 4.0, 1, False),
        ...         Candidate("sum", 75.0, 10, 6, 14, 4.0, 0, True))
        >>> found = Choice(Setting("released", "auto"), "GIN", ("MUTAG",), 10, 1, both)
        >>> for one in both:
        ...     print(drawn(found, one).rstrip())
                          ───────●───────
        ───────○───────          │
    """
    halves = [c.half if math.isfinite(c.half) else 0.0 for c in choice.candidates]
    low = min(c.score - half for c, half in zip(choice.candidates, halves, strict=True))
    high = max(c.score + half for c, half in zip(choice.candidates, halves, strict=True))
    span = high - low or 1.0

    def place(score: float) -> int:
        return round((min(max(score, low), high) - low) / span * (_WIDTH - 1))

    signs = [" "] * _WIDTH
    if not math.isnan(candidate.half):
        first, last = (place(candidate.score + side * candidate.half) for side in (-1, 1))
        signs[first : last + 1] = "─" * (last + 1 - first)
    best = place(choice.candidates[0].score)
    signs[best] = "┼" if signs[best] == "─" else "│"
    signs[place(candidate.score)] = "○" if candidate.beaten else "●"
    return "".join(signs)
