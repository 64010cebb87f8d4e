"""The state of unfinished trainings in a file, so that a killed run goes on where it was."""

import hashlib
import logging
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

from ..graphs import GraphSet
from .group import Group
from .task import Lane, Outcome, Protocol, Task

_log = logging.getLogger("gnn_vpa")
_PAUSE = 20.0  # seconds between two writes


class Checkpoint:
    """A file of one ``fit``: the outcomes so far, and the state of the group in progress."""

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
        self._written = time.monotonic()
        # Only the very same trainings may go on from it.
        parts = [graphs.name, graphs.checksum(), *tasks, protocol, settings]
        parts += [(lane.fold, lane.seed, *(ids.tolist() for ids in lane.split)) for lane in lanes]
        self._purpose = hashlib.blake2b(repr(parts).encode()).hexdigest()
        content = self._read()
        self.outcomes: list[Outcome] = [Outcome(**record) for record in content["outcomes"]]
        self._group: dict[str, Any] | None = content["group"]

    def restore(self, group: Group) -> None:
        """Take the group back to where it was, if this file knows it."""
        state, self._group = self._group, None
        if state is None or state["keys"] != repr(group.keys):
            return
        with torch.no_grad():
            for own, kept in ((group.params, state["params"]), (group.buffers, state["buffers"])):
                for name, tensor in own.items():
                    tensor.copy_(kept[name])
        group.optimizer.load_state_dict(state["optimizer"])
        group.curves[:] = state["curves"].numpy()
        group.epoch = state["epoch"]

    def keep(self, group: Group) -> None:
        """Write the group's state, unless that was a moment ago."""
        if self._path is not None and time.monotonic() - self._written >= _PAUSE:
            group.sync()
            self._write(
                {
                    "keys": repr(group.keys),
                    "params": group.params,
                    "buffers": group.buffers,
                    "optimizer": group.optimizer.state_dict(),
                    "curves": torch.from_numpy(group.curves),
                    "epoch": group.epoch,
                }
            )

    def keep_outcomes(self) -> None:
        """Write the outcomes of the groups that are done."""
        self._write(None)

    def _write(self, group: dict[str, Any] | None) -> None:
        if self._path is None:
            return
        part = self._path.with_suffix(f".{os.getpid()}.part")
        records = [
            {field.name: _plain(getattr(outcome, field.name)) for field in fields(Outcome)}
            for outcome in self.outcomes
        ]
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            torch.save({"purpose": self._purpose, "outcomes": records, "group": group}, part)
            part.replace(self._path)
        except (OSError, RuntimeError) as error:
            # A full disk, as torch reports it: the training itself needs no file.
            _log.warning("%s cannot be written (%s): training goes on", self._path, error)
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)
        self._written = time.monotonic()

    def _read(self) -> dict[str, Any]:
        nothing: dict[str, Any] = {"outcomes": [], "group": None}
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
        for record in content["outcomes"]:
            record |= {name: v.numpy() for name, v in record.items() if isinstance(v, torch.Tensor)}
        return content


def _plain(value: Any) -> Any:
    """Return what a file that holds no code can hold: numbers and tensors."""
    return torch.from_numpy(value) if hasattr(value, "dtype") else value
