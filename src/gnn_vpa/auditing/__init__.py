"""What can be known of a data set before anything is trained."""

from ._audit import audit as audit
from ._page import render as render
from ._record import Audit as Audit
from ._record import Baseline as Baseline
from ._record import Finding as Finding
from ._record import Round as Round
from ._terminal import overview as overview

__all__ = [
    "Audit",
    "Baseline",
    "Finding",
    "Round",
    "audit",
    "overview",
    "render",
]
