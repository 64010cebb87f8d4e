"""Pieces of the page from templates: escaped, with numbers written as everywhere else."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from markupsafe import Markup

from ...page import environment
from .. import format as _format
from ..findings import verdict
from ..style import method_label

if TYPE_CHECKING:
    from jinja2 import Environment, Template

_FIGURES = """
{% for model, name, figure in figures %}
{% if loop.changed(model) %}
{% if not loop.first %}</div>{% endif %}
{% if model %}<h3>{{ model }}</h3>{% endif %}
<div class="grid">
{% endif %}
<figure><figcaption>{{ name }}</figcaption>{{ figure }}</figure>
{% if loop.last %}</div>{% endif %}
{% endfor %}
"""


@lru_cache(maxsize=1)
def templates() -> Environment:
    """Return what reads the report's templates, with the words that they use."""
    found = environment(__package__)
    found.filters |= {
        "number": _format.number,
        "signed": _format.signed,
        "p": _format.p_value,
    }
    found.globals |= {
        "mean_std": _format.mean_std,
        "method_label": method_label,
        "verdict": verdict,
    }
    return found


def fill(template: str, **values: object) -> Markup:
    """Return a piece of the page from the text of a Jinja template; values are escaped.

    Example:
        >>> fill("<p>{{ name }}</p>", name="a < b")
        Markup('<p>a &lt; b</p>')
    """
    return Markup(_template(template).render(values))


def figures(drawn: Iterable[tuple[str, str, str]]) -> Markup:
    """Return figures side by side, from (model, data set, SVG): a line of them for each model.

    Example:
        >>> "<h3>GIN</h3>" in figures([("GIN", "MUTAG", "<svg/>")])
        True
    """
    # SVG is made, and its texts are escaped, in `figures._svg`.
    return fill(_FIGURES, figures=[(model, name, Markup(svg)) for model, name, svg in drawn])


@lru_cache(maxsize=64)
def _template(text: str) -> Template:
    return templates().from_string(text)
