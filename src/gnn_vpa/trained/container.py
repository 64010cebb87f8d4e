"""A folder of named files, replaced as a whole, and read as it was written or not at all.

`config.json` holds the SHA-256 of every other file, and of itself (with zeros in that place).
"""

import json
import os
import re
import secrets
import shutil
from collections.abc import Collection, Container, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..errors import GnnVpaError, UsageError
from ..files import write_whole

CONFIG = "config.json"
_ZEROS = "0" * 64
_SUM = re.compile(rb'"checksum": "([0-9a-f]{64})"')


def check_place(path: Path, names: Container[str]) -> None:
    """Refuse a place for a model where something else is.

    Args:
        path: The folder that is to be written.
        names: Files that a model in that place may have; others are not ours to replace.

    Raises:
        UsageError: There is something else.

    Example:
        >>> check_place(Path("new"), ())
    """
    if not path.name or path.name == "..":  # it would be put in the place of a folder in use
        raise UsageError(f"{path} has no name of its own: name a new folder, such as mymodel")
    if path.suffix == ".zip":
        raise UsageError(
            f"{path}: models are saved as folders: leave .zip away, and zip the folder yourself"
        )
    target = Path(os.path.realpath(path))
    if not target.exists():
        return
    if not target.is_dir():
        raise UsageError(f"{path} is a file: name a folder")
    there = sorted(entry.name for entry in target.iterdir())
    if there and CONFIG not in there:
        raise UsageError(f"{path} is a folder with other things in it: name a new one")
    if others := [name for name in there if name != CONFIG and name not in names]:
        raise UsageError(
            f"{path} holds a model and other things ({others[0]}): name another folder"
        )


def write(path: Path, files: Mapping[str, bytes], config: Mapping[str, Any]) -> None:
    """Write a new folder beside, and let it take the place of an old one.

    Args:
        path: The folder, which may be one that was written here before.
        files: Contents by name.
        config: What `config.json` says besides the sums.

    Raises:
        UsageError: There is something else in that place.
        OSError: It cannot be written; what was there before is still there.
    """
    check_place(path, files)
    sums = {name: sha256(content).hexdigest() for name, content in files.items()}
    unsigned = json.dumps(
        {**config, "files": sums, "checksum": _ZEROS}, indent=2, allow_nan=False, ensure_ascii=False
    )
    unsigned += "\n"
    checksum = f'"checksum": "{sha256(unsigned.encode()).hexdigest()}"'
    signed = unsigned.replace(f'"checksum": "{_ZEROS}"', checksum).encode()
    target = Path(os.path.realpath(path))
    number = secrets.token_hex(4)
    part, old = (target.with_name(f"{target.name}.{number}.{end}") for end in ("part", "old"))
    try:
        for name, content in {**files, CONFIG: signed}.items():
            write_whole(part / name, content)
        if target.exists():
            check_place(path, files)  # again: what came meanwhile is not lost
            target.rename(old)
        try:
            part.rename(target)
        except OSError:
            if old.exists():
                old.rename(target)
            raise
    finally:
        for folder in (part, old):
            shutil.rmtree(folder, ignore_errors=True)


def read(
    path: Path, supported: int, names: Collection[str]
) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Read files and their configuration.

    Args:
        path: A folder that `write` wrote.
        supported: The newest format that is understood.
        names: The files that it has beside the configuration; none of another name is looked at.

    Raises:
        UsageError: There is no such folder.
        GnnVpaError: Something is missing, damaged, or of a newer format.
    """
    if path.exists() and not path.is_dir():
        raise UsageError(
            f"{path} is a file, and a model is a folder: unpack it into one, and give that folder"
        )
    if not (path / CONFIG).is_file():
        lack = f"has no {CONFIG}" if path.is_dir() else "does not exist"
        raise UsageError(f"{path} {lack}: give the folder of a saved model")
    config = _config(path)
    if not isinstance(number := config.get("format"), int) or not 0 < number <= supported:
        raise GnnVpaError(
            f"{path} is of format {str(number)[:20]}, and this version of gnn-vpa reads formats up "
            f"to {supported}: use a newer gnn-vpa"
        )
    if {*config["files"]} != {*names}:
        raise GnnVpaError(
            f"{path}: {CONFIG} names other files than a model has ({', '.join(names)}): save or "
            "copy the model again"
        )
    files = {}
    for name in names:
        if not (path / name).is_file():
            raise GnnVpaError(f"{path} has no {name}: it is not whole, save or copy it again")
        files[name] = (path / name).read_bytes()
        if sha256(files[name]).hexdigest() != config["files"][name]:
            raise _damaged(path, name)
    return files, config


def _config(path: Path) -> dict[str, Any]:
    """Return the configuration, if it is what was signed."""
    signed = (path / CONFIG).read_bytes()
    try:
        (checksum,) = _SUM.findall(signed)
        config = json.loads(signed)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, CONFIG) from error
    unsigned = signed.replace(checksum, _ZEROS.encode())
    if (
        not isinstance(config, dict)
        or not isinstance(config.get("files"), dict)
        or not config.get("checksum") == checksum.decode() == sha256(unsigned).hexdigest()
    ):
        raise _damaged(path, CONFIG)
    return config


def _damaged(path: Path, name: str) -> GnnVpaError:
    return GnnVpaError(f"{path}: {name} is not what was saved: save or copy the model again")
