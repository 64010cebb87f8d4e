"""The baselines: what is no graph network, and stands beside them under the same folds."""

from typing import Final, NamedTuple


class Baseline(NamedTuple):
    """How a baseline is called.

    Attributes:
        title: In tables.
        short: Where a figure has little room.
        meaning: In a sentence.

    Example:
        >>> BASELINES["wl"].title
        'WL subtree kernel + SVM'
    """

    title: str
    short: str
    meaning: str


#: Every baseline by its name; `gnn_vpa.experiments.baselines` fits them.
BASELINES: Final = {
    "majority": Baseline("Majority class", "Majority", "majority class"),
    "no_edges": Baseline(
        "No edges: forest", "No edges", "no edges: random forest on pooled node features"
    ),
    "no_features": Baseline(
        "No features: forest", "No features", "no features: random forest on degrees and sizes"
    ),
    "wl": Baseline("WL subtree kernel + SVM", "WL + SVM", "WL subtree kernel and SVM"),
}
