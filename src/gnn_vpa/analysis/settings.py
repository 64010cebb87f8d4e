"""What a table may hold side by side: results that were made under one setting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import starmap
from typing import TYPE_CHECKING

from gnn_vpa.errors import UsageError

from ._published import is_social
from .style import BASELINES

if TYPE_CHECKING:
    import pandas as pd

KEYS = ("dataset", "model", "aggregation", "variant", "features", "fold", "seed")


@dataclass(frozen=True, order=True)
class Setting:
    """A variant of the models and a kind of node features: one table of results.

    Args:
        variant: "released", "printed" or a name of the user's own.
        features: "auto" (what the paper's Table 1 uses), "degree" (its appendix) or "ones".

    Example:
        >>> Setting("released", "auto").published_table
        'table1'
        >>> Setting("released", "ones").published_table is None
        True
        >>> print(Setting("printed", "degree"))
        models as printed, node degree as feature
    """

    variant: str
    features: str

    @property
    def published_table(self) -> str | None:
        """The table of the paper with the same node features, where there is one."""
        return {"auto": "table1", "degree": "table_a1"}.get(self.features)

    def __str__(self) -> str:
        features = {
            "auto": "the data's own node features",
            "degree": "node degree as feature",
            "ones": "node features all ones",
        }
        models = f"models as {self.variant}" if self.variant else "models as given"
        return f"{models}, {features.get(self.features, f'node features {self.features}')}"


def split_by_setting(frame: pd.DataFrame) -> Iterator[tuple[Setting, pd.DataFrame]]:
    """Split folds or curves into the parts that belong in one table each.

    A baseline does not depend on the models' variant: it goes with every setting that has its
    node features, and stands alone only where nothing else was run.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame(
        ...     [["MUTAG", "GIN", "vpa", variant, "auto", 0, 0] for variant in "ab"], columns=KEYS
        ... )
        >>> [(setting.variant, len(part)) for setting, part in split_by_setting(frame)]
        [('a', 1), ('b', 1)]
    """
    require_columns(frame, KEYS)
    # Curves have many rows and few distinct ones, so each of those is looked up once.
    pairs = list(zip(frame["dataset"], frame["features"], strict=True))
    canonical = {pair: _canonical(*pair) for pair in set(pairs)}
    keys = frame[["variant"]].assign(features=[canonical[pair] for pair in pairs])
    baseline = frame["model"].isin(BASELINES)
    distinct = (keys if baseline.all() else keys[~baseline]).drop_duplicates()
    for setting in sorted(starmap(Setting, distinct.to_numpy().tolist()), key=_rank):
        same_variant = keys["variant"] == setting.variant
        yield setting, frame[(keys["features"] == setting.features) & (same_variant | baseline)]


def require_columns(frame: pd.DataFrame, columns: tuple[str, ...]) -> None:
    """Refuse a frame that lacks one of the columns."""
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise UsageError(
            f"the frame has no column {', '.join(missing)}: "
            f"expected at least {', '.join(columns)}, as a run's results have them"
        )


def _canonical(dataset: str, features: str) -> str:
    # Nothing distinguishes the nodes of a social set, so "auto" and "ones" are the same there.
    same_as_auto = features in ("", "labels") or (features == "ones" and is_social(dataset))
    return "auto" if same_as_auto else features


def _rank(setting: Setting) -> tuple[bool, bool, Setting]:
    return setting.variant != "released", setting.features != "auto", setting
