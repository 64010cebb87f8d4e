"""The notes of a release: what the changelog says of it. ``python -m release.notes 0.2.0``."""

import re
import sys
from pathlib import Path


def notes(changelog: str, version: str) -> str:
    """Return the section of a version, without its heading."""
    pattern = rf"^## {re.escape(version)},[^\n]*\n(.*?)(?=^## |\Z)"
    section = re.search(pattern, changelog, flags=re.MULTILINE | re.DOTALL)
    if section is None or not section[1].strip():
        sys.exit(f"CHANGELOG.md says nothing of {version}")
    return section[1].strip()


if __name__ == "__main__":
    text = (Path(__file__).resolve().parents[1] / "CHANGELOG.md").read_text("utf-8")
    print(notes(text, sys.argv[1]))
