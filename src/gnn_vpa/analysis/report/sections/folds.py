"""Every fold as a dot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...figures import fold_dots
from .._html import figures, fill
from ._section import Section

if TYPE_CHECKING:
    from .._part import Part

_HTML = """
<p class="note">{{ note }}</p>
{{ figures }}
"""


class Folds(Section):
    """A figure for each data set."""

    name = "folds"
    title = "Folds"

    def heading(self, part: Part) -> str:
        """Return what the figures show."""
        return "Every fold"

    def html(self, part: Part) -> str:
        """Return the figures."""
        if part.folds.empty:
            return ""
        folds = part.folds
        drawn = [("", name, fold_dots(folds[folds["dataset"] == name])) for name in part.datasets]
        note = f"Test {part.measure.noun} of each fold, averaged over its seeds."
        return fill(_HTML, figures=figures(drawn), note=note)
