"""Write the pages that are made from code and records, into ``docs/_generated``."""

import shutil
from pathlib import Path

import commands
import project_pages
import reference


def write(path: Path, text: str) -> None:
    """Write a page if its text has changed: Sphinx reads again only what is newer."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, encoding="utf-8")


def write_all(docs: Path) -> None:
    """Write all of them, and remove what a former version wrote.

    Args:
        docs: The folder of the site's sources.
    """
    pages = {**reference.pages(), **commands.pages(), **project_pages.pages(docs.parent)}
    folder = docs / "_generated"
    for room in {name.split("/")[0] for name in pages}:
        for path in (folder / room).glob("*"):
            if path.relative_to(folder).as_posix() not in pages:
                path.unlink()
    for name, text in pages.items():
        write(folder / name, text)


def copy_tutorials(docs: Path) -> str:
    """Copy the tutorials to a folder of their own, where they may write, and return its name."""
    folder = docs / "_generated" / "scripts"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(docs / "tutorials", folder, ignore=shutil.ignore_patterns("__pycache__"))
    return "_generated/scripts"
