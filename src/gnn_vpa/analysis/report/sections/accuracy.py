"""The paper's table: a row a method, a column a data set, ours beside the paper's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...exports import to_markdown
from ...tables import accuracy_table
from .._html import fill
from ._section import Section, lines

if TYPE_CHECKING:
    from .._part import Part
    from .._pictures import Pictures

_HTML = """
{% macro accuracy(cell) %}
{% if cell is none %}
<td>{{ none | number }}</td>
{% else %}
{% set ours = mean_std(cell.mean, cell.std) %}
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
{% set several = table.datasets | length > 1 %}
<p class="note" id="accuracy-note-{{ id }}">{{ note }}</p>
<div class="scroll" role="region" aria-label="Accuracy table, scrolls sideways" tabindex="0">
<table aria-describedby="accuracy-note-{{ id }}">
<caption>Test accuracy in percent</caption>
<thead><tr><th scope="col">method</th>
{% for name in table.datasets %}<th scope="col">{{ name }}</th>{% endfor %}
{% if several %}<th scope="col">Avg</th>{% endif %}
<th scope="col">p</th></tr></thead>
{% for group in table.groups %}
<tbody>
{% for row in group %}
<tr{% if row.aggregation == "vpa" %} class="vpa"{% endif %}><th scope="row">{{ row.label }}</th>
{% for cell in row.cells.values() %}{{ accuracy(cell) }}{% endfor %}
{% if several %}{{ accuracy(row.average) }}{% endif %}
{{ p_value(row) }}</tr>
{% endfor %}
</tbody>
{% endfor %}
</table>
</div>
"""


class Accuracy(Section):
    """Means and standard deviations over folds."""

    name = "accuracy"
    title = "Accuracy"

    def heading(self, part: Part) -> str:
        """Return the title, which says whether the paper's numbers are there."""
        return self.title if part.compared.empty else f"{self.title}, ours beside the paper's"

    def html(self, part: Part) -> str:
        """Return the table, or that there is none yet."""
        if part.folds.empty:
            return fill("<p>No fold has finished yet.</p>")
        return fill(_HTML, table=accuracy_table(part.folds), id=part.number, note=_note(part))

    def markdown(self, part: Part, pictures: Pictures) -> str:
        """Return the table."""
        if part.folds.empty:
            return ""
        return lines(
            f"{part.level} {self.title}",
            "",
            "Test accuracy in percent, mean ± standard deviation over folds; in brackets the "
            "paper's,",
            "and our difference to it. ≠ marks what chance does not explain (|z| > 1.96).",
            "",
            to_markdown(accuracy_table(part.folds)),
        )


def _note(part: Part) -> str:
    paper = (
        ""
        if part.compared.empty
        else "Below, in brackets, the paper's number, then our difference to it, also in standard "
        "errors (z); “≠” marks |z| above 1.96. "
    )
    return (
        f"Mean ± standard deviation over folds; the best of a model in bold. {paper}p: Wilcoxon's "
        "test that vpa is better, over all data sets and folds."
    )
