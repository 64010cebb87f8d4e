"""What other rooms use of this one, and users should not: it may change at any time."""

from .probing._subjects import Subject as Subject
from .probing._subjects import own_model as own_model
from .probing._subjects import papers_model as papers_model
from .probing._symptoms import layers_of as layers_of

__all__ = [
    "Subject",
    "layers_of",
    "own_model",
    "papers_model",
]
