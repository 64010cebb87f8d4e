"""Powers of N: the score, and the signal at the start, against the exponent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ....aggregations import AGGREGATIONS, aggregation
from ....errors import UsageError
from ....escape import markdown
from ...figures import power_lines
from ...format import capital, mean_std, noted
from ...style import DATASETS, MODELS, in_order, method_label
from ...summary import CELL, summarise
from .._html import figures, fill
from ._section import Section, lines

if TYPE_CHECKING:
    import pandas as pd

    from .._part import Part
    from .._pictures import Pictures

_LEAST = 3  # two points are a line whatever they are

_HTML = """
<p class="note">Above, the mean test {{ noun }} over folds of power(p), which scales a sum over N
neighbours by N<sup>&minus;p</sup>, and a band of one standard deviation on each side. Below, the
variance of what the last message-passing layer returns before training, with what a norm makes of
it where the model has one. Dashed lines: the exponents that have a name; a diamond is what was run
by that name. A cross: no number; an asterisk: the table says beside it what it stands
for.</p>
{{ figures }}
"""


class Powers(Section):
    """A figure for each model and data set with at least three powers."""

    name = "powers"
    title = "Powers"

    def heading(self, part: Part) -> str:
        """Return the question that the figures are about."""
        return "Powers: which exponent is right?"

    def html(self, part: Part) -> str:
        """Return the figures."""
        metric = part.measure
        drawn = [
            (model, name, power_lines(rows, metric.name)) for model, name, rows in _powers(part)
        ]
        return fill(_HTML, figures=figures(drawn), noun=metric.noun) if drawn else ""

    def markdown(self, part: Part, pictures: Pictures) -> str:
        """Return the same numbers as a table."""
        rows = [row for *_, frame in _powers(part) for row in frame.itertuples()]
        if not rows:
            return ""
        return lines(
            f"{part.level} {self.title}",
            "",
            f"{capital(part.measure.label)}, and variance of the last layer before training, by "
            "the exponent p",
            f"of N^-p. With a name: {_named()}.",
            "",
            f"| data set | method | p | {part.measure.noun} | variance |",
            "|---|---|---:|---:|---:|",
            *(
                f"| {markdown(row.dataset)} | {markdown(method_label(row.model, row.aggregation))} "
                f"| {row.p:g} | {noted(_score(row), row.note)} "
                f"| {_variance(row.variance)} |"
                for row in rows
            ),
            "",
        )


def _score(row: Any) -> str:
    return mean_std(row.mean, row.std, row.digits, row.repeats_std)


def _named() -> str:
    exponents = {name: entry.exponent for name, entry in AGGREGATIONS.items()}
    return ", ".join(f"{name} (p = {p:g})" for name, p in exponents.items() if p is not None)


def _powers(part: Part) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Yield model, data set and what `power_lines` takes, where there are enough powers."""
    exponents = {name: _exponent(name) for name in set(part.folds["aggregation"])}
    if sum(p is not None and name not in AGGREGATIONS for name, p in exponents.items()) < _LEAST:
        return
    cells = summarise(part.folds)
    cells = cells.assign(p=cells["aggregation"].map(exponents).astype(float)).dropna(subset="p")
    cells = cells.merge(_last_variance(part), on=CELL, how="left")
    power = ~cells["aggregation"].isin(AGGREGATIONS)
    cells = cells.assign(power=power).sort_values(["p", "power"], kind="stable")
    for model in in_order(cells["model"], MODELS):
        of_model = cells[cells["model"] == model]
        for name in in_order(of_model["dataset"], DATASETS):
            rows = of_model[of_model["dataset"] == name]
            if rows["power"].sum() >= _LEAST:
                yield model, name, rows


def _exponent(name: str) -> float | None:
    try:
        return aggregation(name).exponent
    except UsageError:  # of a baseline, or of results that another program wrote
        return None


def _last_variance(part: Part) -> pd.DataFrame:
    """Return the variance behind the last layer of each cell, layers being in their order."""
    import pandas as pd

    if part.signals is None or part.signals.empty:
        return pd.DataFrame(columns=[*CELL, "variance"]).astype({"variance": float})
    return part.signals.groupby(CELL, as_index=False)["variance"].last()


def _variance(value: float) -> str:
    return f"{value:.3g}" if value == value else mean_std(value, value)
