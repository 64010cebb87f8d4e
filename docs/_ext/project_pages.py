"""Files of the repository that are pages of the site too: they stay where a forge expects them."""

from pathlib import Path

import links

# The path in the repository, and the name of the page.
FILES = {
    "benchmarks/RESULTS.md": "speed",
    "CONTRIBUTING.md": "contributing",
    "CHANGELOG.md": "changelog",
}


# Pages about many machines, as far as they are there.
MACHINES = ("scale", "cluster", "slurm", "watch")


def pages(root: Path) -> dict[str, str]:
    """Return the text of each page by its path, with links that lead where they led."""
    machines = [f"/{name}" for name in MACHINES if (root / "docs" / f"{name}.md").exists()]
    page = "# Many machines\n\nOne run on several cores, GPUs or computers. To begin with: the tutorial\n"
    page += "[many machines](/_generated/tutorials/07_machines.rst).\n\n"
    if machines:
        page += "```{toctree}\n:maxdepth: 1\n\n" + "\n".join(machines) + "\n```\n"
    return {
        "machines/index.md": page,
        **{
            f"project/{name}.md": links.moved((root / file).read_text("utf-8"), root, file)
            for file, name in FILES.items()
        },
    }
