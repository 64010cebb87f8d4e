"""The benchmarks are no part of the package: they are found at the root of the repository."""

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def benchmark_module(root: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Import a module of the benchmarks by name."""
    monkeypatch.syspath_prepend(root)
    return lambda name: importlib.import_module(f"benchmarks.{name}")
