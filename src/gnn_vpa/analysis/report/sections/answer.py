"""The answer: which aggregations may be the best, in words, as a picture, and as tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ....escape import markdown
from ...answer import Choice, answer_dots, sentences, short
from ...format import MISSING, number
from .._html import figures, fill
from ._section import Section, lines

if TYPE_CHECKING:
    from .._part import Part
    from .._pictures import Pictures

_HTML = """
{% for main in mains %}
{% if mains | length > 1 %}<h3>{{ main.model }}</h3>{% endif %}
<ul>
{% for sentence in main.sentences %}<li>{{ sentence }}</li>
{% endfor %}
</ul>
{{ main.figures }}
{% for table in main.tables %}
<div class="scroll" role="region" aria-label="{{ table.caption }}, scrolls sideways" tabindex="0">
<table>
<caption>{{ table.caption }}</caption>
<thead><tr>{% for name in table.header %}
<th scope="col"{% if name in table.words %} class="text"{% endif %}>{{ name }}</th>
{%- endfor %}</tr></thead>
<tbody>
{% for row in table.rows %}
<tr><th scope="row">{{ row[0] }}</th>
{%- for cell in row[1:] -%}
<td{% if table.header[loop.index] in table.words %} class="text"{% endif %}>{{ cell }}</td>
{%- endfor %}</tr>
{% endfor %}
</tbody>
</table>
</div>
{% endfor %}
{% endfor %}
{% if is_compared %}
<p class="note">A dot is a mean, the bar about it how far chance may move its difference to the best
mean, which is the upright line. A bar that does not reach the line belongs to an aggregation that
is shown not to be the best; its dot is hollow. “Leads”: in which share of resampled folds its mean
is the best. The test is Nadeau and Bengio's corrected paired one, at a level divided by the number
of rivals, so that the true best is among those that may be it with 95 % confidence on each data
set, whoever leads by luck.</p>
{% endif %}
{% if alone %}<p class="note">Setting: {{ setting }}.</p>{% endif %}
"""
_STANDING = ("aggregation", "score", "costs", "at least", "at most", "leads", "verdict")
_BY_SET = ("data set", "may be the best", "avoid (what it costs)", "folds")
_WORDS = ("verdict", "may be the best", "avoid (what it costs)")


QUESTION = "Which aggregation is right?"


class TheAnswer(Section):
    """Of each model: over all data sets, and on each of them."""

    name = "answer"
    title = "The answer"

    def link(self, part: Part) -> str:
        """Return the title, or the setting where there are several: a link leads to each."""
        return self.title if part.alone else str(part.setting)

    def heading(self, part: Part) -> str:
        """Return the question, with the setting where there are several."""
        return QUESTION if part.alone else f"{QUESTION} ({part.setting})"

    def html(self, part: Part) -> str:
        """Return sentences, figures and tables."""
        # The head of the page has the most important sentence already.
        said = 1 if part.alone and len(list(part.answer.main)) == 1 else 0
        mains = [
            {
                "model": main.model,
                "sentences": [_unbroken(text) for text in sentences(main)[said:]],
                "figures": figures(
                    ("", choice.place, svg)
                    for choice in (main, *part.answer.parts(main))
                    if (svg := answer_dots(choice))
                ),
                "tables": [
                    {"caption": caption, "header": header, "rows": rows, "words": _WORDS}
                    for caption, header, rows in _tables(part, main)
                ],
            }
            for main in part.answer.main
        ]
        if not mains:
            return fill("<p>{{ text }}</p>", text=part.answer.text)
        is_compared = any(choice.is_compared for choice in part.answer.choices)
        return fill(
            _HTML, mains=mains, is_compared=is_compared, alone=part.alone, setting=part.setting
        )

    def markdown(self, part: Part, pictures: Pictures) -> str:
        """Return sentences, a link to the figure of each model, and tables."""
        found = [f"{part.level} {self.title}", ""]
        for main in part.answer.main:
            found += [f"- {markdown(sentence)}" for sentence in sentences(main)]
            if svg := answer_dots(main):
                setting = (part.setting.models, part.setting.features)
                described = f"Aggregations of {main.where}"
                found += ["", pictures.put(svg, described, *setting, "answer", main.model)]
            for _, header, rows in _tables(part, main):
                found += ["", _line(header), _line(["---"] * len(header))]
                found += [_line(map(markdown, row)) for row in rows]
            found.append("")
        return lines(*found) if part.answer.choices else ""


def _unbroken(sentence: str) -> str:
    """A percent sign stays with its number."""
    return sentence.replace(" %", "\N{NO-BREAK SPACE}%")


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _tables(part: Part, main: Choice) -> Iterator[tuple[str, tuple[str, ...], list[list[str]]]]:
    """Yield caption, header and rows: of every aggregation, and of every data set."""
    if len(main.candidates) > 1:
        caption = f"{main.where}: {'average of ' if len(main.datasets) > 1 else ''}"
        caption += f"{main.measure.label}, costs in {main.unit.removeprefix('of ')}"
        yield caption, _STANDING, [_standing(main, place) for place in range(len(main.candidates))]
    if apart := part.answer.parts(main):
        rows = [[choice.place, *short(choice), str(choice.folds)] for choice in apart]
        yield f"{main.model}, data set by data set (95 % confidence on each)", _BY_SET, rows


def _standing(choice: Choice, place: int) -> list[str]:
    candidate = choice.candidates[place]
    score, cost, least, most = (
        number(value, choice.digits)
        for value in (candidate.score, candidate.cost, candidate.low, candidate.high)
    )
    verdict = "may be the best" if len(choice.may_be_best) > 1 else "the best"
    verdict = "avoid" if candidate.beaten else verdict
    if not choice.is_compared:
        verdict = "cannot tell"
    leads = MISSING if candidate.share != candidate.share else f"{100 * candidate.share:.0f} %"
    cost = cost if place else MISSING
    least = least if candidate.beaten else MISSING
    most = most if math.isfinite(candidate.high) else MISSING
    return [candidate.name, score, cost, least, most, leads, verdict]
