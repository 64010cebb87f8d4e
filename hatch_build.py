"""The description of the package: the README, with links that work outside the repository."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LOCAL = re.compile(r"(!?)(\[[^\]]*\])\((?!https?:|#|mailto:)([^)\s]+)\)")


def absolute_links(text: str, source: str, version: str) -> str:
    """Point the relative links and pictures of a page to a version's files in the repository."""

    def replace(match: re.Match[str]) -> str:
        picture, words, path = match.groups()
        return f"{picture}{words}({source}/{'raw' if picture else 'blob'}/v{version}/{path})"

    return _LOCAL.sub(replace, text)


class CustomMetadataHook(MetadataHookInterface):
    """Gives the metadata their ``readme``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the description."""
        text = (Path(self.root) / "README.md").read_text("utf-8")
        text = absolute_links(text, metadata["urls"]["Source"], metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
