"""The paper's table: a row a method, a column a data set, ours beside the paper's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...exports import to_markdown
from ...format import capital
from ...tables import score_table
from .._html import fill
from ._section import Section, lines

if TYPE_CHECKING:
    from .._part import Part
    from .._pictures import Pictures

_HTML = """
{% macro score(cell) %}
{% if cell is none %}
<td>{{ none | number }}</td>
{% else %}
{% set ours = cell.text %}
<td{% if cell.note %} class="noted"{% endif %}>
{%- if cell.best %}<strong>{{ ours }}</strong>{% else %}{{ ours }}{% endif %}
{% if cell.note %} ({{ cell.note }}){% endif %}
{% if cell.paper %}
{% set paper = cell.paper %}
{% set outside = paper.within is false %}
<small><span class="hidden">paper</span> ({{ mean_std(paper.mean, paper.std) }})</small>
<small{% if outside %} class="out"{% endif %}>{{ paper.difference | signed -}}
{%- if paper.within is not none %}, z {{ paper.z | signed(2) }}{% endif -%}
{%- if outside %} ≠{% endif %}</small>
{% endif %}
{% if cell.diverged %}<small>{{ cell.diverged }} diverged</small>{% endif %}
</td>
{% endif %}
{% endmacro %}
{% macro p_value(row) %}
<td{% if row.p_note %} class="noted"{% endif %}>{{ row.p | p }}
{%- if row.p_note %} ({{ row.p_note }}){% endif %}
{%- if row.p_paper is not none -%}
<small><span class="hidden">paper</span> ({{ row.p_paper | p }})</small>
{%- endif %}</td>
{% endmacro %}
<p class="note" id="scores-note-{{ id }}">{{ note }}</p>
<div class="scroll" role="region" aria-label="{{ table.measure.title }} table, scrolls sideways"
tabindex="0">
<table aria-describedby="scores-note-{{ id }}">
<caption>{{ caption }}</caption>
<thead><tr><th scope="col">method</th>
{% for name in table.datasets %}<th scope="col">{{ name }}</th>{% endfor %}
{% if table.has_average %}<th scope="col">Avg</th>{% endif %}
<th scope="col">p</th></tr></thead>
{% for group in table.groups %}
<tbody>
{% for row in group %}
<tr{% if row.aggregation == "vpa" %} class="vpa"{% endif %}><th scope="row">{{ row.label }}</th>
{% for cell in row.cells.values() %}{{ score(cell) }}{% endfor %}
{% if table.has_average %}{{ score(row.average) }}{% endif %}
{{ p_value(row) }}</tr>
{% endfor %}
</tbody>
{% endfor %}
</table>
</div>
"""


class Scores(Section):
    """Means and standard deviations over folds."""

    name = "scores"
    title = "Scores"

    def link(self, part: Part) -> str:
        """Return the metric."""
        return part.measure.title

    def heading(self, part: Part) -> str:
        """Return the metric, and whether the paper's numbers are there."""
        title = part.measure.title
        return title if part.compared.empty else f"{title}, ours beside the paper's"

    def html(self, part: Part) -> str:
        """Return the table, or that there is none yet."""
        if part.folds.empty:
            return fill("<p>No fold has finished yet.</p>")
        caption = capital(part.measure.label)
        table = score_table(part.folds)
        return fill(_HTML, table=table, caption=caption, id=part.number, note=_note(part))

    def markdown(self, part: Part, pictures: Pictures) -> str:
        """Return the table."""
        if part.folds.empty:
            return ""
        said = f"{capital(part.measure.label)}, mean ± standard deviation over folds{_drawn(part)}"
        if part.compared.empty:
            text = [f"{said}. {_direction(part)}"]
        else:
            text = [
                f"{said}; in brackets the paper's,",
                "and our difference to it. ≠ marks what chance does not explain (|z| > 1.96).",
            ]
        table = to_markdown(score_table(part.folds))
        return lines(f"{part.level} {part.measure.title}", "", *text, "", table)


def _direction(part: Part) -> str:
    return "Higher is better." if part.measure.higher_is_better else "Lower is better."


def _drawn(part: Part) -> str:
    """What a standard deviation is over, where the folds were drawn several times."""
    return " of all repeats (of the repeats' means: in brackets)" if part.is_repeated else ""


def _note(part: Part) -> str:
    paper = (
        ""
        if part.compared.empty
        else "Below, in brackets, the paper's number, then our difference to it, also in standard "
        "errors (z); “≠” marks |z| above 1.96. "
    )
    direction = "" if part.measure.higher_is_better else f"{_direction(part)} "
    return (
        f"Mean ± standard deviation over folds{_drawn(part)}; the best of a model in bold. "
        f"{direction}{paper}p: Wilcoxon's test that vpa is better, over all data sets and folds."
    )
