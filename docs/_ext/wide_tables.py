"""A wide table scrolls in a box of its own, which the keyboard can reach; the page never does."""

import re
from collections import Counter

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.writers.html5 import HTML5Translator

_SPACE = re.compile(r" (±|to) (?=[\d.\N{MINUS SIGN}]+\w?$)")
_SENTENCE = 24  # characters: a cell of more has room for several words in a line
# A table that a tutorial shows: as sphinx-gallery writes it, and as a box that a keyboard reaches.
_PRINTED = '<div class="output_subarea output_html'
_REACHED = '<div tabindex="0" role="region" aria-label="Table {number} of what is printed"' + (
    _PRINTED.removeprefix("<div")
)


class _Scroll(nodes.container):
    """A box around a table."""


def _enter(translator: HTML5Translator, node: _Scroll) -> None:
    name = translator.attval(node["name"])
    translator.body.append(f'<div class="scroll" tabindex="0" role="region" aria-label="{name}">')


def _leave(translator: HTML5Translator, node: _Scroll) -> None:
    translator.body.append("</div>")


class _Corner(nodes.entry):
    """A cell of a table's head that is empty, and so heads nothing."""


def _enter_corner(translator: HTML5Translator, node: _Corner) -> None:
    node.parent.column += 1  # as for any cell
    translator.body.append('<td class="head">')


def _leave_corner(translator: HTML5Translator, node: _Corner) -> None:
    translator.body.append("</td>")


class _Wrap(SphinxPostTransform):
    default_priority = 900
    formats = ("html",)

    def run(self, **_: object) -> None:
        names: Counter[str] = Counter()
        for table in list(self.document.findall(nodes.table)):
            _set_cells(table)
            box = _Scroll()
            box["name"] = _name(table, names)
            table.replace_self(box)
            box += table
        for printed in list(self.document.findall(nodes.raw)):
            if _PRINTED in printed.astext():
                names["Printed"] += 1
                html = printed.astext().replace("<th></th>", "<td></td>")
                html = html.replace(_PRINTED, _REACHED.format(number=names["Printed"]), 1)
                printed.replace_self(nodes.raw("", html, format="html"))


def _name(table: nodes.table, names: Counter[str]) -> str:
    """Name a table after the heading above it: no two tables of a page have the same name."""
    section = table.parent
    while section is not None and not isinstance(section, nodes.section):
        section = section.parent
    heading = section.next_node(nodes.title) if section is not None else None
    name = f"Table: {heading.astext()}" if heading is not None else "Table"
    names[name] += 1
    return name if names[name] == 1 else f"{name}, {names[name]}"


def _set_cells(table: nodes.table) -> None:
    """Keep a number with its deviation in one line, and give sentences room."""
    for text in list(table.findall(nodes.Text)):
        joined = _SPACE.sub("\N{NO-BREAK SPACE}\\1\N{NO-BREAK SPACE}", text)
        text.parent.replace(text, nodes.Text(joined))
    for cell in list(table.findall(nodes.entry)):
        if len(cell.astext()) > _SENTENCE:
            cell["classes"].append("sentence")
        if isinstance(cell.parent.parent, nodes.thead) and not cell.astext().strip():
            cell.replace_self(_Corner())


def setup(app: Sphinx) -> dict[str, bool]:
    """Put every table of a page in such a box."""
    app.add_node(_Scroll, html=(_enter, _leave))
    app.add_node(_Corner, html=(_enter_corner, _leave_corner))
    app.add_post_transform(_Wrap)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
