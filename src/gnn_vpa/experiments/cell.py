"""One cell of a table: what is trained, on what, and how."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ..errors import GnnVpaError
from ..graphs import GraphSet
from ..training import Protocol, Task


@dataclass(frozen=True)
class Cell:
    """A method on a data set with one seed: all of its folds.

    Attributes:
        dataset: What the data set is called in the results: as in the paper, where it is there.
        task: The method.
        protocol: How it is trained; None for a baseline, which is not.
        folds: Number of folds.
        seed: Seed of initial weights, batches and dropout.
        source: Where the data come from, or the data, see `gnn_vpa.graphs.load`.
        content: The data's SHA-256; empty until they are loaded, see `identify`.

    Example:
        >>> str(Cell("MUTAG", Task("gin", "vpa"), seed=1))
        'GIN+vpa on MUTAG, seed 1'
        >>> str(Cell("IMDB-B", Task("sgc", "vpa", features="degree", options=(("K", 5),))))
        'SGC+vpa (K=5) on IMDB-B with degree features'
    """

    dataset: str
    task: Task
    protocol: Protocol | None = field(default_factory=Protocol)
    folds: int = 10
    seed: int = 0
    source: str | GraphSet = field(default="", compare=False)
    content: str = ""

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> "Cell":
        """Return the cell that a row of a results file describes.

        Example:
            >>> protocol = {"epochs": None, "batch_size": None, "learning_rate": None}
            >>> method = {"model": "wl", "aggregation": "", "variant": "", "features": "auto"}
            >>> row = {**protocol, **method, "options": "{}", "num_folds": 10, "seed": 0}
            >>> str(Cell.of_row({**row, "dataset": "PTC", "content": "350999e7"}))
            'WL on PTC'
        """
        protocol = None
        if row["epochs"] is not None:
            protocol = Protocol(row["epochs"], row["batch_size"], row["learning_rate"])
        options = tuple(json.loads(row["options"]).items())
        names = (row["model"], row["aggregation"], row["variant"], row["features"])
        numbers = (row["num_folds"], row["seed"])
        return cls(
            row["dataset"], Task(*names, options), protocol, *numbers, content=row["content"]
        )

    def __str__(self) -> str:
        aggr = "" if self.task.aggr in ("", "default") else f"+{self.task.aggr}"
        seed = f", seed {self.seed}" if self.seed else ""
        return f"{self.task.model.upper()}{aggr}{self.settings} on {self.data}{seed}"

    @property
    def settings(self) -> str:
        """What sets the model apart from the released one, in brackets.

        Example:
            >>> Cell("MUTAG", Task("sgc", "vpa", "printed")).settings
            ' (printed)'
        """
        unusual = [] if self.task.variant in ("", "released") else [self.task.variant]
        unusual += [f"{name}={value}" for name, value in self.task.options]
        return f" ({', '.join(unusual)})" if unusual else ""

    @property
    def data(self) -> str:
        """The data set, and its node features where they are not its own.

        Example:
            >>> Cell("IMDB-B", Task("gin", "vpa", features="degree")).data
            'IMDB-B with degree features'
        """
        features = self.task.features
        return self.dataset + ("" if features == "auto" else f" with {features} features")

    @property
    def key(self) -> str:
        """A name made of everything that the cell's numbers depend on, and of nothing else.

        The data count by their content: whatever they are called and wherever they come from.

        Example:
            >>> cell = Cell("PTC", Task("gin", "vpa"), content="350999e7")
            >>> cell.key == Cell("mine", Task("gin", "vpa"), content="350999e7").key
            True
            >>> cell.key == Cell("PTC", Task("gin", "vpa"), content="64a17008").key
            False
        """
        if not self.content:
            raise GnnVpaError(f"{self}: the data are not known yet, take cells from identify")
        parts = {
            "content": self.content,
            "task": {name: value for name, value in asdict(self.task).items() if name != "source"},
            "protocol": self.protocol and self.protocol.settings(),
            "folds": self.folds,
            "seed": self.seed,
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
