"""What a user's own `module:function` returns."""

import importlib
import sys
from pathlib import Path
from typing import Any

from ..errors import UsageError


def import_reference(reference: str) -> Any:
    """Import a module, of this folder too, and return what it calls by this name.

    Args:
        reference: `module:function`.
    """
    module, _, function = reference.partition(":")
    here = str(Path.cwd())
    sys.path.insert(0, here)  # as `python -m` does: one's own module lies right here
    try:
        found: Any = importlib.import_module(module)
        for part in function.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"{reference!r} must name a module and its function: {error}") from error
    finally:
        sys.path.remove(here)
    return found


def call_reference(reference: str, expected: str) -> Any:
    """Import a module, of this folder too, and call its function without arguments.

    Args:
        reference: `module:function`.
        expected: What it must return, for the message where that fails.
    """
    make = import_reference(reference)
    try:
        return make()
    except Exception as error:
        raise UsageError(
            f"{reference!r} must return {expected} when called without arguments, "
            f"but failed with {type(error).__name__}: {error}"
        ) from error
