"""What several test rooms share."""

import os
import signal
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[1]


def pytest_configure(config: pytest.Config) -> None:
    """Give each parallel worker one thread, so that workers do not fight over the cores."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        torch.set_num_threads(1)
    # In the background of a shell interrupts are ignored, by children too: tests send some.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Runs inside tests start no processes of their own; tests/experiments/test_workers.py does.
    os.environ["GNN_VPA_WORKERS"] = "1"


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def tu_dir() -> Path:
    """The folder of the TU archives, from GNN_VPA_DATA or beside the repository."""
    folder = Path(os.environ.get("GNN_VPA_DATA", ROOT.parent / "shared" / "tu"))
    if not any(folder.glob("*.zip")):
        pytest.skip(f"no TU archives in {folder}: set GNN_VPA_DATA to the folder that has them")
    return folder.resolve()


@pytest.fixture
def generator() -> torch.Generator:
    """A source of random numbers that is the same in every run, whatever ran before."""
    return torch.Generator().manual_seed(0)


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    """Every numeric test that asks for it runs in both precisions."""
    chosen: torch.dtype = request.param
    return chosen
