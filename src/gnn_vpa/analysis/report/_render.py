"""Making the page and putting it on the disk."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ...aggregations import AGGREGATIONS
from ...escape import printable
from ...files import refuse_folder, write_whole
from ..answer import summary, warnings
from ..format import listing
from ..once import remembering
from ..settings import settings_of
from ..style import DATASETS, in_order
from ._html import templates
from ._part import Part, parts
from .sections import SECTIONS

if TYPE_CHECKING:
    import pandas as pd


def render_report(
    folds: pd.DataFrame,
    curves: pd.DataFrame,
    provenance: Mapping[str, object],
    signals: pd.DataFrame | None = None,
    ceiling: Mapping[tuple[str, str], float] | None = None,
) -> str:
    """The report as the text of one HTML page that needs nothing else, no script either.

    Args:
        folds: a row for each finished training, of one setting or several.
        curves: their learning curves; may be empty.
        provenance: what the run was: versions, configuration, checksums and the like. Nested
            mappings and lists are shown as such.
        signals: the signal at the start, a row for each method, data set and layer; without them
            the page has no section on it.
        ceiling: the best score that any network can reach, by data set and node features.

    Example:
        >>> import pandas as pd
        >>> page = render_report(pd.DataFrame(), pd.DataFrame(), {"versions": {"torch": "2.13"}})
        >>> "No fold has finished" in page and "https:" not in page
        True
    """
    found = parts(folds, curves, signals, ceiling)
    page = templates().get_template("report.html")
    with remembering():
        text = page.render(
            parts=found,
            sections=[shown for part in found for shown in _shown(part)],
            trainings=len(folds),
            settings=len(settings_of(folds)),
            lede=_lede(found),
            scores=_scores(found) + _rounded(provenance),
            warnings=warnings(folds),
            datasets=in_order(folds["dataset"], DATASETS) if len(folds) else [],
            has_paper=any(not part.compared.empty for part in found),
            provenance=provenance,
            colours={name: entry.colour for name, entry in AGGREGATIONS.items()},
        )
    return printable(text)


def _lede(found: list[Part]) -> str:
    """What the page says before all else: the answer.

    Of several settings it is the first one's, unless each is about data sets or models of its own.
    """
    mains = [choice for part in found for choice in part.answer.main]
    if len({choice.where for choice in mains}) < len(mains):
        mains = list(found[0].answer.main)
    return summary(mains) if mains else found[0].findings[0]


def _scores(found: list[Part]) -> str:
    """Say what the numbers of the page are."""
    measures = list(dict.fromkeys(part.measure for part in found))
    if len(measures) == 1:
        (only,) = measures
        percent = ", in percent," if only.is_share else ""
        return (
            f"Numbers are of the test {only.noun}{percent} at the epoch of {only.extreme} "
            f"validation {only.noun}."
        )
    titles = listing([measure.noun for measure in measures])
    return (
        f"Numbers are of the test graphs, at the epoch that is best by the same metric on the "
        f"validation graphs. Metrics ({titles}) are kept apart; shares are in percent."
    )


def _rounded(provenance: Mapping[str, object]) -> str:
    """Say what all trainings kept nodes' rows in; where they differ, the settings say it."""
    configuration = provenance.get("configuration")
    precisions = configuration.get("precision") if isinstance(configuration, Mapping) else None
    match precisions:
        case [str(only)] if only != "float32":
            return f" Nodes' rows were kept in {only}."
    return ""


def _shown(part: Part) -> Iterator[dict[str, str]]:
    """Yield what the page has of each section that has something to show of these results."""
    for section in SECTIONS:
        if html := section.html(part):
            yield {
                "name": f"{section.name}-{part.number}",
                "link": section.link(part),
                "heading": section.heading(part),
                "html": html,
            }


def write_report(
    folds: pd.DataFrame,
    curves: pd.DataFrame,
    provenance: Mapping[str, object],
    path: str | os.PathLike[str],
    signals: pd.DataFrame | None = None,
    ceiling: Mapping[tuple[str, str], float] | None = None,
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
    refuse_folder(path, "report.html")
    write_whole(path, render_report(folds, curves, provenance, signals, ceiling))
    return Path(path)
