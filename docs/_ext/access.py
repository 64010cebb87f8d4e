"""What the theme leaves without a name, for people who hear pages: the arrows that unfold pages."""

from collections.abc import Callable
from typing import Any

from sphinx.application import Sphinx

ARROW = '<summary><span class="toctree-toggle"'
NAMED = '<summary aria-label="Pages below"><span class="toctree-toggle"'


def _name_arrows(
    app: Sphinx, page: str, template: str, context: dict[str, Any], *_: object
) -> None:
    tree: Callable[..., Any] | None = context.get("generate_toctree_html")
    if tree is None:
        return

    def named(*words: Any, **settings: Any) -> Any:
        made = tree(*words, **settings)
        return made if made is None else str(made).replace(ARROW, NAMED)

    context["generate_toctree_html"] = named


def setup(app: Sphinx) -> dict[str, bool]:
    """Name them, after the theme has made what makes them."""
    app.connect("html-page-context", _name_arrows, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
