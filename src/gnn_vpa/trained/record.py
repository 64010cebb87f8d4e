"""What is known of how a model came to be, and of how good it is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Judged = Literal["validation", "test", "cross-validation"]
IntervalBy = Literal["", "Wilson", "bootstrap", "folds"]


@dataclass(frozen=True)
class DataRecord:
    """The data that a model was trained on.

    Attributes:
        name: What the data set is called.
        content: Its SHA-256, see ``GraphSet.checksum``.
        graphs: Number of graphs, nodes and edges (directed) of all of it.
        nodes: See above.
        edges: See above.
        train: Number of graphs that the weights were trained on …
        valid: … and of those that chose the epoch …
        test: … and of those that did neither.

    Example:
        >>> DataRecord("MUTAG", "350999e7", 188, 3371, 7442, 169, 19).valid
        19
    """

    name: str
    content: str
    graphs: int
    nodes: int
    edges: int
    train: int
    valid: int
    test: int = 0


@dataclass(frozen=True)
class Record:
    """How a model was trained, and how good it is.

    Attributes:
        data: The data.
        metric: What chose the epoch.
        judged: On which graphs ``scores`` and ``interval`` are: those that chose the epoch
            (validation), others (test), or the test graphs of a cross-validation.
        scores: Each metric of the kind; None where it is undefined.
        interval: 95 % confidence interval of the metric; None where there is none.
        interval_by: How it was made: ``"Wilson"`` or ``"bootstrap"`` (over the graphs), or over the
            ``"folds"``.
        seed: Seed of the training.
        best_epoch: The epoch whose weights these are, from 0.
        history: Training loss and validation score by epoch.
        versions: Of what the model was made with.
        signal: Variance of what each message-passing layer returns, on some of the graphs.

    Example:
        >>> data = DataRecord("MUTAG", "350999e7", 188, 3371, 7442, 169, 19)
        >>> Record(data, "accuracy", "validation", {"accuracy": 0.9}).score
        0.9
    """

    data: DataRecord
    metric: str
    judged: Judged
    scores: Mapping[str, float | None]
    interval: tuple[float, float] | None = None
    interval_by: IntervalBy = ""
    seed: int = 0
    best_epoch: int = 0
    history: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    signal: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def score(self) -> float | None:
        """The score in the metric that chose the epoch."""
        return self.scores[self.metric]
