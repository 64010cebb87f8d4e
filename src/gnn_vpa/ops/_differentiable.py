"""Give a custom operator its derivative and batching rule, for every way PyTorch asks for them."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._library.custom_ops import CustomOpDef
from torch.autograd import forward_ad


def differentiable(
    op: CustomOpDef,
    context: Callable[[Any, tuple[Any, ...], Tensor], None],
    backward: Callable[[Any, Tensor], tuple[Tensor | None, ...]],
    vmap: Callable[..., tuple[Tensor, int]],
    linear_in: tuple[int, ...] = (),
) -> Callable[..., Tensor]:
    """Register the rules with ``op`` and return the function to call.

    In the arguments ``linear_in`` the operator is linear, in each by itself: its forward-mode
    derivative is then the operator with a tangent in the place of one argument, summed over them.

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
        if torch._C._are_functorch_transforms_active() or has_duals():
            return transformed.apply(x, *args)  # type: ignore[no-any-return, attr-defined]
        if torch._C._len_torch_dispatch_stack() > 0 or not _plain(x):
            return op(x, *args)  # type: ignore[no-any-return]
        if torch.is_grad_enabled():
            return eager.apply(x, *args)  # type: ignore[no-any-return, attr-defined]
        return kernel(x, *args)  # type: ignore[no-any-return]

    def lower(*args: Any) -> Tensor:
        # Transforms are taken off one by one; tangents are off when no transform is left.
        if has_duals() and not torch._C._are_functorch_transforms_active():
            return kernel(*args)  # type: ignore[no-any-return]
        return call(*args)

    def forward(ctx: Any, *args: Any) -> Tensor:
        out: Tensor = kernel(*args)
        context(ctx, args, out)
        return out

    rules: dict[str, Any] = {"backward": staticmethod(backward)}
    eager = type(
        f"{op._name}_eager", (torch.autograd.Function,), rules | {"forward": staticmethod(forward)}
    )

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        context(ctx, inputs, output)
        if linear_in:
            ctx.others = [None if isinstance(value, Tensor) else value for value in inputs]
            ctx.save_for_forward(*(v if isinstance(v, Tensor) else None for v in inputs))

    def jvp(ctx: Any, *tangents: Tensor | None) -> Tensor:
        inputs = [
            other if tensor is None else tensor
            for tensor, other in zip(ctx.saved_tensors, ctx.others, strict=True)
        ]
        parts = [
            call(*inputs[:place], tangents[place], *inputs[place + 1 :])
            for place in linear_in
            if tangents[place] is not None
        ]
        return sum(parts[1:], parts[0])

    rules |= {
        "forward": staticmethod(lower),
        "setup_context": staticmethod(setup_context),
        "vmap": staticmethod(vmap),
    }
    if linear_in:
        rules["jvp"] = staticmethod(jvp)
    transformed = type(f"{op._name}_transformed", (torch.autograd.Function,), rules)
    return call


def runs_bare(x: Tensor) -> bool:
    """Say whether a kernel may be called as it is: nobody looks on, nor asks for its derivative."""
    watched = torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()
    watched = watched or has_duals() or torch._C._len_torch_dispatch_stack() > 0
    return not watched and not torch.is_grad_enabled() and _plain(x)


def has_duals() -> bool:
    """Say whether ``torch.autograd.forward_ad`` is in use: tensors may carry tangents."""
    return forward_ad._current_level >= 0


def _plain(x: Tensor) -> bool:
    """Say whether ``x`` is an ordinary tensor, with values that a kernel can read."""
    return type(x) in (Tensor, torch.nn.Parameter) and not x.is_meta
