"""The state of unfinished trainings in a file, so that a killed run goes on where it was."""

import hashlib
import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

from ..graphs import GraphSet
from .task import Lane, Outcome, Protocol, Task, Training
from .workers import Job, Report

_log = logging.getLogger("gnn_vpa")
_FORMAT = 2  # of the file
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
        protocol: Protocol,
        lanes: Sequence[Lane],
        settings: tuple[object, ...],
    ) -> None:
        self._path = path
        self.pause = float("inf") if path is None else _PAUSE
        # Only the very same trainings may go on from it.
        parts = [_FORMAT, graphs.name, graphs.checksum(), *tasks, protocol, settings]
        parts += [(lane.fold, lane.seed, *(ids.tolist() for ids in lane.split)) for lane in lanes]
        self._purpose = hashlib.blake2b(repr(parts).encode()).hexdigest()
        content = self._read()
        self.outcomes = {place: Outcome(**rest) for place, rest in content["outcomes"].items()}
        self._states: dict[tuple[int, int], dict[str, Any]] = content["states"]

    def job(self, place: int, trainings: Sequence[Training]) -> Job:
        """Return what is left to do of a group whose first training has this place."""
        return Job(place, trainings, self._states.get((place, len(trainings))), self.pause)

    def keep(self, report: Report) -> None:
        """Write what a report says, if that is more than how far its group is."""
        group = report.places.start, len(report.places)
        if report.state is not None:
            self._states[group] = report.state
        elif report.outcomes is not None:
            self._states.pop(group, None)
            self.outcomes |= dict(zip(report.places, report.outcomes, strict=True))
        else:
            return
        self._write()

    def _write(self) -> None:
        if self._path is None:
            return
        part = self._path.with_suffix(f".{os.getpid()}.part")
        outcomes = {
            place: {field.name: _plain(getattr(outcome, field.name)) for field in fields(Outcome)}
            for place, outcome in self.outcomes.items()
        }
        content = {"purpose": self._purpose, "outcomes": outcomes, "states": self._states}
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            torch.save(content, part)
            part.replace(self._path)
        except (OSError, RuntimeError) as error:
            # A full disk, as torch reports it: the training itself needs no file.
            _log.warning("%s cannot be written (%s): training goes on", self._path, error)
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)

    def _read(self) -> dict[str, Any]:
        nothing: dict[str, Any] = {"outcomes": {}, "states": {}}
        if self._path is None or not self._path.exists():
            return nothing
        try:
            content: dict[str, Any] = torch.load(self._path, weights_only=True)
            known = content["purpose"] == self._purpose
        except Exception as error:  # whatever is wrong with the file, training can start anew
            _log.warning("%s cannot be read (%s): starting anew", self._path, error)
            return nothing
        if not known:
            _log.warning("%s belongs to another training: starting anew", self._path)
            return nothing
        for record in content["outcomes"].values():
            record |= {name: v.numpy() for name, v in record.items() if isinstance(v, torch.Tensor)}
        return content


def _plain(value: Any) -> Any:
    """Return what a file that holds no code can hold: numbers and tensors."""
    return torch.from_numpy(value) if hasattr(value, "dtype") else value
