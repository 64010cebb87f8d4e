"""The figures of a Markdown file: in the folder `img` beside it."""

import re
from pathlib import Path

from ...escape import markdown
from ...files import write_whole

_INK = "#6e7781"  # readable on a light and on a dark page: a picture does not know which it is on


class Pictures:
    """Writes figures for a Markdown file.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Pictures(Path(folder, "report.md")).put("<svg/>", "A figure", "GIN", "MUTAG")
        '![A figure](img/report-gin-mutag.svg)'
    """

    def __init__(self, page: Path) -> None:
        self._page = page
        self._names: set[str] = set()

    def put(self, svg: str, description: str, *words: str) -> str:
        """Write a figure, named after the page and these words; return the line that shows it."""
        name = self._unused("-".join((self._page.stem, *words)))
        write_whole(self._page.parent / "img" / name, svg.replace("currentColor", _INK))
        return f"![{markdown(description)}](img/{name})"

    def _unused(self, asked: str) -> str:
        """A file's name that no other figure has: two data sets may differ in signs alone."""
        stem = re.sub(r"[^a-z0-9]+", "-", asked.casefold())
        name, number = f"{stem}.svg", 1
        while name in self._names:
            number += 1
            name = f"{stem}-{number}.svg"
        self._names.add(name)
        return name
