"""Audits as a page that needs nothing else, no script either."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from ..escape import html, printable
from ..page import environment, inline_svg
from ._figure import draw
from ._numbers import many, percent
from ._tables import overview, tables

if TYPE_CHECKING:
    from ._record import Audit


class Bar(NamedTuple):
    """An accuracy among those that are shown side by side."""

    label: str
    share: float
    text: str
    kind: str  # "guess", "model" or "best"


def render(audits: Sequence[Audit]) -> str:
    """Return the text of a page about one data set or several.

    Example:
        >>> import gnn_vpa
        >>> page = render([gnn_vpa.audit("MUTAG", baselines=False)])
        >>> page[:15], "MUTAG" in page
        ('<!DOCTYPE html>', True)
    """
    page = (
        environment(__package__)
        .get_template("page.html")
        .render(
            sets=[_parts(audit) for audit in audits],
            overview=overview(audits) if len(audits) > 1 else None,
        )
    )
    return printable(page)


def piece(audit: Audit) -> str:
    """Return the sentences and the tables as a piece of a notebook."""
    said = "".join(f"<li>{html(finding.text)}</li>" for finding in audit.findings)
    parts = [f"<p><b>{html(audit.name)}</b>: {many(audit.graphs, 'graph')}</p><ul>{said}</ul>"]
    for table in tables(audit):
        head = "".join(f"<th>{html(cell)}</th>" for cell in table.header)
        rows = ["".join(f"<td>{html(cell)}</td>" for cell in row) for row in table.rows]
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        parts.append(
            f"<table><caption>{html(table.title)}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>"
        )
    return "".join(parts)


def _parts(audit: Audit) -> dict[str, Any]:
    return {
        "name": audit.name,
        "graphs": many(audit.graphs, "graph"),
        "content": audit.content,
        "matters": [finding.text for finding in audit.findings if finding.matters],
        "others": [finding.text for finding in audit.findings if not finding.matters],
        "bars": _bars(audit),
        "tables": tables(audit),
        "figure": _figure(audit),
    }


def _bars(audit: Audit) -> list[Bar]:
    """Return what scores how much, with what a network can have at best below."""
    if audit.last.ceiling is None or audit.classes is None:
        return []
    shares = [("majority class", max(audit.classes) / audit.graphs, "guess")]
    if audit.last.twins is not None:
        shares.append(("look-up table: copy the twin's label", audit.last.twins.accuracy, "guess"))
    shares += [
        (one.label, one.mean, "model")
        for one in audit.baselines
        if one.mean is not None and one.name != "majority"
    ]
    for accuracy, group in groupby(audit.rounds, lambda one: one.ceiling and one.ceiling.accuracy):
        first, *others = [one.rounds for one in group]
        rounds = f"{first} to {others[-1]} rounds" if others else many(first, "round")
        shares.append((f"best possible with {rounds}", accuracy or 0.0, "best"))
    return [Bar(label, share, percent(share), kind) for label, share, kind in shares]


def _figure(audit: Audit) -> Any:
    """Return the expected variances as a picture, or None."""
    if not audit.variances:
        return None
    from markupsafe import Markup

    return Markup(inline_svg(draw(audit.variances)))
