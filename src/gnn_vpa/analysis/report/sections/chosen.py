"""What was chosen in each fold, where a run chooses its settings by the validation graphs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ....aggregations import ordered
from ....escape import markdown
from ...format import count
from ...style import DATASETS, MODELS, in_order, method_label
from ...summary import repeats
from .._html import fill
from ._section import Section, lines

if TYPE_CHECKING:
    import pandas as pd

    from .._part import Part
    from .._pictures import Pictures

HEADER = ("data set", "method", "setting", "chosen in", "folds")
_NOTE = (
    "For each fold the setting of the best validation score was chosen, and trained anew; the "
    "test graphs had no say in it."
)
_HTML = """
<p class="note">{{ note }}</p>
<div class="scroll" role="region" aria-label="What was chosen, scrolls sideways" tabindex="0">
<table>
<caption>Settings by fold</caption>
<thead><tr>
{%- for name in header %}<th scope="col" class="text">{{ name }}</th>{% endfor -%}
</tr></thead>
<tbody>
{% for row in rows %}
<tr><th scope="row">{{ row[0] }}</th>
{%- for cell in row[1:] %}<td class="text">{{ cell }}</td>{% endfor %}</tr>
{% endfor %}
</tbody>
</table>
</div>
"""


class Chosen(Section):
    """A line for each setting that was chosen in some fold."""

    name = "chosen"
    title = "What was chosen"

    def heading(self, part: Part) -> str:
        """Return the title, which says where."""
        return f"{self.title} in each fold"

    def html(self, part: Part) -> str:
        """Return the table."""
        rows = list(chosen_rows(part.folds))
        return fill(_HTML, note=_NOTE, header=HEADER, rows=rows) if rows else ""

    def markdown(self, part: Part, pictures: Pictures) -> str:
        """Return the table."""
        rows = [f"| {' | '.join(map(markdown, row))} |" for row in chosen_rows(part.folds)]
        if not rows:
            return ""
        head = (f"| {' | '.join(HEADER)} |", "|---|---|---|---|---|")
        return lines(f"{part.level} {self.title}", "", _NOTE, "", *head, *rows, "")


def chosen_rows(folds: pd.DataFrame) -> Iterator[list[str]]:
    """Yield data set, method, setting, in how many folds it was chosen, and in which."""
    if "chosen" not in folds.columns:
        return
    made = folds.assign(repeat=repeats(folds)).dropna(subset="chosen")
    for dataset in in_order(made["dataset"], DATASETS):
        of_set = made[made["dataset"] == dataset]
        for model in in_order(of_set["model"], MODELS):
            of_model = of_set[of_set["model"] == model]
            for name in ordered(of_model["aggregation"]):
                own = of_model[of_model["aggregation"] == name]
                often = own["chosen"].value_counts()
                for chosen in sorted(often.index, key=lambda text: (-often[text], text)):
                    times = f"{often[chosen]} of {count(len(own), 'fold')}"
                    where = _where(own[own["chosen"] == chosen])
                    yield [dataset, method_label(model, name), _setting(chosen), times, where]


def _setting(chosen: str) -> str:
    values = json.loads(chosen)
    return ", ".join(f"{name}={value}" for name, value in values.items()) or "as given"


def _where(rows: pd.DataFrame) -> str:
    """Name the folds, by repeat where there are several."""
    by_repeat = rows.groupby("repeat")["fold"].apply(lambda folds: sorted(set(folds)))
    texts = {repeat: ", ".join(map(str, folds)) for repeat, folds in by_repeat.items()}
    if set(texts) == {0}:
        return texts[0]
    return "; ".join(f"repeat {repeat}: {text}" for repeat, text in texts.items())
