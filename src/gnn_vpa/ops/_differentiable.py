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

    The operator serves ``torch.compile``, ``vmap``, tracing and tensor subclasses. Two other ways
    lead to the same kernels under the same rules:

    - Under ``torch.func.grad`` an operator's registered derivative fails, and that of an
      ``autograd.Function`` works.
    - Called plainly, an operator defined in Python takes longer to find its kernel than the
      kernel takes to run; an ``autograd.Function`` that calls the kernel does not.
    """
    op.register_autograd(backward, setup_context=context)
    op.register_vmap(vmap)
    kernel = op._init_fn

    def call(x: Tensor, *args: Any) -> Tensor:
        if torch.compiler.is_compiling():
            return op(x, *args)  # type: ignore[no-any-return]
        if torch._C._are_functorch_transforms_active():
            return transformed.apply(x, *args)  # type: ignore[no-any-return, attr-defined]
        if torch._C._len_torch_dispatch_stack() > 0 or not _plain(x):
            return op(x, *args)  # type: ignore[no-any-return]
        if torch.is_grad_enabled():
            return eager.apply(x, *args)  # type: ignore[no-any-return, attr-defined]
        return kernel(x, *args)  # type: ignore[no-any-return]

    def forward(ctx: Any, *args: Any) -> Tensor:
        out: Tensor = kernel(*args)
        context(ctx, args, out)
        return out

    rules: dict[str, Any] = {"backward": staticmethod(backward)}
    eager = type(
        f"{op._name}_eager", (torch.autograd.Function,), rules | {"forward": staticmethod(forward)}
    )
    rules |= {
        "forward": staticmethod(call),
        "setup_context": staticmethod(context),
        "vmap": staticmethod(vmap),
    }
    transformed = type(f"{op._name}_transformed", (torch.autograd.Function,), rules)
    return call


def _plain(x: Tensor) -> bool:
    """Say whether ``x`` is an ordinary tensor, with values that a kernel can read."""
    return type(x) in (Tensor, torch.nn.Parameter) and not x.is_meta
