"""The paper's figure as a whole: a panel for each data set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..style import DATASETS, in_order
from ._curves import HEIGHT, learning_curves
from ._svg import WIDTH, element, text

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = 3
_LABEL = 22  # height of the line above a panel


def curves_by_dataset(curves: pd.DataFrame) -> str:
    """Training loss of one model on all of its data sets, as one picture.

    Args:
        curves: the rows of one model.

    Returns:
        The figure as SVG text.

    Example:
        >>> import pandas as pd
        >>> keys = ["dataset", "model", "aggregation", "variant", "features", "fold", "seed"]
        >>> rows = [[name, "GIN", "vpa", "released", "auto", 0, 0, epoch, 1 / (1 + epoch)]
        ...         for name in ("MUTAG", "PTC") for epoch in range(5)]
        >>> curves = pd.DataFrame(rows, columns=[*keys, "epoch", "train_loss"])
        >>> curves_by_dataset(curves).count("<svg")
        3
    """
    parts = []
    names = in_order(curves["dataset"], DATASETS)
    row = HEIGHT + _LABEL
    for index, name in enumerate(names):
        x, y = index % _COLUMNS * WIDTH, index // _COLUMNS * row
        panel = learning_curves(curves[curves["dataset"] == name])
        place = f'<svg x="{x}" y="{y + _LABEL}" width="{WIDTH}" height="{HEIGHT}" '
        parts.append(text(name, x + WIDTH / 2, y + 15, text_anchor="middle", font_weight="bold"))
        parts.append(panel.replace("<svg ", place, 1))
    rows = -(-len(names) // _COLUMNS)
    return element(
        "svg",
        "".join(parts),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {min(_COLUMNS, len(names)) * WIDTH} {rows * row}",
        role="img",
        aria_label=f"Training loss on {', '.join(names)}",
        font_family="system-ui, sans-serif",
        font_size=12,
        fill="currentColor",
    )
