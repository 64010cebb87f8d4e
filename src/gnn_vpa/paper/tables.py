"""The published accuracies: Table 1, its summary columns, and the table of the appendix."""

from typing import TYPE_CHECKING, NamedTuple

from ..errors import UsageError
from ._rows import rows
from .names import paper_name, resolve_name

if TYPE_CHECKING:
    import pandas as pd

_TABLES = ("table1", "table_a1")


class Accuracy(NamedTuple):
    """A published test accuracy in percent: mean and standard deviation over ten folds.

    Example:
        >>> Accuracy(72.0, 4.4).mean
        72.0
    """

    mean: float
    std: float


class Summary(NamedTuple):
    """A method's average over Table 1's data sets, and p of its test against vpa.

    `p` is None in the rows of vpa itself.

    Example:
        >>> Summary(71.2, None).average
        71.2
    """

    average: float
    p: float | None


def published(table: str = "table1") -> "pd.DataFrame":
    """Return a published table with columns model, aggregation, dataset, mean and std.

    Args:
        table: `table1`, or `table_a1` for the appendix (node degrees as features).

    Example:
        >>> published("table1").shape, published("table-a1").shape
        ((108, 5), (60, 5))
    """
    import pandas as pd

    frame = pd.DataFrame(rows(_table(table)))
    return frame.astype({"mean": float, "std": float})


def published_accuracy(table: str, model: str, aggr: str, dataset: str) -> Accuracy | None:
    """Return one cell of a published table, or None where the paper has no such cell.

    Args:
        table: `table1` or `table_a1`.
        model: `gin`, `gcn`, `sgc` or `gat`, in upper or lower case.
        aggr: `sum`, `mean`, `max`, `vpa` or `default` (plain SGC and GAT).
        dataset: A name as in the paper or as in the archives.

    Example:
        >>> published_accuracy("table1", "gin", "vpa", "IMDB-BINARY")
        Accuracy(mean=72.0, std=4.4)
        >>> published_accuracy("table1", "sgc", "max", "IMDB-BINARY") is None
        True
    """
    try:
        cell = (model.casefold(), aggr.casefold(), paper_name(resolve_name(dataset)))
    except UsageError:
        return None
    for row in rows(_table(table)):
        if (row["model"].casefold(), row["aggregation"], row["dataset"]) == cell:
            return Accuracy(float(row["mean"]), float(row["std"]))
    return None


def published_summary() -> dict[tuple[str, str], Summary]:
    """Return Table 1's columns Avg and p by lower-case model and aggregation.

    Example:
        >>> published_summary()["gin", "sum"]
        Summary(average=69.3, p=2e-05)
    """
    return {
        (row["model"].casefold(), row["aggregation"]): Summary(
            float(row["avg"]), float(row["p_vs_vpa"]) if row["p_vs_vpa"] else None
        )
        for row in rows("table1_summary")
    }


def _table(name: str) -> str:
    if (table := name.replace("-", "_")) in _TABLES:
        return table
    raise UsageError(f"the paper has no table {name!r}: use {' or '.join(_TABLES)}")
