"""A disk that fails, or a kill, at every write, sync, open, rename and unlink.

As SQLite's tests do it: the first such operation fails, then the second, and so on, until all pass.
Each time a later start sees the state before or after, loses nothing, and goes on.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FAULTS = Path(__file__).parent / "faults"


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that makes operations fail."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs a C compiler, and a linker that knows LD_PRELOAD: on Linux, with cc")
    path = tmp_path_factory.mktemp("shim") / "shim.so"
    command = [compiler, "-shared", "-fPIC", "-o", str(path), str(FAULTS / "shim.c"), "-ldl"]
    subprocess.run(command, check=True)
    return path


def test_at_no_moment_a_fault_or_a_kill_costs_what_was_finished(
    shim: Path, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    environment = os.environ | {"LD_PRELOAD": str(shim), "PYTHONPATH": os.pathsep.join(sys.path)}
    if pytestconfig.option.every:
        environment["GNN_VPA_EVERY"] = "1"
    done = subprocess.run(
        [sys.executable, FAULTS / "scenarios.py", tmp_path],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    faults = {name: int(number) for name, number in map(str.split, done.stdout.splitlines())}
    assert faults.keys() == {"start", "recording", "checkpoint", "exported", "run"}
    # Of each of five kinds: a few for a file, some ten for every transaction; or a fifth.
    share = 1 if pytestconfig.option.every else 5
    assert min(faults.values()) >= 5 * 5 // share
    assert faults["recording"] > 5 * 20 // share
