"""Making the page and putting it on the disk."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ...aggregations import AGGREGATIONS
from ...escape import printable
from ...files import write_whole
from .. import _format
from ..findings import verdict
from ..style import method_label
from ._content import content

if TYPE_CHECKING:
    import pandas as pd


def render_report(
    folds: pd.DataFrame,
    curves: pd.DataFrame,
    provenance: Mapping[str, object],
    signals: pd.DataFrame | None = None,
) -> str:
    """The report as the text of one HTML page that needs nothing else, no script either.

    Args:
        folds: a row for each finished training, of one setting or several.
        curves: their learning curves; may be empty.
        provenance: what the run was: versions, configuration, checksums and the like. Nested
            mappings and lists are shown as such.
        signals: the signal at the start, a row for each method, data set and layer; without them
            the page has no section on it.

    Example:
        >>> import pandas as pd
        >>> page = render_report(pd.DataFrame(), pd.DataFrame(), {"versions": {"torch": "2.13"}})
        >>> "No fold has finished" in page and "https:" not in page
        True
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(__package__, ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": _format.number,
        "signed": _format.signed,
        "p": _format.p_value,
    }
    environment.globals |= {
        "mean_std": _format.mean_std,
        "method_label": method_label,
        "verdict": verdict,
        "colours": {name: entry.colour for name, entry in AGGREGATIONS.items()},
    }
    page = environment.get_template("page.html")
    return printable(page.render(content(folds, curves, provenance, signals)))


def write_report(
    folds: pd.DataFrame,
    curves: pd.DataFrame,
    provenance: Mapping[str, object],
    path: str | os.PathLike[str],
    signals: pd.DataFrame | None = None,
) -> Path:
    """Write the report of `render_report` to a file, whole or not at all.

    Returns:
        The path that was written.

    Example:
        >>> import pandas as pd, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_report(pd.DataFrame(), pd.DataFrame(), {}, f"{folder}/report.html").name
        'report.html'
    """
    write_whole(path, render_report(folds, curves, provenance, signals))
    return Path(path)
