"""Give a custom operator its derivative and batching rule, for every way PyTorch asks for them."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._library.custom_ops import CustomOpDef


def differentiable(
    op: CustomOpDef,
    context: Callable[[Any, tuple[Any, ...], Tensor], None],
    backward: Callable[[Any, Tensor], tuple[Tensor | None, ...]],
    vmap: Callable[..., tuple[Tensor, int]],
) -> Callable[..., Tensor]:
    """Register the rules with ``op`` and return the function to call.

    Autograd, ``torch.compile`` and ``vmap`` use what is registered with the operator. The
    transforms of ``torch.func`` that differentiate do not: an operator's registered derivative
    fails under ``torch.func.grad``, and an ``autograd.Function`` works there. So the function
    returned goes through one while a transform is active; the rules are the same.
    """
    op.register_autograd(backward, setup_context=context)
    op.register_vmap(vmap)

    def call(*args: Any) -> Tensor:
        if torch._C._are_functorch_transforms_active():
            return transformed.apply(*args)  # type: ignore[no-any-return, attr-defined]
        return op(*args)  # type: ignore[no-any-return]

    transformed = type(
        f"{op._name}_under_transform",
        (torch.autograd.Function,),
        {
            "forward": staticmethod(call),
            "setup_context": staticmethod(context),
            "backward": staticmethod(backward),
            "vmap": staticmethod(vmap),
        },
    )
    return call
