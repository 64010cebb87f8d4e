"""How numbers are written for people."""

import math

NONE = "\N{EN DASH}"
TIMES = "\N{MULTIPLICATION SIGN}"


def number(value: float | None) -> str:
    """Write three digits, with an exponent where there would be too many zeros.

    Example:
        >>> [number(value) for value in (0.0, 12.345, 0.00123, 1.5e-9, 3e8, math.nan)]
        ['0', '12.3', '0.00123', '1.5e-9', '3e8', '–']
    """
    if value is None or math.isnan(value):
        return NONE
    if value == 0:
        return "0"  # and not -0
    if not math.isfinite(value):
        return f"{value:.0f}".replace("inf", "∞")
    if 1e-3 <= abs(value) < 1e5:
        digits = max(0, 2 - math.floor(math.log10(abs(float(f"{value:.3g}")))))
        return f"{value:,.{digits}f}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa.removesuffix('.0')}e{int(exponent)}"


def times(value: float) -> str:
    """Write a factor.

    Example:
        >>> times(12.41), times(math.nan)
        ('×12.4', '–')
    """
    return NONE if math.isnan(value) else f"{TIMES}{number(value)}"


def percent(share: float) -> str:
    """Write a share with two digits, or as many as tell it from none and from all.

    Example:
        >>> [percent(share) for share in (0.914, 0.0021, 0.996, 0.99996, 1.0, 1e-9, 1 - 1e-9)]
        ['91 %', '0.21 %', '99.6 %', '>99.99 %', '100 %', '<0.01 %', '>99.99 %']
    """
    if math.isnan(share):
        return NONE
    value = 100 * share
    if 0 < value < 0.01:
        return "<0.01 %"
    if 99.99 < value < 100:
        return ">99.99 %"
    if 99 < value < 100:
        digits = next(digits for digits in (1, 2) if float(f"{value:.{digits}f}") < 100)
        return f"{value:.{digits}f} %"
    return f"{float(f'{value:.2g}'):g} %"
