"""Pages of HTML: one shell for all, which needs nothing beside itself, no script either.

A page is a template that extends `shell.html` and fills its blocks: title, style, skip, header,
main and footer. What goes in is escaped unless it is `Markup`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


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
        trim_blocks=True,
        lstrip_blocks=True,
    )
