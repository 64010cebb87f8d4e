"""The report as a page that needs nothing else, no script either."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...escape import html, printable
from ...page import environment, inline_svg
from . import _table
from ._figure import draw
from ._numbers import number, percent

if TYPE_CHECKING:
    from ._report import Report

_MOST_ROWS = 1000


def render(report: Report) -> str:
    """Return the text of the page."""
    from markupsafe import Markup

    page = (
        environment(__package__)
        .get_template("page.html")
        .render(
            verdict=report.verdict.splitlines(),
            figure=Markup(inline_svg(draw(report.steps))),
            description=_description(report),
            header=_table.HEADER,
            rows=_table.rows(report.steps, _MOST_ROWS),
            degrees=_degrees(report),
        )
    )
    return printable(page)


def table_html(report: Report) -> str:
    """Return the table and the verdict as a piece of a notebook."""
    cells = [_table.HEADER, *_table.rows(report.steps)]
    head, *body = (
        "".join(f"<{tag}>{html(cell)}</{tag}>" for cell in line)
        for tag, line in zip(["th"] + ["td"] * len(cells), cells, strict=False)
    )
    lines = "".join(f"<tr>{line}</tr>" for line in body)
    said = "".join(f"<p>{html(line)}</p>" for line in report.verdict.splitlines())
    return f"{said}<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def _degrees(report: Report) -> list[tuple[str, list[list[str]]]]:
    """Return the groups of each aggregation and readout, as cells."""
    tables = []
    for step in report.steps:
        groups = step.by_size if step.step == "readout" else step.by_degree
        if step.step in ("aggregation", "readout") and groups:
            rows = sum(group.rows for group in groups)
            cells = [
                [
                    str(group),
                    percent(group.rows / rows),
                    number(group.mean),
                    number(group.variance),
                    percent(group.share),
                ]
                for group in groups
            ]
            tables.append((f"{step.name}, {step.aggr or step.step}", cells))
    return tables


def _description(report: Report) -> str:
    return (
        f"Four panels over {len(report.steps)} steps of the network: variance forward, variance of "
        "the gradient, mean square by in-degree, distance of neighbours. The table below has the "
        "numbers."
    )
