"""Numbers as text, the same in every output."""

import math
from decimal import Decimal

MINUS = "\N{MINUS SIGN}"
MISSING = "\N{EN DASH}"

_MOST_DECIMALS = 6  # of more nobody counts the zeros
_WITH_EXPONENT = 2  # decimals of a number that has one
_LONG = 10**7  # from here on nobody counts the digits before the point either


def number(value: float | None, digits: int = 1) -> str:
    """A number with a fixed count of decimals and a true minus sign.

    With more than six decimals, or fewer than none, it has an exponent, which is the same for all
    numbers of that count: 1.20e-8 and 0.15e-8 with ten. One with more than seven digits before its
    point, such as the error of a training that exploded, has its own: 1.00e13 beside 0.412.

    Example:
        >>> number(0.4123, 3), number(1.0023e13, 3), number(1.2e-8, 10), number(0.5, 10)
        ('0.412', '1.00e13', '1.20e-8', '5.00e-1')
    """
    if value is None or math.isnan(value):
        return MISSING
    digits = int(digits)  # which a frame has as a number of its own
    rounded = round(float(value), digits)
    return (MINUS if rounded < 0 else "") + _unsigned(abs(rounded), digits)


def _unsigned(size: float, digits: int) -> str:
    is_plain = 0 <= digits <= _MOST_DECIMALS
    decimals = digits if is_plain else _WITH_EXPONENT
    if not size or not math.isfinite(size):
        return f"{size:.{digits if is_plain else 0}f}"
    exponent = 0 if is_plain else _WITH_EXPONENT - digits
    mantissa = Decimal(size).scaleb(-exponent)
    if mantissa >= _LONG:
        shown, _, power = f"{size:.{_WITH_EXPONENT}e}".partition("e")
        return f"{shown}e{int(power)}"
    return f"{mantissa:.{decimals}f}" + ("" if is_plain else f"e{exponent}")


def signed(value: float | None, digits: int = 1) -> str:
    """A difference, which shows its sign unless it rounds to zero."""
    text = number(value, digits)
    return f"+{text}" if value is not None and round(float(value), digits) > 0 else text


def mean_std(mean: float, std: float, digits: int = 1, repeats_std: float = math.nan) -> str:
    """Mean and standard deviation as the paper prints them; the mean alone without the latter.

    Where there are repeats, the standard deviation of their means is in brackets.
    """
    shown = number(mean, digits)
    if not math.isnan(std):
        shown += f" ± {number(std, digits)}"
    if not math.isnan(repeats_std):
        shown += f" (repeats ± {number(repeats_std, digits)})"
    return shown


def noted(text: str, note: str) -> str:
    """A number, and in brackets behind it what a reader must know of it."""
    return f"{text} ({note})" if note else text


def p_value(p: float | None) -> str:
    """A p-value: three decimals, or as the paper prints small ones, 2.0e-5."""
    if p is None or math.isnan(p):
        return MISSING
    if p >= 0.001 or p == 0:
        return f"{p:.3f}"
    mantissa, exponent = f"{p:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def listing(items: list[str]) -> str:
    """Items as a reader says them: a, b and c."""
    return " and ".join(filter(None, (", ".join(items[:-1]), *items[-1:])))


def some(items: list[str], most: int = 5) -> str:
    """The first items as a reader says them, and how many more there are."""
    more = [f"{len(items) - most} more"] if len(items) > most else []
    return listing([*items[:most], *more])


def count(n: int, noun: str) -> str:
    """A number of things, in the plural unless it is one."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def capital(text: str) -> str:
    """A text whose first letter is a capital, as at the start of a sentence."""
    return text[:1].upper() + text[1:]
