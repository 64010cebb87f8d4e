"""A data set that was read once opens again in a moment."""

import hashlib
import json
import logging
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from ..errors import GnnVpaError
from ..files import replacing
from ._archive import check_source, list_files
from .graphset import GraphSet
from .numbering import Numbering
from .tu import read_tu

_FORMAT = "4"  # 2 had no attributes of graphs, 3 no labels as they were
_log = logging.getLogger("gnn_vpa")


def cache_dir() -> Path:
    """Return the folder for what can be made again: `GNN_VPA_CACHE`, or the user's cache.

    Example:
        >>> cache_dir().is_absolute()
        True
    """
    if own := os.environ.get("GNN_VPA_CACHE"):
        return Path(own).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache").absolute() / "gnn-vpa"


def read_cached(source: Path) -> GraphSet:
    """Read a TU archive, or the compact copy that the first reading left in `cache_dir()`.

    A copy that is damaged, or of another version, is made again. Where none can be kept, a log
    line says why and the work goes on.

    Example:
        >>> read_cached(Path("absent.zip"))
        Traceback (most recent call last):
            ...
        gnn_vpa.errors.UsageError: absent.zip does not exist: give a TU archive (zip) or its folder
    """
    check_source(source)
    copy = cache_dir() / "graphs" / f"{source.stem}-{_fingerprint(source)}.safetensors"
    try:
        return _open(copy)
    except FileNotFoundError:
        pass
    except (OSError, SafetensorError, GnnVpaError, KeyError, TypeError, ValueError) as error:
        _log.info("the cached copy %s is made again: %s", copy, error)
    graphs = read_tu(source)
    try:
        _save(graphs, copy)
    except (OSError, SafetensorError) as error:
        _log.warning("%s is not cached, which only costs time: %s", graphs.name, error)
    return graphs


def _fingerprint(source: Path) -> str:
    """Tell archives apart: a zip by its content, a folder by its files' sizes and times."""
    digest = hashlib.sha256()
    if source.is_file():
        with source.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:16]
    for file_path in sorted(source / file for file in list_files(source) if file.endswith(".txt")):
        if not file_path.is_file():
            continue  # a pipe or a link to nothing, which `read_tu` refuses
        state = file_path.stat()
        digest.update(f"{file_path.absolute()} {state.st_size} {state.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def _open(path: Path) -> GraphSet:
    if not path.exists():
        raise FileNotFoundError(path)
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
        if metadata.get("format") != _FORMAT:
            raise GnnVpaError(f"format {metadata.get('format')}, not {_FORMAT}")
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        numbering = Numbering(**_tuples(json.loads(metadata["numbering"])))
        graphs = GraphSet(metadata["name"], **tensors, numbering=numbering)
    if graphs.checksum() != metadata["checksum"]:
        raise GnnVpaError("its content is not what was written")
    return graphs


def _save(graphs: GraphSet, path: Path) -> None:
    metadata = {
        "format": _FORMAT,
        "name": graphs.name,
        "checksum": graphs.checksum(),
        "numbering": json.dumps(asdict(graphs.numbering)),
    }
    tensors = {name: tensor.contiguous() for name, tensor in graphs.tensors().items()}
    # A copy that a failing machine damages is found by its checksum: nobody waits for the disk.
    with replacing(path, lasting=False) as part:
        save_file(tensors, part, metadata)


def _tuples(value: Any) -> Any:
    """Return lists of JSON as the tuples that they were."""
    if isinstance(value, dict):
        return {key: _tuples(entry) for key, entry in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
