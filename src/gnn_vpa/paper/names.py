"""What a data set is called: in the paper, and as an archive of the TU collection."""

import difflib
from collections.abc import Iterable

from ..errors import UsageError
from ._rows import rows


def archive_names() -> tuple[str, ...]:
    """Return the archives' names of the benchmark data sets.

    Example:
        >>> archive_names()[:2]
        ('IMDB-BINARY', 'IMDB-MULTI')
    """
    return tuple(row["archive"] for row in rows("datasets"))


def paper_name(archive: str) -> str | None:
    """Return what the paper calls an archive, or None where it does not use it.

    Example:
        >>> paper_name("PTC_FM"), paper_name("PTC_MR")
        ('PTC', None)
    """
    return next(
        (row["paper"] or None for row in rows("datasets") if row["archive"] == archive), None
    )


def archive_content(archive: str) -> str | None:
    """Return the SHA-256 of what an archive holds once it is read, or None for one's own.

    It is what `GraphSet.checksum` gives: the same for the same graphs, however they are packed.

    Example:
        >>> archive_content("MUTAG")[:8], archive_content("MINE")
        ('5b996644', None)
    """
    return next((row["content"] for row in rows("datasets") if row["archive"] == archive), None)


def archive_with(content: str) -> str | None:
    """Return the benchmark archive that has this content, or None where it is another's.

    Example:
        >>> archive_with(archive_content("PTC_FM"))
        'PTC_FM'
    """
    return next((row["archive"] for row in rows("datasets") if row["content"] == content), None)


def resolve_name(name: str, also: Iterable[str] = ()) -> str:
    """Return the archive's name for a name as in the paper or as in the archives.

    Upper and lower case, `-` and `_` are not told apart.

    Args:
        name: The name as somebody typed it.
        also: Archives to know besides those of the paper and of the fair comparison.

    Raises:
        UsageError: There is no such data set; the message has the nearest names.

    Example:
        >>> resolve_name("imdb-b"), resolve_name("PTC"), resolve_name("reddit_binary")
        ('IMDB-BINARY', 'PTC_FM', 'REDDIT-BINARY')
    """
    known = _known(also)
    if (key := _key(name)) in known:
        return known[key]
    near = nearest_names(name, also)
    raise UsageError(f"no data set is called {name!r}: {near}")


def nearest_names(name: str, also: Iterable[str] = ()) -> str:
    """Return advice: the known names nearest to one that is not known.

    Example:
        >>> nearest_names("MUTAGG")
        'did you mean MUTAG?'
    """
    known = _known(also)
    near = dict.fromkeys(known[key] for key in difflib.get_close_matches(_key(name), known))
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"the known ones are {', '.join(sorted(set(known.values())))}"


def _key(name: str) -> str:
    return name.casefold().replace("_", "-")


def _known(also: Iterable[str]) -> dict[str, str]:
    fair = [row["dataset"] for row in rows("fair_splits")]
    known = {_key(name): name for name in (*also, *fair)}
    for row in rows("datasets"):
        known |= {
            _key(row[column]): row["archive"] for column in ("archive", "paper") if row[column]
        }
    return known
