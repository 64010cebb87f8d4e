"""One call from a name, a path, a function or graphs in memory to a data set."""

import logging
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ..errors import UsageError
from ..paper import resolve_name
from ._archive import has_archive
from .cache import read_cached
from .graphset import GraphSet
from .locate import find_archives
from .reference import call_reference
from .targets import TargetKind, missing_remark, with_target

if TYPE_CHECKING:
    from torch_geometric.data import Data

_log = logging.getLogger("gnn_vpa")

# What people keep graphs in, and what no data set's name ends in. Other endings are left to what
# the file holds: an archive may be called as one likes.
_OTHER_FILES = (
    *(".pt", ".pth", ".pkl", ".pickle", ".npz", ".npy", ".safetensors", ".h5", ".hdf5"),
    *(".csv", ".tsv", ".json", ".jsonl", ".txt", ".parquet", ".xlsx", ".py", ".ipynb"),
    *(".gz", ".tgz", ".bz2", ".xz", ".tar", ".rar", ".7z"),
)


class AbsentError(UsageError):
    """A benchmark data set that is not on this machine.

    Attributes:
        archive: What it is called.

    Example:
        >>> AbsentError("COLLAB is not on this machine", "COLLAB").archive
        'COLLAB'
    """

    def __init__(self, message: str, archive: str) -> None:
        super().__init__(message, archive)
        self.archive = archive

    def __str__(self) -> str:
        return str(self.args[0])


def load(
    name: "str | os.PathLike[str] | GraphSet | Iterable[Data]",
    data_dir: str | os.PathLike[str] | None = None,
    target: str | None = None,
    kind: TargetKind | Literal["auto"] = "auto",
    called: str | None = None,
) -> GraphSet:
    """Load a data set.

    Args:
        name: A name as in the paper or as in the archives (`find_archives` says where they are
            looked for), the path of a TU zip or folder, or `module:function` for a function that
            returns PyG `Data` objects. Or the graphs themselves: a `GraphSet`, PyG `Data` objects
            or a data set of PyG.
        data_dir: A folder to look in first.
        target: What is learned of each graph: an attribute of PyG's graphs, or a column as
            `with_target` has it. None: `y`, which is TU's class where there is one. With "" nothing
            is to be learned, and missing targets are not remarked on.
        kind: What the target is, see `with_target`.
        called: What graphs that are given themselves are called; None: as `name_of` has it.

    Raises:
        UsageError: There is no such data set; the message has the nearest names and what to do.

    Example:
        >>> load("MUTAGG")
        Traceback (most recent call last):
            ...
        gnn_vpa.errors.UsageError: no data set is called 'MUTAGG': did you mean MUTAG?
    """
    if isinstance(name, str | os.PathLike):
        graphs = _read(os.fspath(name), data_dir, target, kind)
    elif isinstance(name, GraphSet):
        # A new one: what the old one has worked out may be of earlier values of its tensors.
        graphs = with_target(replace(name), target, kind)
    else:
        graphs = GraphSet.from_pyg(_listed(name), called or name_of(name), target or "y", kind)
    if graphs.num_edges == 0:
        raise UsageError(f"{graphs.name}: none of its graphs has an edge to pass a message along")
    if target != "":
        _remark(graphs)
    return graphs


def _remark(graphs: GraphSet) -> None:
    """Say what is odd about a data set, though it can be used."""
    if (remark := missing_remark(graphs)) is not None:
        _log.warning("%s", remark)
    if graphs.num_classes == 1:
        _log.warning(
            "%s: all %d graphs are of one class, so that any model is right about all of them",
            graphs.name,
            graphs.num_graphs,
        )
    if empty := int((graphs.node_ptr.diff() == 0).sum()):
        _log.warning("%s: %d graph(s) have no node", graphs.name, empty)
    if isolated := int((graphs.rowptr[graphs.node_ptr].diff() == 0).sum()):
        _log.warning("%s: %d graph(s) have no edge", graphs.name, isolated)


def _read(
    text: str,
    data_dir: str | os.PathLike[str] | None,
    target: str | None,
    kind: TargetKind | Literal["auto"],
) -> GraphSet:
    path = Path(text)
    if _is_other_file(path) and text not in find_archives(data_dir):
        raise UsageError(
            f"{text}: a {path.suffix} file is not read as a data set. Give a name, such as MUTAG, "
            "a TU archive (.zip) or its folder, or module:function for a function that returns a "
            "list of PyG Data objects, which may read any file"
        )
    if path.suffix == ".zip" or path.name != text or (path.is_dir() and has_archive(path)):
        return with_target(read_cached(path), target, kind)
    if ":" in text:
        return _call(text, target, kind)
    return with_target(_load_named(text, data_dir), target, kind)


def _is_other_file(path: Path) -> bool:
    is_reference = ":" in path.name
    return path.suffix.casefold() in _OTHER_FILES and not is_reference and not path.is_dir()


def _listed(graphs: "Iterable[Data]") -> "list[Data]":
    try:
        return list(graphs)
    except TypeError as error:
        raise UsageError(
            "a data set is a name, a path, module:function, a GraphSet or a list of PyG Data "
            f"objects, not {type(graphs).__name__}: {error}"
        ) from error


def name_of(graphs: object) -> str:
    """Return what a data set of PyG calls itself, or its class; "custom" for a mere list.

    Example:
        >>> name_of([])
        'custom'
    """
    from torch_geometric.data import Dataset  # it loads slowly, and names need none of it

    if not isinstance(graphs, Dataset):
        return "custom"
    name = getattr(graphs, "name", None)
    return name if isinstance(name, str) and name else type(graphs).__name__


def _load_named(name: str, data_dir: str | os.PathLike[str] | None) -> GraphSet:
    archives = find_archives(data_dir)
    archive = resolve_name(name, also=archives)
    if archive not in archives:
        raise AbsentError(
            f"{archive} is not on this machine (here are {', '.join(sorted(archives))}): get it "
            f"with 'gnn-vpa data get {archive}', or name the folder that has it with --data-dir or "
            "GNN_VPA_DATA",
            archive,
        )
    return read_cached(archives[archive])


def _call(reference: str, target: str | None, kind: TargetKind | Literal["auto"]) -> GraphSet:
    """Make a data set of what `module:function` returns."""
    expected = "a list of PyG Data objects"
    made = call_reference(reference, expected)
    try:
        graphs = list(made)
    except Exception as error:
        raise UsageError(
            f"{reference!r} must return {expected}, but failed with {type(error).__name__}: {error}"
        ) from error
    return GraphSet.from_pyg(graphs, reference, target or "y", kind)
