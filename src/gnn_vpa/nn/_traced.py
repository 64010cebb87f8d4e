"""Whether a kernel of our own may run."""

import torch


def is_traced() -> bool:
    """Say whether a compiler or a transform looks on, which a kernel of our own would blind."""
    return torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()
