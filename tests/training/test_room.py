"""How much of a GPU a process makes its groups for."""

from collections.abc import Iterator

import pytest
import torch

from gnn_vpa.training.room import share_gpu, usable_memory


@pytest.fixture(autouse=True)
def _alone_again() -> Iterator[None]:
    yield
    share_gpu(1)


@pytest.mark.parametrize(
    ("processes", "free", "usable"),
    [
        (1, 100, 70),
        (1, 50, 35),  # somebody else has the rest
        (4, 100, 17),  # all begin at the same time, when everything is free
        (4, 10, 7),
    ],
)
def test_processes_that_share_a_gpu_leave_each_other_room(
    monkeypatch: pytest.MonkeyPatch, processes: int, free: int, usable: int
) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (free, 100))
    share_gpu(processes)
    assert usable_memory(torch.device("cuda")) == usable
