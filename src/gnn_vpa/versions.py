"""The versions that numbers may depend on."""

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

import gnn_vpa

_LIBRARIES = ("torch", "torch_geometric", "triton", "numpy", "scikit-learn")


def versions() -> dict[str, str]:
    """Return the versions of gnn-vpa, Python and the libraries that compute, as far as installed.

    Example:
        >>> list(versions())[:3]
        ['gnn-vpa', 'python', 'torch']
    """
    return {"gnn-vpa": gnn_vpa.__version__, "python": platform.python_version(), **_libraries()}


@cache
def _libraries() -> dict[str, str]:
    """Look them up once: each is read out of a file."""
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
