"""What a run was made with, in few words and without the names of machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

_PROTOCOL = ("folds", "seed", "epochs", "batch size", "learning rate")


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
        "seconds": {
            "from start to end": sum(map(_seconds, sessions)),
            "trainings": round(float(folds["seconds"].sum())) if "seconds" in folds else None,
        },
        "data (SHA-256)": dict(provenance.get("data (SHA-256)", {})),
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
    return " ".join([*words, *configuration.get("datasets", [])])


def _seconds(session: Mapping[str, Any]) -> int:
    """Return how long a session took; 0 for one that was ended from outside."""
    if "finished" not in session:
        return 0
    begin, end = (datetime.fromisoformat(session[name]) for name in ("started", "finished"))
    return round((end - begin).total_seconds())
