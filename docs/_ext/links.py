"""Links in Markdown are relative to a file, as a forge needs them; here they find their page."""

import posixpath
import re
import tomllib
from pathlib import Path

from sphinx.application import Sphinx

LINK = re.compile(r"(\]\()(?!https?:|mailto:|#|/)([^)#\s]+)")


def _page_of(target: str) -> str | None:
    """Return the page of the site that shows a file of the repository, from the root of docs."""
    import project_pages

    if target in project_pages.FILES:
        return f"/_generated/project/{project_pages.FILES[target]}.md"
    if target == "README.md":
        return "/index.md"
    if re.fullmatch(r"docs/tutorials/\w+\.py", target):
        return f"/_generated/tutorials/{Path(target).stem}.rst"
    if target.startswith("docs/"):
        return target.removeprefix("docs")
    return None


def moved(text: str, root: Path, file: str) -> str:
    """Return a file's text with its relative links as links from the root of docs.

    Args:
        text: Markdown.
        root: The repository.
        file: The path of the file in it.
    """

    def found(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(file), match[2]))
        if not (root / target).exists():
            return match[0]
        page = _page_of(target)
        if page is not None:
            return match[1] + page
        if (root / target).is_dir():
            project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
            return f"{match[1]}{project['urls']['Source']}/tree/main/{target}"
        return match[1] + posixpath.join("/..", target)

    return LINK.sub(found, text)


def _on_read(app: Sphinx, name: str, source: list[str]) -> None:
    path = Path(app.env.doc2path(name))
    if path.suffix == ".md" and "_generated" not in path.parts:
        root = Path(app.srcdir).parent
        source[0] = moved(source[0], root, path.relative_to(root).as_posix())


def setup(app: Sphinx) -> dict[str, bool]:
    """Rewrite pages as they are read."""
    app.connect("source-read", _on_read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
