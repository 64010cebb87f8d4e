"""Which device a name stands for, and a sentence for one that is not there."""

import pytest
import torch

from gnn_vpa.errors import UsageError
from gnn_vpa.experiments import resolve_device


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Let torch count so many GPUs."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: request.param > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: request.param)


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize(
    ("gpus", "name", "device"),
    [
        (0, "auto", "cpu"),
        (2, "auto", "cuda"),
        (0, "cpu", "cpu"),
        (2, "cpu", "cpu"),
        (1, "cuda", "cuda"),
        (1, "cuda:0", "cuda:0"),
        (2, "cuda:1", "cuda:1"),
    ],
    indirect=["gpus"],
)
def test_a_name_stands_for_a_device(name: str, device: str) -> None:
    assert resolve_device(name) == device


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize(
    ("gpus", "name", "message"),
    [
        (2, "cuda:2", "there is no device cuda:2: here is cuda:0, cuda:1"),
        (0, "cuda", "there is no device cuda: torch finds no CUDA device"),
        (0, "cuda:1", "there is no device cuda:1: torch finds no CUDA device"),
        (2, "cpu:3", "unknown device 'cpu:3': use auto, cpu, cuda, or one of several GPUs"),
        (2, "cudax", "unknown device 'cudax'"),
        (2, "cuda:", "unknown device 'cuda:'"),
        (2, "cuda:-1", "unknown device 'cuda:-1'"),
        (2, "cuda:one", "unknown device 'cuda:one'"),
        (2, "", "unknown device ''"),
    ],
    indirect=["gpus"],
)
def test_a_device_that_is_not_there_is_named(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        resolve_device(name)


@pytest.mark.gpu
def test_kernels_are_launched_on_the_gpu_that_is_named() -> None:
    from gnn_vpa.experiments.workers import single_thread

    if not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    last = torch.cuda.device_count() - 1
    with single_thread(f"cuda:{last}"):
        assert torch.cuda.current_device() == last
