"""The results of the depth experiment in a folder: two CSV files that grow job by job."""

import csv
import io
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import GnnVpaError
from ...escape import csv_cell, csv_text
from ...files import write_whole
from ..locks import try_lock
from ..provenance import commit, device_name, versions
from .job import Job, majority
from .train import Outcome
from .variant import Training, Variant

if TYPE_CHECKING:
    import pandas as pd

RESULTS = "depth.csv"
SIGNALS = "signal.csv"
_POLL_S = 0.05
_KEY = ["dataset", "features", "fold", "depth", "aggr", "weights", "residual"]
_TRAINING = ["epochs", "width", "batch_size", "learning_rate", "dropout", "seed"]
_MEASURED = [
    "start_variance", "start_gradient_ratio", "first_loss", "last_loss", "diverged_epoch",
    "best_epoch", "valid_accuracy", "test_accuracy", "majority", "seconds",
]  # fmt: skip


class Records:
    """What a folder holds of the experiment, and a way to add to it.

    Args:
        folder: The folder; it is made with the first result.

    Example:
        >>> Records("runs/no-such-folder").results().empty
        True
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def missing(self, job: Job) -> Job | None:
        """Return the job without what is there already; None if all of it is.

        Networks that train side by side do not know of each other, so a part gives the same.
        """
        there = self._keys()
        left = tuple(v for v in job.variants if _key(job, v) not in there)
        return replace(job, variants=left) if left else None

    def add(self, job: Job, outcomes: Sequence[Outcome], seconds: float) -> None:
        """Add what a job came to; ``seconds`` is the time of all its networks together."""
        keys = [_row(job, outcome.variant) for outcome in outcomes]
        signals = (
            [*key.values(), layer, value]
            for key, outcome in zip(keys, outcomes, strict=True)
            for layer, value in enumerate(outcome.signal, start=1)
        )
        chance = majority(job)
        results = (
            [*key.values(), *_measured(outcome), chance, round(seconds, 2)]
            for key, outcome in zip(keys, outcomes, strict=True)
        )
        columns = [*_KEY, *_TRAINING]
        with self._alone():
            _add(self.folder / SIGNALS, [*columns, "layer"], ["variance"], signals)
            # Second, because a network counts as done if it stands here.
            _add(self.folder / RESULTS, columns, _MEASURED, results)

    def note(
        self, device: str, configuration: dict[str, Any], data: dict[str, str] | None = None
    ) -> None:
        """Write down what the results are made with; refuse results of other data of that name.

        Args:
            device: Where networks are trained.
            configuration: What was asked for.
            data: The content of each data set, its SHA-256.
        """
        path = self.folder / "provenance.json"
        known = json.loads(path.read_text()).get("data", {}) if path.exists() else {}
        there = set(self.results()["dataset"])
        for name, content in (data or {}).items():
            if name in there and known.get(name) != content:
                raise GnnVpaError(
                    f"{self.folder} has results of {name} that other data were used for, or nobody "
                    "knows which: choose another folder with --out"
                )
        made = {
            "data": known | (data or {}),
            "commit": commit(),
            "device": device_name(device),
            "versions": versions(),
            "configuration": configuration,
        }
        write_whole(self.folder / "provenance.json", json.dumps(made, indent=2) + "\n")

    def results(self, training: Training | None = None) -> "pd.DataFrame":
        """Return a row for each network, of all or of those that were trained in one way."""
        return _read(self.folder / RESULTS, _MEASURED, training)

    def signals(self, training: Training | None = None) -> "pd.DataFrame":
        """Return a row for each layer of each network, at the start of its training."""
        return _read(self.folder / SIGNALS, ["layer", "variance"], training)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Wait until no other process adds to the folder."""
        while True:
            with try_lock(self.folder / "depth.lock") as mine:
                if mine:
                    yield
                    return
            time.sleep(_POLL_S)

    def _keys(self) -> set[tuple[str, ...]]:
        path = self.folder / RESULTS
        if not path.exists():
            return set()
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        try:
            return {tuple(row[name] for name in (*_KEY, *_TRAINING)) for row in rows}
        except KeyError as error:
            raise GnnVpaError(
                f"{path} is not of this experiment: it has no column {error}. Use another --out."
            ) from error


def _row(job: Job, variant: Variant) -> dict[str, Any]:
    training = asdict(job.training)
    return {
        "dataset": csv_cell(job.dataset),
        "features": job.features,
        "fold": job.fold,
        "depth": job.depth,
        "aggr": variant.aggr,
        "weights": variant.weights,
        "residual": variant.residual,
        **{name: training[name] for name in _TRAINING},
    }


def _key(job: Job, variant: Variant) -> tuple[str, ...]:
    return tuple(str(value) for value in _row(job, variant).values())


def _measured(outcome: Outcome) -> list[Any]:
    trained = outcome.trained
    ended = trained.diverged_epoch
    loss = trained.curve_train_loss[: None if ended is None else ended + 1].tolist()
    start = [outcome.signal[-1], outcome.gradient, loss[0], loss[-1]]
    if ended is not None:
        return [*start, ended, "", "", ""]
    return [*start, "", trained.best_epoch, trained.val_score, trained.test_score]


def _add(
    path: Path, key: Sequence[str], measured: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
    """Write a file anew with more rows; one with the same key as another takes its place.

    A process that ended between two files has written to the first alone, and comes again.
    """
    known: dict[tuple[str, ...], Sequence[str]] = {}
    if path.exists():
        with path.open(newline="") as file:
            known = {tuple(row[: len(key)]): row for row in list(csv.reader(file))[1:]}
    for row in rows:
        texts = [str(_text(value)) for value in row]
        known[tuple(texts[: len(key)])] = texts
    content = io.StringIO(newline="")
    csv.writer(content).writerows([[*key, *measured], *known.values()])
    write_whole(path, content.getvalue())


def _text(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) and value != round(value, 6) else value


def _read(path: Path, measured: Sequence[str], training: Training | None) -> "pd.DataFrame":
    import pandas as pd

    if not path.exists():
        return pd.DataFrame(columns=[*_KEY, *_TRAINING, *measured])
    frame = pd.read_csv(path, converters={"dataset": csv_text})
    for name, value in ({} if training is None else asdict(training)).items():
        frame = frame[frame[name] == value]
    return frame
