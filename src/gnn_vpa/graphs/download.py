"""Archives from the TU collection, over a network that may fail."""

import errno
import http.client
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from ..errors import GnnVpaError, UsageError
from ..paper import nearest_names, resolve_name
from ._contents import CONTENTS
from ._zip import explained, open_zip
from .locate import download_dir
from .tu import read_tu

TU_COLLECTION = "https://www.chrsmrrs.com/graphkerneldatasets"
_TRIES = 4
_BLOCK = 1 << 18
# COLLAB, the largest that we know, has 48 MiB deflated, and 60 MiB if that is done in haste.
_LARGEST_KNOWN = 128 << 20
_LARGEST = 1 << 30

# (bytes so far, bytes in all or None where the server does not say)
Progress = Callable[[int, int | None], None]


def download(
    name: str,
    folder: str | os.PathLike[str] | None = None,
    *,
    base_url: str = TU_COLLECTION,
    progress: Progress | None = None,
    pause: float = 1.0,
) -> Path:
    """Get an archive from the TU collection; one that is there already is kept.

    What was received stays in `<NAME>.zip.part`, and the next try, in this call or a later one,
    goes on from there. Only a whole and sound archive gets the name `<NAME>.zip`, and one of the
    paper's data sets only if it holds the very graphs that the paper's numbers are about. What
    turns out to be anything else is removed.

    Args:
        name: A name as in the paper, or any of the collection's.
        folder: Where to put it; without it, `download_dir()`.
        base_url: Where the collection is.
        progress: Called with the bytes so far and in all.
        pause: Seconds before the second try, doubled with each further one.

    Raises:
        UsageError: The collection has no such data set, or `base_url` is no address.
        GnnVpaError: No network, no space, or not an archive of this data set.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Path(folder, "MUTAG.zip").touch()
        ...     download("mutag", folder).name
        'MUTAG.zip'
    """
    archive = _archive_name(name)
    target = Path(folder or download_dir()) / f"{archive}.zip"
    if target.exists():
        return target
    part = target.with_suffix(".zip.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _fetch(f"{base_url}/{archive}.zip", part, archive, progress or _silent, pause)
        _check(part, archive)
        part.replace(target)
    except OSError as error:
        reason = "the disk is full" if error.errno == errno.ENOSPC else str(error)
        raise GnnVpaError(
            f"{archive} cannot be written to {target.parent}: {reason}; "
            "what has arrived is kept, make room or choose another folder, and try again"
        ) from error
    return target


def _archive_name(name: str) -> str:
    try:
        return resolve_name(name)
    except UsageError:
        if re.fullmatch(r"[\w.-]*\w", name):  # the collection has many more than the paper uses
            return name
        raise


def _fetch(url: str, part: Path, archive: str, progress: Progress, pause: float) -> None:
    """Receive a file into `part`, going on where an earlier try ended."""
    limit = _LARGEST_KNOWN if archive in CONTENTS else _LARGEST
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(pause * 2 ** (attempt - 1))
        try:
            _receive(url, part, limit, progress)
            return
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == http.HTTPStatus.NOT_FOUND:
                raise UsageError(
                    f"the TU collection has no {archive}: {nearest_names(archive)}"
                ) from error
            if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                part.unlink(missing_ok=True)  # the part is no beginning of the file: start again
            failure: Exception = error
        except (
            urllib.error.URLError,
            http.client.HTTPException,
            ConnectionError,
            TimeoutError,
        ) as e:
            failure = e
    reason = getattr(failure, "reason", None) or failure
    raise GnnVpaError(
        f"{url} cannot be fetched after {_TRIES} tries ({reason}): check the network and try "
        f"again; what has arrived is kept"
    ) from failure


def _receive(url: str, part: Path, limit: int, progress: Progress) -> None:
    done = part.stat().st_size if part.exists() else 0
    try:
        request = urllib.request.Request(url, headers={"Range": f"bytes={done}-"} if done else {})
    except ValueError as error:
        raise UsageError(f"{url} is no address: give one that begins with https://") from error
    with urllib.request.urlopen(request, timeout=30) as response:
        if response.status != http.HTTPStatus.PARTIAL_CONTENT:
            done = 0  # the server sends the file from its beginning
        length = response.headers.get("Content-Length") or ""
        total = done + int(length) if re.fullmatch(r"[0-9]{1,18}", length) else None
        with part.open("ab" if done else "wb") as file:
            while done <= limit and (total or 0) <= limit and (block := response.read(_BLOCK)):
                file.write(block)
                done += len(block)
                progress(done, total)
    if max(done, total or 0) > limit:
        part.unlink(missing_ok=True)
        raise GnnVpaError(
            f"{url} sends more than {limit:,} bytes, too many for this data set: what arrived was "
            "removed, check the address"
        )
    if total is not None and done < total:
        raise http.client.IncompleteRead(b"", total - done)


def _check(part: Path, archive: str) -> None:
    """Refuse, and remove, what is not a sound archive of this data set."""
    try:
        fault = _fault(part, archive)
    except GnnVpaError as error:
        fault = f"cannot be used ({error})"
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    if fault is not None:
        part.unlink(missing_ok=True)
        raise GnnVpaError(f"what arrived for {archive} {fault}: it was removed, try again later")


def _fault(part: Path, archive: str) -> str | None:
    with open_zip(part) as file, explained(f"{part} is not a whole zip archive"):
        damaged = file.testzip()
        names = [PurePosixPath(name.replace("\\", "/")) for name in file.namelist()]
    if damaged is not None:
        return f"is damaged in {damaged}"
    if any(name.is_absolute() or ".." in name.parts for name in names):
        return "names a path outside of its folder"
    if not any(name.name == f"{archive}_A.txt" for name in names):
        return f"does not hold {archive}_A.txt"
    expected = CONTENTS.get(archive)
    if expected is not None and read_tu(part).checksum() != expected:
        return "has other graphs than the data set of the paper"
    return None


def _silent(_done: int, _total: int | None) -> None:
    pass
