"""What checks a release is no part of the package: it is found at the root of the repository."""

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def release_module(root: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Import a module of the release checks by name."""
    monkeypatch.syspath_prepend(root)
    return lambda name: importlib.import_module(f"release.{name}")
