"""Variance-preserving aggregation for graph neural networks."""

from .errors import GnnVpaError as GnnVpaError
from .errors import UsageError as UsageError

__version__ = "0.1.0"

__all__ = ["GnnVpaError", "UsageError"]
