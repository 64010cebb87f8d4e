"""Which device a name stands for, and a sentence for one that is not there."""

from collections.abc import Callable

import pytest
import torch

from gnn_vpa.errors import UsageError
from gnn_vpa.experiments.devices import resolve_device, resolve_devices


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
        (2, "cpu:3", "unknown device 'cpu:3': use auto, cpu, cuda, or one or several"),
        (2, "cudax", "unknown device 'cudax'"),
        (2, "cuda:", "unknown device 'cuda:'"),
        (2, "cuda:-1", "unknown device 'cuda:-1'"),
        (2, "cuda:one", "unknown device 'cuda:one'"),
        (2, "", "unknown device ''"),
        (2, "cuda:0,", "unknown device ''"),
        (2, "cuda:0,cuda:2", "there is no device cuda:2: here is cuda:0, cuda:1"),
        (0, "cuda:0,cuda:1", "there is no device cuda:0,cuda:1: torch finds no CUDA device"),
        (3, "cuda:1,cuda:0,cuda:1", "cuda:1 is named twice"),
        (3, "cuda:1,cuda:01", "cuda:1 is named twice"),
        (3, "cuda,cuda:0", "cuda is all GPUs"),
        (3, "cpu,cuda:0", "cpu cannot be one of several"),
        (3, "cuda:0,auto", "auto cannot be one of several"),
    ],
    indirect=["gpus"],
)
@pytest.mark.parametrize("resolve", [resolve_device, resolve_devices])
def test_a_device_that_is_not_there_is_named(
    name: str, message: str, resolve: Callable[[str], object]
) -> None:
    with pytest.raises(UsageError, match=message):
        resolve(name)


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize(
    ("gpus", "name", "devices"),
    [
        (0, "auto", ["cpu"]),
        (1, "auto", ["cuda"]),
        (3, "auto", ["cuda:0", "cuda:1", "cuda:2"]),
        (3, "cpu", ["cpu"]),
        (1, "cuda", ["cuda"]),
        (3, "cuda", ["cuda:0", "cuda:1", "cuda:2"]),
        (1, "cuda:0", ["cuda:0"]),
        (3, "cuda:2, cuda:0", ["cuda:2", "cuda:0"]),
    ],
    indirect=["gpus"],
)
def test_cuda_is_every_gpu_and_numbers_are_some(name: str, devices: list[str]) -> None:
    assert resolve_devices(name) == devices


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize("gpus", [3], indirect=True)
def test_what_uses_one_device_refuses_several() -> None:
    assert resolve_device("cuda") == "cuda"
    with pytest.raises(UsageError, match="one device is used here"):
        resolve_device("cuda:0,cuda:2")


@pytest.mark.gpu
def test_kernels_are_launched_on_the_gpu_that_is_named() -> None:
    from gnn_vpa.experiments.workers import single_thread

    if not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    last = torch.cuda.device_count() - 1
    with single_thread(f"cuda:{last}"):
        assert torch.cuda.current_device() == last
