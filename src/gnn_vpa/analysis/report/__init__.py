"""The report: sections that say what came out, and one HTML page that works without a network.

A section is an object with a title, `html` and `markdown`; `sections.SECTIONS` lists them, and the
page and the Markdown file are made from that list.
"""

from ._html import figures as figures
from ._html import fill as fill
from ._part import Part as Part
from ._part import parts as parts
from ._pictures import Pictures as Pictures
from ._render import render_report as render_report
from ._render import write_report as write_report
from .sections import SECTIONS as SECTIONS
from .sections import Section as Section

__all__ = [
    "SECTIONS",
    "Part",
    "Pictures",
    "Section",
    "figures",
    "fill",
    "parts",
    "render_report",
    "write_report",
]
