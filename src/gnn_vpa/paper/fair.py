"""The fair comparison: its published rows, and the splits that they belong to.

Errica, Podda, Bacciu and Micheli, "A Fair Comparison of Graph Neural Networks for Graph
Classification" (ICLR 2020), with the methods that were added later on the same splits. A number
belongs to one division into folds: a division is known by its content, and rows are handed out for
that division alone.
"""

from typing import NamedTuple

from ..errors import UsageError
from ._rows import rows
from .names import resolve_name


class FairRow(NamedTuple):
    """A published row: accuracy in percent, mean and standard deviation over ten outer folds.

    Example:
        >>> FairRow("GIN", 80.0, 1.4).mean
        80.0
    """

    method: str
    mean: float
    std: float


class FairSet(NamedTuple):
    """A data set of the comparison, with the features and the splits of its rows.

    Attributes:
        dataset: The archive.
        features: `own`, `ones` or `degree`.
        division: What results call the splits, by their content.

    Example:
        >>> fair_sets()[0].dataset
        'NCI1'
    """

    dataset: str
    features: str
    division: str


def fair_sets() -> list[FairSet]:
    """Return the data sets of the comparison, small ones first.

    Example:
        >>> len(fair_sets())
        13
    """
    return [
        FairSet(row["dataset"], row["features"], row["division"]) for row in rows("fair_splits")
    ]


def fair_rows(dataset: str, division: str) -> list[FairRow]:
    """Return the published rows on these very splits, the best first.

    Args:
        dataset: A name as in the paper or as in the archives.
        division: What results call the splits.

    Example:
        >>> fair_rows("NCI1", "splits ea4f74d7c4fe62bb")[0]
        FairRow(method='GIN', mean=80.0, std=1.4)
        >>> fair_rows("NCI1", "")
        []
    """
    try:
        archive = resolve_name(dataset)
    except UsageError:  # the paper has no such data set, the comparison has
        archive = dataset
    features = {its.features for its in fair_sets() if its[::2] == (archive, division)}
    found = [
        FairRow(row["method"], float(row["mean"]), float(row["std"]))
        for row in rows("fair")
        if row["dataset"] == archive and row["features"] in features
    ]
    return sorted(found, key=lambda row: -row.mean)
