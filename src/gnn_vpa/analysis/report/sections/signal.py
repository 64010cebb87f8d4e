"""The signal before training, layer by layer, with the score that each method came to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...figures import signal_lines
from ...format import number
from ...style import DATASETS, MODELS, in_order
from ...summary import summarise
from .._html import figures, fill
from ._section import Section

if TYPE_CHECKING:
    import pandas as pd

    from .._part import Part

_HTML = """
<p class="note">Variance of what each message-passing layer returns, before training, with initial
weights drawn as those of the trainings are, on a batch of 16 graphs. At the end of each line the
mean test {{ noun }} that its method came to; an asterisk: the table says beside it what it stands
for. What a norm makes of it is included where the model has one. <code>gnn-vpa probe</code> shows
all of it.</p>
{{ figures }}
"""


class Signal(Section):
    """A figure for each model and data set; a model of one layer has none."""

    name = "signal"
    title = "Signal"

    def heading(self, part: Part) -> str:
        """Return what the figures put side by side."""
        return f"The signal at the start, beside the {part.measure.noun}"

    def html(self, part: Part) -> str:
        """Return the figures."""
        drawn = [] if part.signals is None else list(_drawn(part, part.signals))
        return fill(_HTML, figures=figures(drawn), noun=part.measure.noun) if drawn else ""


def _drawn(part: Part, signals: pd.DataFrame) -> Iterator[tuple[str, str, str]]:
    signals = signals.drop_duplicates(["dataset", "model", "aggregation", "layer"])
    cells = summarise(part.folds).set_index(["model", "dataset", "aggregation"]).sort_index()
    for model in in_order(signals["model"], MODELS):
        of_model = signals[signals["model"] == model]
        if of_model["layer"].nunique() < 2:
            continue
        for name in in_order(of_model["dataset"], DATASETS):
            of_set, own = of_model[of_model["dataset"] == name], cells.loc[model, name]
            scores = {
                str(cell.Index): number(cell.mean, cell.digits) + part.measure.percent
                for cell in own[own["folds"] > 0].itertuples()
            }
            yield model, name, signal_lines(of_set, scores, own["note"].to_dict())
