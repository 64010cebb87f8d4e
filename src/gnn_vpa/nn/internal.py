"""What other rooms use of this one, and users should not: it may change at any time."""

from ._checks import one_hot as one_hot
from ._heads import LevelsHead as LevelsHead
from ._heads import MLPHead as MLPHead
from ._terms import TermKind as TermKind

__all__ = [
    "LevelsHead",
    "MLPHead",
    "TermKind",
    "one_hot",
]
