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
    if value == 0 or not math.isfinite(value):
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
    """Write a share.

    Example:
        >>> percent(0.914), percent(0.0021)
        ('91 %', '0.21 %')
    """
    return f"{float(f'{100 * share:.2g}'):g} %"
