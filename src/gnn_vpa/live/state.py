"""What there is to see of a run at this moment, for a page or another program."""

import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..analysis.style import colour, dashes
from ..errors import GnnVpaError, UsageError
from ..escape import printable
from ..experiments import Estimate, Pace
from ..experiments.estimate import Kind, Paces
from ..experiments.forecast import expected, started
from ..experiments.journal_files import Entry, Plan, journals, plans
from ..experiments.store import FILE
from ..experiments.typical import typical_of_run
from ..training import METRICS
from .answering import Answering
from .finished import Done, Finished

_FRESH_S = 0.5  # so long a state is good for all that ask
_PICTURES = 12  # that are shown
_LINES = 8  # of finished cells in each
_LATEST = 8  # cells that were finished last
_DIVERGED = 100  # cells whose diverged folds are named


class Watched:
    """A run that is watched: one that goes on, has ended, or has not begun.

    Args:
        run: The run's folder, or the results file in it.

    Raises:
        UsageError: It is a file, and none of a run's results.

    Example:
        >>> state = Watched("no/such/run").state()
        >>> state["status"], state["done"]
        ('waiting', 0)
    """

    def __init__(self, run: str | Path) -> None:
        path = Path(run)
        if path.is_file() and path.name != FILE:
            raise UsageError(
                f"{path} is no run: name the folder that gnn-vpa run or reproduce writes to, or "
                f"{FILE} in it"
            )
        self.folder = path.parent if path.name == FILE else path
        self._finished = Finished(self.folder)
        self._answering = Answering(self.folder)
        self._paces: dict[str, Paces] = {}
        self._typical: tuple[tuple[str, Counter[Kind]], list[Pace]] | None = None
        self._guard = threading.Lock()
        self._latest: tuple[float, dict[str, Any]] | None = None

    def state(self) -> dict[str, Any]:
        """Return what there is to see: numbers, texts without control characters, lists of them."""
        with self._guard:
            now = time.monotonic()
            if self._latest is None or now - self._latest[0] > _FRESH_S:
                try:
                    found = self._look()
                except GnnVpaError as error:  # a file that is none of ours, or damaged
                    found = {"status": "error", "error": str(error), "done": 0, "total": None}
                self._latest = now, _clean({"folder": str(self.folder), "now": time.time()} | found)
            return self._latest[1]

    def _look(self) -> dict[str, Any]:
        entries = [entry for entry in journals(self.folder) if entry.is_alive]
        planned = plans(self.folder)
        done = self._finished.read()
        keys = {each.names["key"] for each in done}
        # What an interrupted run was to do counts until somebody goes on with it.
        in_force = [plan for plan in planned if plan.is_alive] or planned
        open_ = {key for plan in in_force for key in plan.cells if key not in keys}
        is_running = bool(entries) or any(plan.is_alive for plan in planned)
        status = "running" if is_running else "stopped" if open_ else "finished"
        if not is_running and not done and not open_:
            status = "waiting"
        workers = _at_work(entries, keys)
        left = self._left(in_force, keys, entries) if is_running else None
        return {
            "status": status,
            "done": len(done),
            "total": len(keys | open_) or None,
            "left": str(left) if left is not None else None,
            "processes": len(entries),
            "running": [_running(entry, at) for entry, at in workers],
            "diverged": _diverged(done, workers),
            "latest": [
                {"name": each.names["name"], "score": each.score, "metric": _title(each.names)}
                for each in done[: -_LATEST - 1 : -1]
            ],
            **self._pictures(done, workers),
            "answer": self._answering.latest(len(done), is_last=status == "finished"),
        }

    # How long it will take --------------------------------------------------------------------

    def _left(
        self,
        in_force: Sequence[Plan],
        finished: set[str],
        entries: Sequence[Entry],
    ) -> Estimate | None:
        """Expect that the rest goes on as the part of the plans went that is done."""
        if not in_force:
            return None
        cells = {key: cell for plan in in_force for key, cell in plan.cells.items()}
        ahead: Counter[Kind] = Counter()
        behind: Counter[Kind] = Counter()
        unfinished: dict[str, tuple[Kind, int]] = {}
        for key, cell in cells.items():
            if key in finished:
                behind[cell.kind] += cell.work
            else:
                ahead[cell.kind] += cell.work
                unfinished[key] = cell.kind, cell.work
        device = in_force[0].device
        if device not in self._paces:
            self._paces[device] = Paces(self.folder, device)
        work = ahead + behind
        if self._typical is None or self._typical[0] != (device, work):
            self._typical = (device, work), typical_of_run(self.folder, work, device)
        return expected(
            ahead,
            behind,
            time.time() - min(plan.began for plan in in_force),
            self._paces[device].seen(),
            at_work=started(entries, unfinished),
            typical=self._typical[1],
        )

    # Learning curves --------------------------------------------------------------------------

    def _pictures(
        self, done: Sequence[Done], workers: Sequence[tuple[Entry, Mapping[str, Any]]]
    ) -> dict[str, Any]:
        """Return pictures of curves: those that grow first, then those that were finished last."""
        pictures: dict[str, list[dict[str, Any]]] = {}
        epochs: dict[str, int] = {}
        for _, at in workers:
            for line in at["lines"]:
                pictures.setdefault(line["picture"], []).append(line | {"growing": True})
                epochs[line["picture"]] = max(epochs.get(line["picture"], 0), at["epochs"])
        shown: dict[str, list[Done]] = {}
        count: Counter[str] = Counter()
        for each in reversed(done):
            if each.is_trained:
                own = shown.setdefault(each.names["picture"], [])
                count[each.names["picture"]] += 1
                if len(own) < _LINES:
                    own.append(each)
        names = list(dict.fromkeys([*pictures, *shown]))
        chosen = [each for name in names[:_PICTURES] for each in shown.get(name, ())]
        curves = self._finished.curves(chosen)
        for each in chosen:
            line = {**each.names, **curves[each.names["key"]], "growing": False}
            line["diverged"] = [fold for fold, _ in each.diverged]
            pictures.setdefault(each.names["picture"], []).append(line)
        return {
            "pictures": [
                _picture(name, pictures[name], epochs.get(name, 0), count[name])
                for name in names[:_PICTURES]
            ],
            "pictures_left_out": max(0, len(names) - _PICTURES),
        }


