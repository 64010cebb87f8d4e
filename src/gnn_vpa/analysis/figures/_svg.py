"""The little of SVG that two figures need: elements, scales and ticks."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ...escape import html

WIDTH = 340
_LEGIBLE = 3  # ticks by which values can be read; decades may give fewer


def element(name: str, content: str | None = None, /, **attributes: object) -> str:
    """One element; an underscore in an attribute's name stands for a hyphen."""
    names = {key: key.strip("_").replace("_", "-") for key in attributes}
    text = "".join(f' {names[k]}="{html(_short(v))}"' for k, v in attributes.items())
    return f"<{name}{text}/>" if content is None else f"<{name}{text}>{content}</{name}>"


def text(content: str, x: float, y: float, **attributes: object) -> str:
    """A piece of text that starts at a point."""
    return element("text", html(content), x=x, y=y, **attributes)


def width(content: str) -> float:
    """About how wide a piece of text is, rather too wide."""
    return 7.2 * len(content)


def label(content: str, x: float, y: float, most: float, **attributes: object) -> str:
    """A piece of text within a width: a longer one lacks its middle, and a title has it whole."""
    fits = int(most / width("x"))
    if len(content) <= fits:
        return text(content, x, y, **attributes)
    last = fits // 2
    start, end = content[: max(fits - 1 - last, 0)], content[len(content) - last :]
    short = f"{start}\N{HORIZONTAL ELLIPSIS}{end}"
    whole = html(short) + element("title", html(content))
    return element("text", whole, x=x, y=y, **attributes)


def room(labels: Iterable[str], least: float) -> float:
    """How much of a figure's width to leave for labels at its side: at most a half."""
    return min(max([least, *(width(label) + 8 for label in labels)]), WIDTH / 2)


def path(points: Iterable[tuple[float, float]], *, closed: bool = False) -> str:
    """The `d` of a path through points."""
    joined = "L".join(f"{_short(x)} {_short(y)}" for x, y in points)
    return f"M{joined}Z" if closed else f"M{joined}"


def picture(height: float, title: str, description: str, parts: Iterable[str]) -> str:
    """A whole figure, named and described for those who do not see it."""
    head = element("title", html(title)) + element("desc", html(description))
    return element(
        "svg",
        head + "".join(parts),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {_short(height)}",
        role="img",
        aria_label=f"{title}. {description}",
        font_family="system-ui, sans-serif",
        font_size=11,
        fill="currentColor",
    )


@dataclass(frozen=True)
class Scale:
    """A map from values to positions, linear or logarithmic."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The position of a value; beyond the ends it stays at the end."""
        bend: Callable[[float], float] = math.log if self.log else float
        value = min(max(value, self.low), self.high)
        share = (bend(value) - bend(self.low)) / (bend(self.high) - bend(self.low))
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 5) -> list[float]:
        """Round values within the scale, about so many at most."""
        if not self.log:
            return self._linear_ticks(most)
        choices = (self._log_ticks(most), self._linear_ticks(most), self._linear_ticks(2 * most))
        return next((ticks for ticks in choices if len(ticks) >= _LEGIBLE), choices[-1])

    def _linear_ticks(self, most: int) -> list[float]:
        step = _round_step((self.high - self.low) / most)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [index * step for index in range(first, last + 1)]

    def _log_ticks(self, most: int) -> list[float]:
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)))
        ticks: list[float] = []
        for factors in ((1, 2, 5), (1, 3), (1,)):
            ticks = [factor * 10.0**decade for decade in decades for factor in factors]
            ticks = [tick for tick in ticks if self.low <= tick <= self.high]
            if len(ticks) <= most + 1:
                return ticks
        return ticks[:: math.ceil(len(ticks) / most)]


def _round_step(rough: float) -> float:
    magnitude = 10.0 ** math.floor(math.log10(rough))
    return next(m * magnitude for m in (1, 2, 5, 10) if m * magnitude >= rough * (1 - 1e-9))


def _short(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
