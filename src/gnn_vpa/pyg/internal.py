"""What other rooms use of this one, and users should not: it may change at any time."""

from ._edges import plain_edges as plain_edges
from ._propagate import VPMessagePassing as VPMessagePassing

__all__ = [
    "VPMessagePassing",
    "plain_edges",
]
