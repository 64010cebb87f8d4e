"""Tests: is vpa better than what it was run beside? The paper's question."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ....escape import markdown
from ...format import p_value, signed
from ...lead import interval
from ...significance import dataset_tests, missing_pairs
from ...style import method_label
from .._html import fill
from ._section import Section, lines

if TYPE_CHECKING:
    from .._part import Part
    from .._pictures import Pictures

_HTML = """
{% macro head(names) %}
<thead><tr><th scope="col">vpa against</th>
{%- for name in names -%}
<th scope="col"{% if name in ("data set", "vpa is …") %} class="text"{% endif %}>{{ name }}</th>
{%- endfor -%}
</tr></thead>
{% endmacro %}
{% macro pairs(row) -%}
<td>{{ pairs_of(row) }}</td>
{%- endmacro %}
{% macro effect(row) -%}
<td>{{ row.difference | signed(row.digits) }}</td>
<td>{{ interval(row.low, row.high, row.digits) }}</td>
<td>{{ row.rank_biserial | signed(2) }}</td>
{%- endmacro %}
<p class="note" id="tests-note-{{ id }}">{{ lead }}
with the 95 % interval of the corrected test. Effect: rank-biserial correlation, &minus;1
to 1.</p>
<div class="scroll" role="region" aria-label="Tests over all data sets, scrolls sideways"
tabindex="0">
<table aria-describedby="tests-note-{{ id }}">
<caption>All data sets and folds</caption>
{{ head(["data sets", "pairs", "difference", "95 % interval", "effect", "p, Wilcoxon", "p, paper",
         "p, corrected", "vpa is …"]) }}
<tbody>
{% for row in overall.itertuples() %}
<tr><th scope="row">{{ method_label(row.model, row.aggregation) }}</th>
<td>{{ row.datasets }}</td>{{ pairs(row) }}{{ effect(row) }}
<td>{{ row.p_wilcoxon | p }}</td><td>{{ row.p_paper | p }}</td><td>{{ row.p_corrected | p }}</td>
<td class="text">{{ verdict(row.low, row.high, metric.name) }} it</td></tr>
{% endfor %}
</tbody>
</table>
</div>
{% if by_dataset is not none %}
<h3>Data set by data set</h3>
<p class="note" id="holm-note-{{ id }}">Holm's correction is over the data sets of one comparison.
An interval that leaves out zero is one such statement; the corrected p are for reading them
together.</p>
<div class="scroll" role="region" aria-label="Tests by data set, scrolls sideways" tabindex="0">
<table aria-describedby="holm-note-{{ id }}">
<caption>Each data set by itself</caption>
{{ head(["data set", "pairs", "difference", "95 % interval", "effect", "p, Wilcoxon", "with Holm",
         "p, corrected", "with Holm"]) }}
{% for _, family in by_dataset.groupby(["model", "aggregation"], sort=False) %}
<tbody>
{% for row in family.itertuples() %}
<tr><th scope="row">{{ method_label(row.model, row.aggregation) }}</th>
<td class="text">{{ row.dataset }}</td>{{ pairs(row) }}{{ effect(row) }}
<td>{{ row.p_wilcoxon | p }}</td><td>{{ row.p_wilcoxon_holm | p }}</td>
<td>{{ row.p_corrected | p }}</td><td>{{ row.p_corrected_holm | p }}</td></tr>
{% endfor %}
</tbody>
{% endfor %}
</table>
</div>
{% endif %}
<p class="note">All p are one-sided; “{{ metric.better }}” is said where the interval, which is
two-sided and so the stricter, leaves out zero. Wilcoxon's signed-rank test is the paper's; pairs
without a difference are left out. The corrected one is Nadeau and Bengio's resampled t-test, for
folds that share training data. Seeds of a fold are averaged before pairing. Each comparison is one
question asked by itself; the answer at the top asks all of them at once, and so is stricter.</p>
"""


class Tests(Section):
    """Differences to vpa with intervals and p-values, over all data sets and one by one."""

    name = "tests"
    title = "Tests"

    def heading(self, part: Part) -> str:
        """Return the title with the question."""
        return f"{self.title}: is vpa {part.measure.better}?"

    def html(self, part: Part) -> str:
        """Return both tables; one data set needs no table of its own."""
        if part.tests.empty:
            return ""
        by_dataset = dataset_tests(part.folds) if len(part.datasets) > 1 else None
        return fill(
            _HTML,
            overall=part.tests,
            by_dataset=by_dataset,
            id=part.number,
            metric=part.measure,
            lead=_lead(part),
            interval=interval,
            pairs_of=_pairs,
        )

    def markdown(self, part: Part, pictures: Pictures) -> str:
        """Return the table over all data sets."""
        if part.tests.empty:
            return ""
        return lines(
            *(f"{part.level} Against vpa", ""),
            *(f"p is of the paper's one-sided Wilcoxon test.{_sign(part)}", ""),
            "| method | pairs | vpa's lead | 95 % interval | p | p, paper | p, corrected |",
            *("|---|---:|---:|---:|---:|---:|---:|", *_rows(part), ""),
        )


def _lead(part: Part) -> str:
    """Say what a difference is, and in what."""
    metric = part.measure
    what = "vpa minus the other" if metric.higher_is_better else "the other minus vpa"
    if metric.is_share:
        return f"Difference: {what}, in points of {metric.noun},"
    overall = part.tests["unit"].iloc[0].removeprefix("of ")
    return f"Difference: {what} (positive: vpa is better), in {overall} over all data sets,"


def _sign(part: Part) -> str:
    """Say what the sign of vpa's lead means where a lower number is the better one."""
    if part.measure.higher_is_better:
        return ""
    return f" vpa's lead is positive where its {part.measure.noun} is the lower."


def _rows(part: Part) -> Iterator[str]:
    for row in part.tests.itertuples():
        ps = " | ".join(p_value(p) for p in (row.p_wilcoxon, row.p_paper, row.p_corrected))
        between = interval(row.low, row.high, row.digits)
        label = markdown(method_label(row.model, row.aggregation))
        lead = signed(row.difference, row.digits)
        yield f"| {label} | {_pairs(row)} | {lead} | {between} | {ps} |"


def _pairs(row: Any) -> str:
    """How many pairs, and what is missing of them."""
    said = missing_pairs(row.pairs, row.asked, row.missing)
    return said.replace(" pairs", "", 1) or str(row.pairs)
