"""The sections of a report: a file each, and an entry in this list, in the order of the page."""

from ._section import Section as Section
from .answer import TheAnswer
from .came_out import CameOut
from .cells import Cells
from .chosen import Chosen
from .curves import Curves
from .folds import Folds
from .powers import Powers
from .scores import Scores
from .signal import Signal
from .tests import Tests

SECTIONS: list[Section] = [
    TheAnswer(),
    Scores(),
    CameOut(),
    Tests(),
    Chosen(),
    Cells(),
    Curves(),
    Signal(),
    Powers(),
    Folds(),
]
