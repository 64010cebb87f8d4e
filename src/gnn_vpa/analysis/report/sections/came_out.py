"""What came out, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....escape import markdown
from ...remarks import remarks
from .._html import fill
from ._section import Section, lines

if TYPE_CHECKING:
    from .._part import Part
    from .._pictures import Pictures

_HTML = """
{% if sentences %}
<ul>
{% for sentence in sentences %}
<li>{{ sentence }}</li>
{% endfor %}
</ul>
{% endif %}
{% for remark in remarks %}
<p class="remark"><strong>Note.</strong> {{ remark }}</p>
{% endfor %}
{% if part.alone %}<p class="note">Setting: {{ part.setting }}.</p>{% endif %}
"""


class CameOut(Section):
    """The findings, and how far the paper's protocol was followed."""

    name = "part"
    title = "What came out"

    def link(self, part: Part) -> str:
        """Return the setting where there are several: a link leads to each."""
        return "" if part.alone else str(part.setting)

    def heading(self, part: Part) -> str:
        """Return the title, with the setting where there are several."""
        return self.title if part.alone else f"{self.title}: {part.setting}"

    def html(self, part: Part) -> str:
        """Return the sentences; a single setting's first is at the head of the page already."""
        apart = [] if part.compared.empty else remarks(part.setting, part.folds, part.curves)
        sentences = part.findings[1:] if part.alone else part.findings
        return fill(_HTML, part=part, sentences=sentences, remarks=list(apart))

    def markdown(self, part: Part, pictures: Pictures) -> str:
        """Return the sentences as a list, without a heading: they come first."""
        return lines(*(f"- {markdown(sentence)}" for sentence in part.findings), "")
