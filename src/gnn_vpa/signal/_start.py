"""A model as it is in the first step of a training, without leaving a trace of having looked."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from ..random_state import seeded


@contextmanager
def as_training_starts(model: nn.Module) -> Iterator[None]:
    """Let norms use the batch's own statistics and switch dropout off, while the block runs.

    Afterwards modes, buffers, the random state and what PyG's layers remember of a graph are as
    they were. No gradients are recorded.
    """
    modes = {module: module.training for module in model.modules()}
    buffers = {buffer: buffer.clone() for buffer in model.buffers()}
    remembered = {
        (module, name): value
        for module in model.modules()
        for name, value in vars(module).items()
        if name.startswith("_cached")
    }
    for module in modes:
        module.training = isinstance(module, _BatchNorm)
    try:
        with seeded(), torch.no_grad():
            yield
    finally:
        with torch.no_grad():
            for buffer, value in buffers.items():
                buffer.copy_(value)
        for module, mode in modes.items():
            module.training = mode
        for (module, name), value in remembered.items():
            setattr(module, name, value)
