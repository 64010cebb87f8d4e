"""A wide table scrolls in a box of its own, which the keyboard can reach; the page never does."""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.writers.html5 import HTML5Translator


class _Scroll(nodes.container):
    """A box around a table."""


def _enter(translator: HTML5Translator, node: _Scroll) -> None:
    translator.body.append('<div class="scroll" tabindex="0" role="region" aria-label="Table">')


def _leave(translator: HTML5Translator, node: _Scroll) -> None:
    translator.body.append("</div>")


class _Wrap(SphinxPostTransform):
    default_priority = 900
    formats = ("html",)

    def run(self, **_: object) -> None:
        for table in list(self.document.findall(nodes.table)):
            box = _Scroll()
            table.replace_self(box)
            box += table


def setup(app: Sphinx) -> dict[str, bool]:
    """Put every table of a page in such a box."""
    app.add_node(_Scroll, html=(_enter, _leave))
    app.add_post_transform(_Wrap)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
