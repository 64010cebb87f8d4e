"""How numbers are written for people."""

import math
from collections.abc import Sequence

MISSING = "\N{EN DASH}"


def percent(share: float | None) -> str:
    """Write a share in percent with one decimal; only nothing reads 0, and only all of it 100.

    Example:
        >>> [percent(share) for share in (0.6327, 1.0, 0.9999, 0.0, 0.0001, None)]
        ['63.3', '100', '>99.9', '0', '<0.1', '–']
    """
    if share is None:
        return MISSING
    if share in (0, 1):
        return f"{100 * share:.0f}"
    text = f"{100 * share:.1f}"
    return {"0.0": "<0.1", "100.0": ">99.9"}.get(text, text)


def number(value: float) -> str:
    """Write a whole number as it is, others with three digits.

    Example:
        >>> [number(value) for value in (3, 19.53, 1234.5, 0.00123, 4.2e9, math.inf)]
        ['3', '19.5', '1,234', '0.00123', '4.2e9', '∞']
    """
    if not math.isfinite(value):
        return str(value).replace("inf", "∞")
    if value == round(value) and abs(value) < 1e6:
        return f"{value:,.0f}"
    if 1e-3 <= abs(value) < 1e6:
        return f"{value:,.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa.removesuffix('.0')}e{int(exponent)}"


def many(count: int, noun: str) -> str:
    """Write how many there are of something.

    Example:
        >>> many(1, "graph"), many(1500, "graph"), many(2, "class")
        ('1 graph', '1,500 graphs', '2 classes')
    """
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun}{'es' if noun.endswith('s') else 's'}"


def listing(items: Sequence[object], most: int = 5) -> str:
    """Write the first items as a reader says them, and how many more there are.

    Example:
        >>> listing([0, 4]), listing(range(9)), listing(["sum"])
        ('0 and 4', '0, 1, 2, 3, 4 and 4 more', 'sum')
    """
    texts = [str(item) for item in items[:most]]
    texts += [f"{len(items) - most:,} more"] if len(items) > most else []
    return " and ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))
