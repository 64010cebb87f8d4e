"""How much of a GPU's memory groups of trainings are made for."""

import torch

USABLE = 0.7  # share of the free memory: the allocator needs some to move in
_processes = 1  # that use the same GPU


def share_gpu(processes: int) -> None:
    """Let trainings of this process take a part of a GPU that so many processes use.

    Example:
        >>> share_gpu(1)
    """
    global _processes
    _processes = processes


def usable_memory(device: torch.device) -> int:
    """Return the bytes of a GPU that a group may take."""
    free, total = torch.cuda.mem_get_info(device)
    return int(min(free, total // _processes) * USABLE)
