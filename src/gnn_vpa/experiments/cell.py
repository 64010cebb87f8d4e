"""One cell of a table: what is trained, on what, and how."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, NamedTuple

from ..errors import GnnVpaError
from ..graphs import Division, GraphSet, TargetKind
from ..paper import archive_with
from ..training import Protocol, Task
from .selection import Selection

_SHORT = {"learning_rate": "lr"}  # as on the command line


class Target(NamedTuple):
    """Which column of the data is to be learned, and as what; see `gnn_vpa.graphs.with_target`.

    Example:
        >>> Target().name_of("MUTAG"), Target("homo").name_of("QM9")
        ('MUTAG', 'QM9:homo')
    """

    column: str | None = None
    kind: TargetKind | Literal["auto"] = "auto"

    def name_of(self, dataset: str) -> str:
        """Return what a data set is called with this target."""
        return dataset if self.column in (None, "y") else f"{dataset}:{self.column}"


@dataclass(frozen=True)
class Cell:
    """A method on a data set with one seed: all of its folds.

    Attributes:
        dataset: What the data set is called in the results: as in the paper, where it is there.
        task: The method; where settings are chosen from, with the options that all of them share.
        protocol: How it is trained; None for a baseline, which is not. Where settings are chosen
            from, that of the first.
        folds: Number of folds.
        seed: Seed of initial weights, batches and dropout.
        source: Where the data come from, or the data, see `gnn_vpa.graphs.load`.
        content: The data's SHA-256; empty until they are loaded, see `identify`.
        repeat: Which of several shufflings the folds are.
        division: How the folds are made.
        selection: The settings that one is chosen from for each fold; None: there is no choice.
        target: What of the data is learned.
        metric: What chooses the epoch and is tested, known when the data are.

    Example:
        >>> str(Cell("MUTAG", Task("gin", "vpa"), seed=1))
        'GIN+vpa on MUTAG, seed 1'
        >>> str(Cell("IMDB-B", Task("sgc", "vpa", features="degree", options=(("K", 5),))))
        'SGC+vpa (K=5) on IMDB-B with degree features'
        >>> str(Cell("PTC", Task("gin", "vpa"), Protocol(learning_rate=0.01), repeat=2))
        'GIN+vpa (lr=0.01) on PTC, repeat 2'
    """

    dataset: str
    task: Task
    protocol: Protocol | None = field(default_factory=Protocol)
    folds: int = 10
    seed: int = 0
    source: str | GraphSet = field(default="", compare=False)
    content: str = ""
    repeat: int = 0
    division: Division = field(default_factory=Division)
    selection: Selection | None = None
    target: Target = field(default_factory=Target, compare=False)
    metric: str = field(default="accuracy", compare=False)

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> "Cell":
        """Return the cell that a row of a results file describes, if it has chosen nothing.

        Example:
            >>> method = {"model": "wl", "aggregation": "", "variant": "", "features": "auto"}
            >>> row = {**method, "options": "{}", "num_folds": 10, "seed": 0, "repeat": 0}
            >>> row |= {"protocol": None, "source": "", "division": "", "metric": "accuracy"}
            >>> str(Cell.of_row({**row, "dataset": "PTC", "content": "350999e7"}))
            'WL on PTC'
        """
        protocol = None if row["protocol"] is None else Protocol(**json.loads(row["protocol"]))
        options = tuple(json.loads(row["options"]).items())
        names = (row["model"], row["aggregation"], row["variant"], row["features"])
        return cls(
            row["dataset"],
            Task(*names, options, source=row["source"]),
            protocol,
            row["num_folds"],
            row["seed"],
            content=row["content"],
            repeat=row["repeat"],
            division=Division(row["division"]),
            metric=row["metric"],
        )

    def __str__(self) -> str:
        aggr = "" if self.task.aggr in ("", "default") else f"+{self.task.aggr}"
        seed = f", seed {self.seed}" if self.seed else ""
        repeat = f", repeat {self.repeat}" if self.repeat else ""
        return f"{self.model}{aggr}{self.settings} on {self.data}{seed}{repeat}"

    @property
    def model(self) -> str:
        """What the model is called: in capitals, unless it is somebody's own.

        Example:
            >>> Cell("MUTAG", Task("gin", "vpa")).model
            'GIN'
        """
        return self.task.model if self.task.source else self.task.model.upper()

    @property
    def settings(self) -> str:
        """What sets the method apart from the released one in the paper's protocol, in brackets.

        Example:
            >>> Cell("MUTAG", Task("sgc", "vpa", "printed")).settings
            ' (printed)'
        """
        unusual = [] if self.task.variant in ("", "released") else [self.task.variant]
        unusual += [f"{name}={value}" for name, value in self.task.options]
        if self.selection is not None:
            unusual.append(f"chosen from {len(self.selection.settings)}")
        elif self.protocol is not None:
            unusual += [
                f"{_SHORT.get(name, name)}={value}"
                for name, value in self.protocol.settings().items()
                if name != "epochs" and value != getattr(Protocol, name)
            ]
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
    def trainings(self) -> int:
        """How many trainings it is; a baseline counts as many.

        Example:
            >>> Cell("MUTAG", Task("gin", "vpa"), folds=5).trainings
            5
        """
        return self.folds * (1 if self.selection is None else self.selection.final_runs)

    @property
    def key(self) -> str:
        """A name made of everything that the cell's numbers depend on, and of nothing else.

        The data count by their content: whatever they are called and wherever they come from. What
        is as it has always been adds nothing, so that results keep their keys when there is more
        to choose from.

        Example:
            >>> cell = Cell("PTC", Task("gin", "vpa"), content="350999e7")
            >>> cell.key == Cell("mine", Task("gin", "vpa"), content="350999e7").key
            True
            >>> cell.key == Cell("PTC", Task("gin", "vpa"), content="64a17008").key
            False
        """
        return self.key_by(2)

    def key_by(self, rule: int) -> str:
        """Return the key of the cell with seeds by a rule: 1, the data's name; 2, their content.

        Results by rule 1 are refused. Benchmarks of the paper have their name in place of their
        content, and so one key.
        """
        if not self.content:
            raise GnnVpaError(f"{self}: the data are not known yet, take cells from identify")
        task = asdict(self.task)
        if not task["source"]:
            del task["source"]
        parts: dict[str, Any] = {
            "content": self.content,
            "task": task,
            "protocol": self.protocol and self.protocol.settings(),
            "folds": self.folds,
            "seed": self.seed,
        }
        if self.repeat:
            parts["repeat"] = self.repeat
        if self.division.name:
            parts["division"] = self.division.name
        if self.protocol is None and self.metric != "accuracy":
            parts["metric"] = self.metric  # of a training the protocol has it
        if rule > 1 and self.protocol is not None and archive_with(self.content) is None:
            parts["seeds"] = rule
        if self.selection is not None:
            del parts["protocol"]
            parts["selection"] = self.selection.described()
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]

    def candidates(self) -> list["Cell"]:
        """Return the cells that a setting is chosen from, in the order of the settings.

        Example:
            >>> Cell("MUTAG", Task("gin", "vpa")).candidates()
            []
        """
        if self.selection is None:
            return []
        return [
            replace(
                self,
                task=replace(self.task, options=setting.options),
                protocol=setting.protocol,
                selection=None,
            )
            for setting in self.selection.settings
        ]
