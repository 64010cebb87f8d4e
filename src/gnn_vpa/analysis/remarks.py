"""How a run departs from the one that the paper's numbers come from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ._published import FOLDS
from .format import count, listing
from .settings import RELEASED

if TYPE_CHECKING:
    import pandas as pd

    from .settings import Setting

_EPOCHS = 200


def remarks(setting: Setting, folds: pd.DataFrame, curves: pd.DataFrame) -> Iterator[str]:
    """Warn of comparing with the paper where the protocol is another than its own."""
    departures = []
    models = replace(setting, protocol="")
    if models.models != RELEASED:
        verb = "have " if models.variant == RELEASED else ""
        departures.append(
            f"the models are not as released but {verb}{models.unusual or 'as given'}"
        )
    by_cell = folds.groupby(["dataset", "model", "aggregation"])["fold"].nunique()
    if by_cell.min() < FOLDS:
        fewest = count(int(by_cell.min()), "fold")
        scope = "every cell has" if by_cell.nunique() == 1 else "a cell has as few as"
        departures.append(f"{scope} {fewest} instead of {FOLDS}")
    if not curves.empty:
        epochs = int(curves.groupby(["dataset", "model", "aggregation"])["epoch"].nunique().max())
        if epochs != _EPOCHS:
            departures.append(f"trainings took {count(epochs, 'epoch')} instead of {_EPOCHS}")
    if departures:
        yield (
            f"Compare with the paper with care: {listing(departures)}. The published numbers are "
            "of another protocol than these."
        )
