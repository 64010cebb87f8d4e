"""A run to look at while it goes on: its state, and a page that shows it in a browser."""

from .server import WatchServer as WatchServer
from .state import Watched as Watched

__all__ = ["WatchServer", "Watched"]
