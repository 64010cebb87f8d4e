"""Named files in a folder or a zip, written whole, and read as they were written or not at all.

`config.json` holds the SHA-256 of every other file, and of itself (with zeros in that place). A zip
ends with the SHA-256 of all that is before.
"""

import hashlib
import io
import json
import os
import re
import secrets
import shutil
import zipfile
from collections.abc import Collection, Container, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import GnnVpaError, UsageError
from ..files import write_whole

CONFIG = "config.json"
_ZEROS = "0" * 64
_SUM = re.compile(rb'"checksum": "([0-9a-f]{64})"')
_STAMP = (1980, 1, 1, 0, 0, 0)  # the same model is the same file, whenever it is written


def check_place(path: Path, names: Container[str]) -> None:
    """Refuse a place for a model where something else is.

    Args:
        path: Where it is to be written.
        names: Files that a model in that place may have; others are not ours to replace.

    Raises:
        UsageError: There is something else.

    Example:
        >>> check_place(Path("new"), ())
    """
    if not path.name or path.name == "..":  # it would be put in the place of a folder in use
        raise UsageError(f"{path} has no name of its own: name a new folder, such as mymodel")
    target = Path(os.path.realpath(path))
    if path.suffix == ".zip":
        if target.is_dir():
            raise UsageError(f"{path} is a folder: name a file, or a folder without .zip")
        if target.exists() and CONFIG not in _members(target):
            raise UsageError(f"{path} is a file with something else in it: name a new one")
        return
    if not target.exists():
        return
    if not target.is_dir():
        raise UsageError(f"{path} is a file: name a folder, or a file that ends in .zip")
    there = sorted(entry.name for entry in target.iterdir())
    if there and CONFIG not in there:
        raise UsageError(f"{path} is a folder with other things in it: name a new one")
    if others := [name for name in there if name != CONFIG and name not in names]:
        raise UsageError(
            f"{path} holds a model and other things ({others[0]}): name another folder"
        )


def write(path: Path, files: Mapping[str, bytes], config: Mapping[str, Any]) -> None:
    """Write files and a configuration.

    Args:
        path: A folder, which may be one that was written here before; or a file, if it ends in
            ``.zip``.
        files: Contents by name.
        config: What `config.json` says besides the sums.

    Raises:
        UsageError: There is something else in that place.
        OSError: It cannot be written; what was there before is still there.
    """
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    text = json.dumps(
        {**config, "files": sums, "checksum": _ZEROS}, indent=2, allow_nan=False, ensure_ascii=False
    )
    unsigned = (text + "\n").encode()
    digest = hashlib.sha256(unsigned).hexdigest()
    signed = unsigned.replace(
        f'"checksum": "{_ZEROS}"'.encode(), f'"checksum": "{digest}"'.encode()
    )
    everything = {**files, CONFIG: signed}
    check_place(path, files)
    if path.suffix == ".zip":
        write_whole(path, _zipped(everything))
    else:
        _write_folder(path, everything)


def read(
    path: Path, supported: int, names: Collection[str]
) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Read files and their configuration.

    Args:
        path: A folder or a zip that `write` wrote.
        supported: The newest format that is understood.
        names: The files that it has beside the configuration; none of another name is looked at.

    Raises:
        UsageError: There is no such thing.
        GnnVpaError: Something is missing, damaged, or of a newer format.
    """
    if not path.exists():
        raise UsageError(f"{path} does not exist: give the folder or the zip of a saved model")
    if path.is_dir() and not (path / CONFIG).is_file():
        raise UsageError(f"{path} has no {CONFIG}: give the folder or the zip of a saved model")
    there = _unzipped(path, {CONFIG, *names}) if path.is_file() else None
    signed = _content(path, there, CONFIG)
    config = _config(path, signed)
    _check_config(path, signed, config)
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
    files = {name: _content(path, there, name) for name in names}
    for name, content in files.items():
        if hashlib.sha256(content).hexdigest() != config["files"][name]:
            raise _damaged(path, name)
    return files, config


def _config(path: Path, signed: bytes) -> dict[str, Any]:
    try:
        config = json.loads(signed)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, CONFIG) from error
    if not isinstance(config, dict) or not isinstance(config.get("files"), dict):
        raise _damaged(path, CONFIG)
    return config


def _check_config(path: Path, signed: bytes, config: Mapping[str, Any]) -> None:
    sums = _SUM.findall(signed)
    if len(sums) != 1 or config.get("checksum") != sums[0].decode():
        raise _damaged(path, CONFIG)
    unsigned = signed.replace(sums[0], _ZEROS.encode())
    if hashlib.sha256(unsigned).hexdigest() != config["checksum"]:
        raise _damaged(path, CONFIG)


def _content(path: Path, there: Mapping[str, bytes] | None, name: str) -> bytes:
    if there is None:
        if not (path / name).is_file():
            raise GnnVpaError(f"{path} has no {name}: it is not whole, save or copy it again")
        return (path / name).read_bytes()
    if name not in there:
        raise GnnVpaError(f"{path} has no {name}: it is not whole, save or copy it again")
    return there[name]


def _damaged(path: Path, name: str) -> GnnVpaError:
    return GnnVpaError(f"{path}: {name} is not what was saved: save or copy the model again")


def _zipped(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        for name, content in files.items():
            packed.writestr(zipfile.ZipInfo(name, _STAMP), content)
        packed.comment = _ZEROS.encode()
    content = buffer.getvalue()[: -len(_ZEROS)]
    return content + hashlib.sha256(content).hexdigest().encode()


def _unzipped(path: Path, names: Collection[str]) -> dict[str, bytes]:
    whole = path.read_bytes()
    content, end = whole[: -len(_ZEROS)], whole[-len(_ZEROS) :]
    if not whole.startswith(b"PK"):
        raise UsageError(f"{path} is no zip: give the folder or the zip of a saved model")
    if hashlib.sha256(content).hexdigest().encode() != end:
        raise GnnVpaError(
            f"{path} is not what was saved, or no saved model: save or copy the model again"
        )
    try:
        with zipfile.ZipFile(io.BytesIO(whole)) as packed:
            members = [each for each in packed.infolist() if each.filename in names]
            if any(each.compress_type != zipfile.ZIP_STORED for each in members):
                raise _damaged(path, "what it holds")  # a few bytes could become gigabytes
            return {each.filename: packed.read(each) for each in members}
    except (zipfile.BadZipFile, EOFError, RuntimeError, OSError, ValueError) as error:
        raise _damaged(path, "what it holds") from error


def _members(path: Path) -> list[str]:
    """Return what a zip holds; nothing of another file."""
    try:
        with zipfile.ZipFile(path) as packed:
            return packed.namelist()
    except zipfile.BadZipFile:
        return []


def _write_folder(path: Path, files: Mapping[str, bytes]) -> None:
    """Write a new folder beside, and let it take the place of an old one."""
    target = Path(os.path.realpath(path))
    number = secrets.token_hex(4)
    part, old = (target.with_name(f"{target.name}.{number}.{end}") for end in ("part", "old"))
    try:
        for name, content in files.items():
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
            with suppress(OSError):
                shutil.rmtree(folder)
