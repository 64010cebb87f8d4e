"""vpa's lead and its interval in words, so that nobody takes a lower error for a loss."""

import math

from .format import MISSING, number, signed
from .measure import Measure


def lead_text(metric: Measure, lead: float, digits: int = 1, unit: str = "points") -> str:
    """Say how far vpa is ahead; of an error, whether it is lower or higher, and not by a sign.

    Args:
        metric: of what.
        lead: positive where vpa is better.
        digits: how many decimals to print.
        unit: of the lead, see `Measure.unit`.

    Example:
        >>> from gnn_vpa.analysis.measure import measure
        >>> lead_text(measure("accuracy"), 3.1), lead_text(measure("mae"), 11.6, 1, "of MAE")
        ('+3.1 points', 'MAE lower by 11.6')
        >>> lead_text(measure("mae"), -7.2, 1, "% of the best median MAE")
        'MAE higher by 7.2 % of the best median'
    """
    if metric.higher_is_better:
        return f"{signed(lead, digits)} {unit}"
    if not round(float(lead), digits):
        return f"the same {metric.noun}"
    of_median = " % of the best median" if unit == metric.unit(relative=True) else ""
    return f"{metric.noun} {_side(lead)} by {number(abs(lead), digits)}{of_median}"


def interval_text(metric: Measure, low: float, high: float, digits: int = 1) -> str:
    """Say between what vpa's lead is; of an error, how much lower or higher it is.

    Example:
        >>> from gnn_vpa.analysis.measure import measure
        >>> interval_text(measure("accuracy"), 0.5, 2.0)
        '0.5 to 2.0'
        >>> interval_text(measure("mae"), -63.5, 86.7), interval_text(measure("mae"), 0.5, 2.0)
        ('63.5 higher to 86.7 lower', '0.5 to 2.0 lower')
    """
    if metric.higher_is_better:
        return interval(low, high, digits)
    ends = [number(abs(end), digits) for end in (low, high)]
    if _side(low) == _side(high):
        return f"{' to '.join(ends if low >= 0 else reversed(ends))} {_side(low)}"
    return f"{ends[0]} {_side(low)} to {ends[1]} {_side(high)}"


def interval(low: float, high: float, digits: int = 1) -> str:
    """An interval in a table; a dash where folds do not differ, which tells nothing of chance.

    Example:
        >>> interval(-0.5, 2.0), interval(20.0, 20.0)
        ('−0.5 to 2.0', '–')
    """
    if math.isnan(low) or low == high:
        return MISSING
    return f"{number(low, digits)} to {number(high, digits)}"


def _side(lead: float) -> str:
    return "lower" if lead >= 0 else "higher"
