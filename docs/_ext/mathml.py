"""Formulas as MathML, which browsers draw themselves: neither LaTeX nor a script from a network."""

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx


def _inline(translator: nodes.NodeVisitor, node: nodes.math) -> None:
    translator.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def _block(translator: nodes.NodeVisitor, node: nodes.math_block) -> None:
    translator.body.append(translator.starttag(node, "div", CLASS="math scroll"))
    translator.body.append(tex2mathml(node.astext(), as_block=True))
    translator.body.append("</div>")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Offer it as the renderer of formulas."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
