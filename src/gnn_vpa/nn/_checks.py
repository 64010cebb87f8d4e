"""Checks of what the models are built from and called with."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import torch
from torch import Tensor

from ..errors import UsageError
from ..ops.internal import check_device
from ._lane_rows import LaneRows


def checked_choice(name: str, value: str, choices: Sequence[str]) -> Any:
    """Return ``value`` as it stands among ``choices``, whatever its case; raise if it does not."""
    if isinstance(value, str) and value.lower() in (known := [c.lower() for c in choices]):
        return choices[known.index(value.lower())]
    nearest = get_close_matches(str(value).lower(), choices, n=1)
    hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
    raise UsageError(f"{name}: {value!r} is unknown, expected one of {', '.join(choices)}.{hint}")


def check_counts(**counts: int) -> None:
    """Raise unless every one of the named numbers is a whole number of at least 1."""
    for name, value in counts.items():
        if not isinstance(value, int) or value < 1:
            raise UsageError(f"{name}: expected a whole number of at least 1, got {value!r}.")


def check_input(x: Tensor, in_channels: int, rows: Tensor | LaneRows | None = None) -> None:
    """Raise unless ``x`` holds features ``[nodes, in_channels]``, or codes ``[nodes]`` of them.

    Where lanes own blocks of ``rows``, each code comes with its lane, ``[nodes, 2]``.
    """
    in_blocks = isinstance(rows, LaneRows) and rows.lane is not None
    if not isinstance(x, Tensor):
        raise UsageError(f"x: expected a tensor, got {type(x).__name__}.")
    if x.is_floating_point():
        if x.dim() != 2 or x.shape[1] != in_channels:
            raise UsageError(
                f"x: expected shape [nodes, {in_channels}], got {list(x.shape)}. The model was "
                f"built with in_channels={in_channels}."
            )
    elif x.dtype not in (torch.int64, torch.int32) or not (
        x.dim() == 1 or (in_blocks and x.shape[1:] == (2,))
    ):
        raise UsageError(
            f"x: expected floating-point features [nodes, {in_channels}], or the codes of one-hot "
            f"features as integers [nodes], got {x.dtype} {list(x.shape)}."
        )
    elif _can_look_inside(x):
        codes = x if x.dim() == 1 else x[:, 1]
        low, high = (int(bound) for bound in torch.aminmax(codes))
        if low < 0 or high >= in_channels:
            raise UsageError(
                f"x: code {low if low < 0 else high} is out of range: expected 0 to "
                f"{in_channels - 1}. The model was built with in_channels={in_channels}."
            )


def check_nodes(nodes: Tensor | LaneRows | None, x: Tensor) -> None:
    """Raise unless ``nodes``, where given, says of every row of ``x`` how often it occurs."""
    if isinstance(nodes, LaneRows):
        nodes = nodes.multiplicity
    if nodes is None:
        return
    if not isinstance(nodes, Tensor):
        raise UsageError(f"nodes: expected a tensor, got {type(nodes).__name__}.")
    if nodes.shape != x.shape[:1]:
        raise UsageError(
            f"nodes: expected shape [{x.shape[0]}], one for each row of x, got {list(nodes.shape)}."
        )
    check_device("nodes", nodes, x.device)


def one_hot(codes: Tensor, in_channels: int, dtype: torch.dtype) -> Tensor:
    """Write codes ``[nodes]`` out as features ``[nodes, in_channels]``."""
    return (codes.unsqueeze(1) == torch.arange(in_channels, device=codes.device)).to(dtype)


def _can_look_inside(x: Tensor) -> bool:
    # A value cannot steer Python while a compiler traces or a CUDA graph is captured.
    capturing = x.is_cuda and torch.cuda.is_current_stream_capturing()
    return x.numel() > 0 and not torch.compiler.is_compiling() and not capturing
