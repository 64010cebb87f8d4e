"""Two habits of our docstrings that Sphinx would misread."""

from sphinx.application import Sphinx
from sphinx.ext.napoleon.docstring import GoogleDocstring


def _whole_sentence(docstring: GoogleDocstring) -> tuple[str, list[str]]:
    """Take what stands before a colon for a part of a sentence, and not for a type."""
    return "", docstring._consume_to_end()


def _skip(app: Sphinx, kind: str, name: str, value: object, skip: bool, options: object) -> bool:
    """Leave out what scikit-learn adds to every estimator: it refers to pages of its own."""
    return skip or (name.startswith("set_") and name.endswith("_request"))


def setup(app: Sphinx) -> dict[str, bool]:
    """Read attributes' docstrings as sentences."""
    GoogleDocstring._consume_inline_attribute = _whole_sentence
    app.connect("autodoc-skip-member", _skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
