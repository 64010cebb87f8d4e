"""Learning curves: training loss against epochs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ....escape import markdown
from ...figures import learning_curves
from ...format import listing
from ...style import DATASETS, MODELS, in_order
from .._html import figures, fill
from ._section import Section, lines

if TYPE_CHECKING:
    import pandas as pd

    from .._part import Part
    from .._pictures import Pictures

_HTML = """
{% if figures %}
<p class="note">Training loss: mean over folds, and a band of one standard deviation on each
side.</p>
{{ figures }}
{% endif %}
{% if blank %}
<p class="note">{{ blank }}</p>
{% endif %}
"""


class Curves(Section):
    """A figure for each model and data set."""

    name = "curves"
    title = "Learning curves"

    def html(self, part: Part) -> str:
        """Return the figures."""
        if part.curves.empty:
            return ""
        drawn = list(_drawn(part))
        return fill(_HTML, figures=drawn and figures(drawn), blank=_blank(part))

    def markdown(self, part: Part, pictures: Pictures) -> str:
        """Return links to the figures."""
        if part.curves.empty:
            return ""
        setting = (part.setting.models, part.setting.features)
        return lines(
            f"{part.level} {self.title}",
            "",
            "Training loss: mean over folds, and a band of one standard deviation.",
            "",
            *(
                pictures.put(svg, f"Training loss of {model} on {name}", *setting, model, name)
                for model, name, svg in _drawn(part)
            ),
            "",
            *([markdown(blank), ""] if (blank := _blank(part)) else []),
        )


def _drawn(part: Part) -> Iterator[tuple[str, str, str]]:
    for model, name, curves in _pairs(part):
        if _is_finite(curves):
            yield model, name, learning_curves(curves)


def _blank(part: Part) -> str:
    """Say of which trainings there is nothing to draw."""
    pairs = [f"{model} on {name}" for model, name, curves in _pairs(part) if not _is_finite(curves)]
    if not pairs:
        return ""
    return f"No training loss of {listing(pairs)} was finite, so no curve is drawn: all diverged."


def _pairs(part: Part) -> Iterator[tuple[str, str, pd.DataFrame]]:
    for model in in_order(part.curves["model"], MODELS):
        of_model = part.curves[part.curves["model"] == model]
        for name in in_order(of_model["dataset"], DATASETS):
            yield model, name, of_model[of_model["dataset"] == name]


def _is_finite(curves: pd.DataFrame) -> bool:
    return bool(np.isfinite(curves["train_loss"].astype(float)).any())