def _at_work(entries: Iterable[Entry], finished: set[str]) -> list[tuple[Entry, Mapping[str, Any]]]:
    """Return what workers are at; what is recorded a journal may still tell for a second."""
    return [
        (entry, {**at, "lines": [line for line in at["lines"] if line["key"] not in finished]})
        for entry in entries
        for at in entry.workers
        if not finished.issuperset(at["cells"])
    ]


def _picture(
    name: str, lines: Sequence[dict[str, Any]], epochs: int, finished: int
) -> dict[str, Any]:
    metric = METRICS.get(lines[0]["metric"])
    repeated = len({line["aggr"] for line in lines}) < len(lines)
    ordered = sorted(lines, key=lambda line: (line["line"], line["key"]))
    left_out = finished - sum(not line["growing"] for line in lines)
    return {
        "name": name,
        "metric": metric.title if metric else lines[0]["metric"],
        "is_share": bool(metric and metric.is_share),
        "epochs": max([epochs, *(line["epoch"][-1] for line in lines if line["epoch"])]),
        "left_out": left_out,
        "lines": [
            {
                "name": line["line"],
                # Where one aggregation has several lines, their colours say nothing of it.
                "colour": None if repeated else colour(line["aggr"]),
                "dashes": "none" if repeated else dashes(line["aggr"]),
                **{part: line[part] for part in ("epoch", "loss", "valid", "test", "growing")},
                "diverged": line["diverged"],
            }
            for line in ordered
        ],
    }


def _running(entry: Entry, at: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "worker": at["worker"],
        "device": at["device"],
        "group": at["group"],
        "cells": len(at["cells"]),
        "epoch": at["epoch"],
        "epochs": at["epochs"],
        "since": at["since"],
        "silent": max(0.0, time.time() - entry.updated),
    }


def _diverged(
    done: Sequence[Done], workers: Iterable[tuple[Entry, Mapping[str, Any]]]
) -> list[dict[str, Any]]:
    """Return the cells with folds that have diverged: those in training, then the last ones."""
    found = [
        {"name": line["name"], "folds": line["diverged"], "growing": True}
        for _, at in workers
        for line in at["lines"]
        if line["diverged"]
    ]
    found += [
        {
            "name": each.names["name"],
            "folds": [fold for fold, _ in each.diverged],
            "growing": False,
        }
        for each in reversed(done)
        if each.diverged
    ]
    return found[:_DIVERGED]


def _title(names: Mapping[str, str]) -> str:
    metric = METRICS.get(names["metric"])
    return metric.title if metric else names["metric"]


def _clean(value: Any) -> Any:
    """Take control characters out of all texts."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {key: _clean(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(each) for each in value]
    return value
