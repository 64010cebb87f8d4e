"""Pictures that a tutorial writes into its folder, shown where they were written."""

import re
import shutil
from pathlib import Path
from typing import Any

from sphinx_gallery.scrapers import figure_rst

ALT = re.compile(r"# Picture: (.*)")


def scrape(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Take the new pictures; a comment ``# Picture: ...`` in the code says what is to be seen."""
    source, names = block[1], []
    found = ALT.search(source)
    for path in sorted(Path.cwd().glob("*.png")):
        assert found is not None, f"{path.name} needs a comment '# Picture: what is to be seen'"
        name = next(block_vars["image_path_iterator"])
        shutil.move(path, name)
        names.append(name)
    if not names:
        return ""
    return str(figure_rst(names, gallery_conf["src_dir"], found[1] if found else ""))
