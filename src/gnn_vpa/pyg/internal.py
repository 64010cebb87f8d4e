"""What other rooms use of this one, and users should not: it may change at any time."""

from ._convert import convert_quietly as convert_quietly
from ._edges import plain_edges as plain_edges
from ._propagate import VPMessagePassing as VPMessagePassing
from ._same import sum_by_kernels as sum_by_kernels

__all__ = [
    "VPMessagePassing",
    "convert_quietly",
    "plain_edges",
    "sum_by_kernels",
]
