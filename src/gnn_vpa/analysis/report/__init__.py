"""The report: one HTML page that says what came out, and works without a network."""

from ._render import render_report as render_report
from ._render import write_report as write_report

__all__ = ["render_report", "write_report"]
