"""Files of the repository that are pages of the site too: they stay where a forge expects them."""

from collections.abc import Iterable
from pathlib import Path

import links

# The path in the repository, and the name of the page.
FILES = {
    "benchmarks/RESULTS.md": "speed",
    "CONTRIBUTING.md": "contributing",
    "CHANGELOG.md": "changelog",
    "SECURITY.md": "security",
    "CODE_OF_CONDUCT.md": "conduct",
}


# What other pages lead to, as far as it is there: a title, a sentence, the pages.
FOLDERS = {
    "machines/index.md": (
        "Many machines",
        "One run on several cores, GPUs or computers. To begin with: the tutorial\n"
        "[many machines](/_generated/tutorials/07_machines.rst).",
        ("/scale", "/cluster", "/slurm", "/watch"),
    ),
    "project/index.md": (
        "Project",
        "How it is made, how to take part, and what to do when something does not work.",
        (
            *("/faq", "/glossary", "/architecture", "/support"),
            *("/_generated/project/contributing", "/_generated/project/changelog"),
            *("/_generated/project/security", "/_generated/project/conduct"),
        ),
    ),
}


def _folder(title: str, sentence: str, names: Iterable[str], docs: Path) -> str:
    there = [
        name
        for name in names
        if name.startswith("/_generated") or (docs / f"{name[1:]}.md").exists()
    ]
    tree = "```{toctree}\n:maxdepth: 1\n\n" + "\n".join(there) + "\n```\n" if there else ""
    return f"# {title}\n\n{sentence}\n\n{tree}"


def pages(root: Path) -> dict[str, str]:
    """Return the text of each page by its path, with links that lead where they led."""
    return {
        **{path: _folder(*folder, root / "docs") for path, folder in FOLDERS.items()},
        **{
            f"project/{name}.md": links.moved((root / file).read_text("utf-8"), root, file)
            for file, name in FILES.items()
        },
    }
