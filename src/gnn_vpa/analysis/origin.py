"""What a run was made with, in few words and without the names of machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

_PROTOCOL = ("folds", "seed", "epochs", "batch size", "learning rate", "precision")


def origin(provenance: Mapping[str, Any], folds: pd.DataFrame) -> dict[str, Any]:
    """Return command, commit, date, device, versions, protocol, seconds and data of a run.

    A value that differs between its sessions is a list.

    Args:
        provenance: as `gnn_vpa.experiments.read_provenance` returns it.
        folds: its trainings.

    Example:
        >>> import pandas as pd
        >>> session = {"commit": "abc", "started": "2024-03-01T10:00:00+00:00",
        ...            "finished": "2024-03-01T10:10:00+00:00", "device": "cuda (H200)"}
        >>> made = origin({"sessions": {"1": session}}, pd.DataFrame({"seconds": [2.0, 3.0]}))
        >>> made["commit"], made["seconds"]
        ('abc', {'from start to end': 600, 'trainings': 5})
    """
    every = list(provenance.get("sessions", {}).values())
    # Processes that assist have sessions of their own, beside that of the one they work for.
    sessions = [session for session in every if session.get("configuration")] or every
    configuration = provenance.get("configuration", {})
    return {
        "command": _common(_command(session.get("configuration", {})) for session in sessions),
        "commit": _common(session.get("commit") for session in sessions),
        "date": _common(session["started"][:10] for session in sessions),
        "device": _common(session.get("device") for session in sessions),
        "versions": _common(session.get("versions") for session in sessions),
        "protocol": {
            name: _common(configuration[name]) for name in _PROTOCOL if name in configuration
        },
        "seconds": _seconds(sessions, folds),
        "data (SHA-256)": {
            name: checksum
            for name, checksum in provenance.get("data (SHA-256)", {}).items()
            if "dataset" not in folds or name in set(folds["dataset"])
        },
    }


def _common(values: Iterable[Any]) -> Any:
    """Return the one value, or a list of those that differ; None where there is none."""
    distinct: list[Any] = []
    for value in values:
        if value not in distinct:
            distinct.append(value)
    return distinct[0] if len(distinct) == 1 else distinct or None


def _command(configuration: Mapping[str, Any]) -> str:
    """Return what was typed, as far as the results depend on it."""
    words = ["gnn-vpa", *(str(configuration[n]) for n in ("command", "what") if n in configuration)]
    if only := configuration.get("only"):
        words += ["--only", ",".join(only)]
    if configuration.get("variant", "released") != "released":
        words += ["--variant", str(configuration["variant"])]
    if precision := configuration.get("precision"):
        words += ["--precision", str(precision)]
    return " ".join([*words, *configuration.get("datasets", [])])


def _seconds(sessions: Iterable[Mapping[str, Any]], folds: pd.DataFrame) -> dict[str, int]:
    """Return how long it took; from start to end only where no session was ended from outside."""
    seconds = {}
    if all(session.get("finished") for session in sessions):
        times = [[datetime.fromisoformat(s[n]) for n in ("started", "finished")] for s in sessions]
        total = sum((end - begin).total_seconds() for begin, end in times)
        seconds["from start to end"] = round(total)
    if "seconds" in folds:
        # The settings that were chosen from are in no table, and took most of the time.
        is_chosen = "chosen" in folds and bool(folds["chosen"].notna().any())
        what = "trainings of chosen settings" if is_chosen else "trainings"
        seconds[what] = round(float(folds["seconds"].sum()))
    return seconds
