"""What a user's own `module:function` returns."""

import importlib
import os
import sys
from pathlib import Path
from typing import Any

from ..errors import UsageError


def import_reference(reference: str) -> Any:
    """Import a module, of this folder too, and return what it calls by this name.

    This folder comes last: none of its files takes the place of a module of a library.

    Args:
        reference: `module:function`.
    """
    module, _, function = reference.partition(":")
    here = str(Path.cwd())
    sys.path.append(here)
    try:
        found: Any = importlib.import_module(module)
        for part in function.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(
            f"{reference!r} must name a module and its function: {error}{_of_library(module)}"
        ) from error
    finally:
        del sys.path[-1 - sys.path[::-1].index(here)]
    return found


def _of_library(module: str) -> str:
    """Name the library's file if a file of this folder has the same name."""
    own = Path(module.replace(".", os.sep) + ".py")
    found = getattr(sys.modules.get(module), "__file__", None)
    if found is None or not own.is_file() or own.samefile(found):
        return ""
    return f" ({found}). Rename {own}: a module of a library is called the same"


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
