"""Operators that a compiler calls: defined plainly, as they are called for every batch.

``torch.library.custom_op`` would take three times as long to be called.
"""

from collections.abc import Callable
from typing import Any

import torch


def define(
    schema: str,
    kernel: Callable[..., Any],
    shapes: Callable[..., Any] | None,
) -> None:
    """Define an operator of the CPU.

    Args:
        schema: Name, arguments and results, such as ``"twice(Tensor x) -> Tensor"``.
        kernel: What computes it.
        shapes: What makes results of the right shapes and types, and no values. Without it the
            operator is a composite: a compiler sees the operators that ``kernel`` calls.
    """
    name, rest = schema.split("(", 1)
    name = f"gnn_vpa::{name}"
    torch.library.define(name, f"({rest}", tags=torch.Tag.pt2_compliant_tag)
    torch.library.impl(name, "CPU" if shapes else "CompositeImplicitAutograd", kernel)
    if shapes:
        torch.library.register_fake(name, shapes)
