"""Own models whose source was edited: each version is a method of its own, and says so."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

_SHORTEST = 4  # digits of a source's hash that are shown


def told_apart(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame in which an own model of several sources has a name for each of them.

    The name is followed by the first digits of the hash in the column `source`. A model of one
    source keeps its name; so does everything in frames without such a column.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"model": ["nets:a", "nets:a", "GIN"],
        ...                       "source": ["3f2a77", "9c1b00", ""]})
        >>> told_apart(frame)["model"].tolist()
        ['nets:a@3f2a', 'nets:a@9c1b', 'GIN']
    """
    if "source" not in frame.columns:
        return frame
    sources = frame["source"].fillna("").astype(str)
    distinct = set(zip(frame["model"], sources, strict=True))
    versions: dict[str, set[str]] = {}
    for model, source in distinct:
        versions.setdefault(model, set()).add(source)
    names = {
        (model, source): f"{model}@{source[: _digits(versions[model])]}"
        for model, source in distinct
        if len(versions[model]) > 1
    }
    if not names:
        return frame
    called = [names.get(key, key[0]) for key in zip(frame["model"], sources, strict=True)]
    return frame.assign(model=called)


def _digits(hashes: Collection[str]) -> int:
    """As few digits as tell the hashes apart."""
    longest = max(map(len, hashes))
    return next(
        (n for n in range(_SHORTEST, longest) if len({h[:n] for h in hashes}) == len(hashes)),
        longest,
    )
