"""The command line: ``gnn-vpa``, or ``python -m gnn_vpa``."""

from ._app import main as main

__all__ = ["main"]
