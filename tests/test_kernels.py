"""Every kernel in Triton compiles for a GPU, wherever the tests run.

What kernels compute is tested in their rooms, interpreted where there is no GPU; a run of all tests
that leaves one out fails (`conftest.py`).
"""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest


def launched(root: Path) -> set[str]:
    """Return the kernels that Python code launches: ``name[grid](...)``."""
    return {
        node.func.value.id
        for path in (root / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Subscript)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id.endswith("_kernel")
    }


def test_every_kernel_compiles_for_compute_capability_9(
    root: Path, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    pytest.importorskip("triton")
    # Triton knows a kernel that it has compiled by all that the result depends on.
    cache = getattr(pytestconfig, "cache", None)
    compiled = tmp_path if cache is None else cache.mkdir("triton")
    environment = os.environ | {"TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(compiled)}
    program = [sys.executable, str(root / "tests" / "compile_kernels.py")]
    done = subprocess.run(program, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert set(done.stdout.split()) == launched(root)
