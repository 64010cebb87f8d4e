"""Pages of HTML: one shell for all, which needs nothing beside itself, no script either.

A page is a template that extends `shell.html` and fills its blocks: title, style, skip, header,
main and footer. What goes in is escaped unless it is `Markup`.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure

#: What is drawn in these colours is shown in those of the page, light or dark.
_COLOURS = {
    **dict.fromkeys(("#222222", "#555555", "#999999", "#000000"), "currentColor"),
    "#e6e6e6": "var(--line)",
}


def environment(package: str) -> Environment:
    """Return what reads the templates that lie in a package, and those that all pages share.

    A name that a template asks for and nobody gave is an error.

    Example:
        >>> page = environment("gnn_vpa").from_string(
        ...     '{% extends "shell.html" %}{% block main %}{{ text }}{% endblock %}'
        ... )
        >>> "&lt;script&gt;" in page.render(text="<script>")
        True
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    shared = PackageLoader("gnn_vpa", "assets")
    return Environment(
        loader=ChoiceLoader([PackageLoader(package, ""), shared]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_held,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _held(value: object) -> object:
    """Keep a percent sign in the line of its number."""
    if type(value) is not str:
        return value
    return re.sub(r"(?<=\d) %(?!\w)", "\N{NO-BREAK SPACE}%", value)


def inline_svg(figure: Figure) -> str:
    """Return a figure of matplotlib as SVG that takes the colours of the page around it.

    Example:
        >>> from matplotlib.figure import Figure
        >>> inline_svg(Figure())[:4]
        '<svg'
    """
    from matplotlib import rc_context

    figure.patch.set_alpha(0)
    for axes in figure.axes:
        axes.patch.set_alpha(0)
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "gnn-vpa"}):
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    for drawn, shown in _COLOURS.items():
        text = text.replace(f": {drawn}", f": {shown}")
    # Matplotlib does not write that a fill is black: what says nothing takes the page's colour too.
    head = r'<svg fill="currentColor" \1'
    return re.sub(r'<svg ([^>]*?)width="[^"]*" height="[^"]*"', head, text, count=1)
