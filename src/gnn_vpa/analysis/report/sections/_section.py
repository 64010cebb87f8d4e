"""What a section of the report is."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from .._part import Part
    from .._pictures import Pictures


class Section:
    """A section of the report: a file with a subclass of this, and an entry in `SECTIONS`.

    A format that has no such section, or results that give nothing to show, leave an empty text.

    Attributes:
        name: Of its place in the page: a link to the first setting's is `#name-1`.
        title: In the page's contents, and above it unless `heading` says otherwise.

    Example:
        >>> from gnn_vpa.analysis.report import fill
        >>> class Length(Section):
        ...     name, title = "length", "How many trainings"
        ...     def html(self, part):
        ...         return fill("<p>{{ n }}</p>", n=len(part.folds))
        >>> Length().markdown(None, None)
        ''
    """

    name: ClassVar[str]
    title: ClassVar[str]

    def link(self, part: Part) -> str:
        """Return its name in the page's contents; nothing where it needs no link."""
        return self.title

    def heading(self, part: Part) -> str:
        """Return what stands above it on the page."""
        return self.title

    def html(self, part: Part) -> str:
        """Return what stands below its heading: `Markup` from `fill`; other text is escaped."""
        return ""

    def markdown(self, part: Part, pictures: Pictures) -> str:
        """Return it as lines of Markdown with its heading (`part.level`), names escaped."""
        return ""


def lines(*text: str) -> str:
    """Return lines of Markdown as text, each with its end."""
    return "".join(f"{line}\n" for line in text)
