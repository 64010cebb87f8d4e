"""What else came out, in sentences: vpa against each other aggregation, and the paper's numbers."""

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
{% if not part.tests.empty %}<p class="note">{{ note }}</p>{% endif %}
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
"""


_NOTE = (
    "vpa against each other aggregation, one comparison at a time. The answer above compares all "
    "of them at once, and so is stricter."
)


class CameOut(Section):
    """The findings, and how far the paper's protocol was followed."""

    name = "part"
    title = "What else came out"

    def link(self, part: Part) -> str:
        """Return nothing: it follows the answer, to which a link leads."""
        return ""

    def html(self, part: Part) -> str:
        """Return the sentences, and how far the paper's protocol was followed."""
        apart = [] if part.compared.empty else remarks(part.setting, part.folds, part.curves)
        return fill(_HTML, part=part, sentences=part.findings, remarks=list(apart), note=_NOTE)

    def markdown(self, part: Part, pictures: Pictures) -> str:
        """Return the sentences as a list."""
        return lines(
            f"{part.level} {self.title}",
            "",
            *(() if part.tests.empty else (_NOTE, "")),
            *(f"- {markdown(sentence)}" for sentence in part.findings),
            "",
        )
