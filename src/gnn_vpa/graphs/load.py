"""One call from a name, a path or a function to a data set."""

import logging
import os
from pathlib import Path

from ..errors import UsageError
from ..paper import resolve_name
from ._archive import has_archive
from ._reference import call_reference
from .cache import read_cached
from .graphset import GraphSet
from .locate import find_archives

_log = logging.getLogger("gnn_vpa")


def load(name: str | os.PathLike[str], data_dir: str | os.PathLike[str] | None = None) -> GraphSet:
    """Load a data set.

    Args:
        name: A name as in the paper or as in the archives (`find_archives` says where they are
            looked for), the path of a TU zip or folder, or `module:function` for a function that
            returns PyG `Data` objects.
        data_dir: A folder to look in first.

    Raises:
        UsageError: There is no such data set; the message has the nearest names and what to do.

    Example:
        >>> load("MUTAGG")
        Traceback (most recent call last):
            ...
        gnn_vpa.errors.UsageError: no data set is called 'MUTAGG': did you mean MUTAG?
    """
    text = os.fspath(name)
    path = Path(text)
    if path.suffix == ".zip" or path.name != text or (path.is_dir() and has_archive(path)):
        graphs = read_cached(path)
    elif ":" in text:
        graphs = _call(text)
    else:
        graphs = _load_named(text, data_dir)
    if graphs.num_edges == 0:
        raise UsageError(f"{graphs.name}: none of its graphs has an edge to pass a message along")
    _remark(graphs)
    return graphs


def _remark(graphs: GraphSet) -> None:
    """Say what is odd about a data set, though it can be used."""
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


def _load_named(name: str, data_dir: str | os.PathLike[str] | None) -> GraphSet:
    archives = find_archives(data_dir)
    archive = resolve_name(name, also=archives)
    if archive not in archives:
        raise UsageError(
            f"{archive} is not on this machine (here are {', '.join(sorted(archives))}): get it "
            f"with 'gnn-vpa data get {archive}', or name the folder that has it with --data-dir or "
            "GNN_VPA_DATA"
        )
    return read_cached(archives[archive])


def _call(reference: str) -> GraphSet:
    """Make a data set of what `module:function` returns."""
    expected = "a list of PyG Data objects"
    made = call_reference(reference, expected)
    try:
        graphs = list(made)
    except Exception as error:
        raise UsageError(
            f"{reference!r} must return {expected}, but failed with {type(error).__name__}: {error}"
        ) from error
    return GraphSet.from_pyg(graphs, name=reference)
