"""Where the names of other libraries are documented, without asking a network.

``docs/inventories/LIBRARY.txt`` begins with the address of its documentation; each line below it
is a role, a name and the page. Only names that our pages refer to are there. Sphinx's own format is
made of them when the site is built.
"""

import zlib
from pathlib import Path


def _written(library: str, text: str) -> tuple[str, bytes]:
    base, *entries = [line for line in text.splitlines() if line and not line.startswith("#")]
    head = f"# Sphinx inventory version 2\n# Project: {library}\n# Version: \n"
    head += "# The remainder of this file is compressed using zlib.\n"
    body = ""
    for entry in entries:
        role, name, page = entry.split()
        body += f"{name} {role} 1 {page} -\n"
    return base, head.encode() + zlib.compress(body.encode())


def mapping(source: Path, out: Path) -> dict[str, tuple[str, str]]:
    """Write the inventories and return what intersphinx needs to find them."""
    out.mkdir(parents=True, exist_ok=True)
    found = {}
    for path in sorted(source.glob("*.txt")):
        base, content = _written(path.stem, path.read_text("utf-8"))
        file = out / f"{path.stem}.inv"
        if not file.exists() or file.read_bytes() != content:
            file.write_bytes(content)
        found[path.stem] = (base, str(file))
    return found
