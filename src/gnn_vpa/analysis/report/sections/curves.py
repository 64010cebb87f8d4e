"""Learning curves: training loss against epochs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...figures import learning_curves
from ...style import DATASETS, MODELS, in_order
from .._html import figures, fill
from ._section import Section, lines

if TYPE_CHECKING:
    from .._part import Part
    from .._pictures import Pictures

_HTML = """
<p class="note">Training loss: mean over folds, and a band of one standard deviation on each
side.</p>
{{ figures }}
"""


class Curves(Section):
    """A figure for each model and data set."""

    name = "curves"
    title = "Learning curves"

    def html(self, part: Part) -> str:
        """Return the figures."""
        return "" if part.curves.empty else fill(_HTML, figures=figures(_drawn(part)))

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
        )


def _drawn(part: Part) -> Iterator[tuple[str, str, str]]:
    for model in in_order(part.curves["model"], MODELS):
        of_model = part.curves[part.curves["model"] == model]
        for name in in_order(of_model["dataset"], DATASETS):
            yield model, name, learning_curves(of_model[of_model["dataset"] == name])
