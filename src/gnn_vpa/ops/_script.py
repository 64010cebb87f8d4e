"""TorchScript, which is not supported: said where it is tried, before a wrong program is made."""

from typing import NoReturn

import torch

from ..errors import UsageError


def refuse_script() -> None:
    """Raise while ``torch.jit.trace`` records: it would take the edges at hand for constants."""
    if torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
        raise_unscriptable()


def raise_unscriptable() -> NoReturn:
    """Say that TorchScript is not supported, and what is."""
    raise UsageError(
        "TorchScript (torch.jit.script, torch.jit.trace) is not supported by gnn-vpa's layers and "
        "aggregations. Use torch.compile for speed, or torch.export for a program to keep."
    )
