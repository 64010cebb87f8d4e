"""The state of unfinished trainings in a file, so that an ended run goes on where it was.

The file begins with the SHA-256 of all that follows, a line; then a line that says in JSON what it
is: its format, the versions of gnn-vpa and torch, and a hash of the trainings it belongs to; then
what ``torch.save`` writes. A checkpoint of another version of either starts the trainings anew: the
same code alone is sure to go on to the same numbers.
"""

import hashlib
import io
import json
import logging
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch

import gnn_vpa

from ..errors import GnnVpaError
from ..files import write_whole
from ..graphs import GraphSet
from .task import Lane, Outcome, Predictions, Protocol, Task, Training
from .workers import Job, Report

_log = logging.getLogger("gnn_vpa")
_FORMAT = 5  # of the file
_PAUSE = 20.0  # seconds between two states of a group


class Checkpoint:
    """A file of one ``fit``: the outcomes so far, and the states of the groups in progress.

    Attributes:
        outcomes: What trainings came to, by their place among all.
        pause: Seconds between two states of a group that are worth writing.
    """

    def __init__(
        self,
        path: Path | None,
        graphs: GraphSet,
        tasks: Sequence[Task],
        protocols: Sequence[Protocol],
        lanes: Sequence[Lane],
        settings: tuple[object, ...],
    ) -> None:
        self._path = path
        self.pause = float("inf") if path is None else _PAUSE
        # Only the very same trainings may go on from it.
        parts = [graphs.seed_source, graphs.checksum(), settings]
        parts += [(t, t.source, p) for t, p in zip(tasks, protocols, strict=True)]
        parts += [(lane.fold, lane.seed, *(ids.tolist() for ids in lane.split)) for lane in lanes]
        self._header = {
            "format": _FORMAT,
            "gnn-vpa": gnn_vpa.__version__,
            "torch": str(torch.__version__),
            "trainings": hashlib.blake2b(repr(parts).encode()).hexdigest(),
        }
        content = self._read()
        self.outcomes = {place: _outcome(rest) for place, rest in content["outcomes"].items()}
        self._states: dict[tuple[int, int], dict[str, Any]] = content["states"]

    def job(self, place: int, trainings: Sequence[Training]) -> Job:
        """Return what is left to do of a group whose first training has this place."""
        return Job(place, trainings, self._states.get((place, len(trainings))), self.pause)

    def keep(self, *reports: Report) -> None:
        """Write what reports say, if that is more than how far their groups are."""
        news = False
        for report in reports:
            group = report.places.start, len(report.places)
            if report.outcomes is not None:
                self._states.pop(group, None)
                self.outcomes |= dict(zip(report.places, report.outcomes, strict=True))
            elif report.state is not None:
                self._states[group] = report.state
            news = news or report.outcomes is not None or report.state is not None
        if news and self._path is not None:
            self._write(self._path)

    def _write(self, path: Path) -> None:
        outcomes = {
            place: {each.name: _plain(getattr(outcome, each.name)) for each in fields(Outcome)}
            for place, outcome in self.outcomes.items()
        }
        body = io.BytesIO()
        torch.save({"outcomes": outcomes, "states": self._states}, body)
        try:
            write_whole(path, _sealed(self._header, body.getvalue()))
        except OSError as error:  # a full disk: the training itself needs no file
            _log.warning("%s cannot be written (%s): training goes on", path, error)

    def _read(self) -> dict[str, Any]:
        nothing: dict[str, Any] = {"outcomes": {}, "states": {}}
        if self._path is None or not self._path.exists():
            return nothing
        try:
            header, body = _opened(self._path.read_bytes())
            if header != self._header:
                raise GnnVpaError(_difference(header, self._header))
            content: dict[str, Any] = torch.load(io.BytesIO(body), weights_only=True)
        except Exception as error:  # whatever is wrong with the file, training can start anew
            _log.warning("%s cannot be used (%s): starting anew", self._path, error)
            return nothing
        return content


def _sealed(header: dict[str, Any], body: bytes) -> bytes:
    """Return a file's content: checksum, header and body."""
    rest = json.dumps(header).encode() + b"\n" + body
    return hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest


def _opened(content: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the header and the body of a file's content, if it is what was written."""
    checksum, _, rest = content.partition(b"\n")
    if checksum != hashlib.sha256(rest).hexdigest().encode():
        raise GnnVpaError("it is damaged, or no checkpoint of this format")
    header, _, body = rest.partition(b"\n")
    return json.loads(header), body


def _difference(found: dict[str, Any], expected: dict[str, Any]) -> str:
    """Say why a checkpoint is not the one that is looked for."""
    for name in ("format", "gnn-vpa", "torch"):
        if found.get(name) != expected[name]:
            return f"it was written with {name} {found.get(name)}, this is {expected[name]}"
    return "it belongs to another training"


def _plain(value: Any) -> Any:
    """Return what a file that holds no code can hold: numbers, tensors, and tuples of them."""
    if isinstance(value, Predictions):
        return tuple(value)
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value


def _outcome(plain: dict[str, Any]) -> Outcome:
    """Return the outcome that was written."""
    said = plain["predictions"]
    curves = {name: value.numpy() for name, value in plain.items() if name.startswith("curve_")}
    return Outcome(**plain | curves | {"predictions": said and Predictions(*said)})
