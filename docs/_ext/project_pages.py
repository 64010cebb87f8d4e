"""Files of the repository that are pages of the site too: they stay where a forge expects them."""

from pathlib import Path

import links

# The path in the repository, and the name of the page.
FILES = {
    "benchmarks/RESULTS.md": "speed",
    "CONTRIBUTING.md": "contributing",
    "CHANGELOG.md": "changelog",
}


def pages(root: Path) -> dict[str, str]:
    """Return the text of each page by its path, with links that lead where they led."""
    return {
        f"project/{name}.md": links.moved((root / file).read_text("utf-8"), root, file)
        for file, name in FILES.items()
    }
