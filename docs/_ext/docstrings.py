"""Three habits of our docstrings that Sphinx would misread."""

from typing import Any

import reference
from docutils import nodes
from docutils.parsers.rst import roles
from sphinx.application import Sphinx
from sphinx.domains.python import PyXRefRole
from sphinx.ext.napoleon.docstring import GoogleDocstring


def _whole_sentence(docstring: GoogleDocstring) -> tuple[str, list[str]]:
    """Take what stands before a colon for a part of a sentence, and not for a type."""
    return "", docstring._consume_to_end()


def _skip(app: Sphinx, kind: str, name: str, value: object, skip: bool, options: object) -> bool:
    """Leave out what scikit-learn adds to every estimator: it refers to pages of its own."""
    return skip or (name.startswith("set_") and name.endswith("_request"))


def _code(
    role: str, source: str, text: str, line: int, inliner: Any, *_: object, **__: object
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """Show what stands between single backticks as code, and link it if it is a public name."""
    home = reference.home_of_names().get(text)
    if home is None:
        return [nodes.literal(source, text)], []
    return PyXRefRole()("py:obj", source, f"{text} <{home}>", line, inliner)


def setup(app: Sphinx) -> dict[str, bool]:
    """Read attributes' docstrings as sentences, and backticks as code."""
    GoogleDocstring._consume_inline_attribute = _whole_sentence
    roles.register_local_role("code-or-name", _code)
    app.connect("autodoc-skip-member", _skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
