"""Our own reader of TU archives: the same graphs as PyG's `TUDataset`, in less time and memory."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..errors import GnnVpaError
from ._archive import Archive
from .graphset import GraphSet
from .numbering import Numbering
from .targets import MISSING, narrowed

_Array = NDArray[Any]

# One-hot columns of one label; DBLP_v1 has the most in the TU collection, 41,325.
_MOST_LABELS = 1 << 16
_MOST_WRITTEN = 1 << 30  # entries of one-hot matrices that are written out


def read_tu(source: str | os.PathLike[str]) -> GraphSet:
    r"""Read a data set in the layout of the TU collection.

    As in PyG, self-loops and duplicate edges are dropped (the attributes of duplicates are
    added), node and edge labels are counted from the smallest one, classes are numbered in
    sorted order, and a graph that `graph_indicator` skips has no nodes. Unlike in PyG, `y` are the
    classes where there are both classes and attributes of graphs; `with_target` chooses attributes.
    Where there are attributes alone, they are `y`; where there is neither, all classes are missing.

    Args:
        source: A zip (LZMA too) or an unpacked folder, anywhere.

    Raises:
        GnnVpaError: The archive is damaged, or a number is not finite or does not fit; the message
            names the file and the line.

    Example:
        >>> import tempfile
        >>> parts = {"A": "1, 2\n2, 1", "graph_indicator": "1\n1\n2", "graph_labels": "-1\n1"}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for part, text in parts.items():
        ...         _ = Path(folder, f"TINY_{part}.txt").write_text(text)
        ...     read_tu(folder)
        GraphSet('TINY', graphs=2, classes=2, nodes=3, edges=2)
    """
    with Archive(Path(source)) as archive:
        node_graph = _read_node_graph(archive)
        y, classes, attributes = _read_targets(archive, int(node_graph[-1]) + 1)
        keys = _read_edge_keys(archive, node_graph)
        edge_attributes, edge_labels = _read_edge_attributes(archive, len(keys))
        node_labels, first_labels = _read_labels(archive, "node_labels", len(node_graph))
        rowptr, col, edge_attributes = _to_csr(keys, len(node_graph), edge_attributes)
        return GraphSet(
            name=archive.name,
            node_ptr=torch.from_numpy(np.searchsorted(node_graph, np.arange(len(y) + 1))),
            rowptr=torch.from_numpy(rowptr),
            col=torch.from_numpy(col),
            y=torch.from_numpy(y),
            graph_attributes=_tensor(attributes),
            node_labels=_tensor(node_labels),
            node_attributes=_tensor(_read_attributes(archive, "node_attributes", len(node_graph))),
            edge_attributes=_tensor(edge_attributes),
            numbering=Numbering(classes, first_labels, edge_labels),
        )


def _read_targets(
    archive: Archive, num_graphs: int
) -> tuple[_Array, tuple[int, ...] | None, _Array | None]:
    """Return what is learned of each graph, classes as they are called, and graphs' attributes."""
    attributes = None
    if archive.has("graph_attributes"):
        attributes = _float32(archive.table("graph_attributes", float))
        _check_number(archive, "graph_attributes", len(attributes), num_graphs)
    if archive.has("graph_labels"):
        labels = archive.table("graph_labels", columns=1)[:, 0]
        _check_number(archive, "graph_labels", len(labels), num_graphs)
        classes, y = np.unique(labels, return_inverse=True)
        return y, tuple(classes.tolist()), attributes
    if attributes is not None:
        return _read_numbers(archive), None, attributes
    return np.full(num_graphs, MISSING), None, None


def _read_numbers(archive: Archive) -> _Array:
    """Return graphs' attributes as what is learned of them."""
    try:
        return narrowed(archive.table("graph_attributes", float)).numpy()
    except ValueError as error:
        raise GnnVpaError(f"{archive.file('graph_attributes')}: {error}") from None


def _read_node_graph(archive: Archive) -> _Array:
    """Return the graph of each node, counted from 0: [nodes], sorted."""
    graph = archive.table("graph_indicator", columns=1)[:, 0]
    file = archive.file("graph_indicator")
    wrong = graph < 1
    wrong[1:] |= graph[1:] < graph[:-1]
    if wrong.any():
        line = int(wrong.argmax()) + 1
        raise GnnVpaError(
            f"{file}, line {line}: graph {graph[line - 1]} where the same or a later graph must "
            "follow: the nodes of a graph stand together, graphs count from 1"
        )
    if len(graph) == 0:
        raise GnnVpaError(f"{file} is empty, so that there is no graph: get the archive again")
    return graph - 1


def _check_number(archive: Archive, part: str, lines: int, num_graphs: int) -> None:
    """Graphs between others may be without nodes, but the last shows that the files are whole."""
    if lines != num_graphs:
        raise GnnVpaError(
            f"{archive.file('graph_indicator')} ends with graph {num_graphs}, but "
            f"{archive.name}_{part}.txt has {lines}: get the archive again"
        )


def _read_edge_keys(archive: Archive, node_graph: _Array) -> _Array:
    """Return target * nodes + source of each line, which sorts as a CSR by target does."""
    nodes = len(node_graph)
    file = archive.file("A")
    keys = []
    for first, edges in archive.blocks("A", columns=2):
        outside = (edges < 1) | (edges > nodes)
        if outside.any():
            row, column = np.argwhere(outside)[0]
            raise GnnVpaError(
                f"{file}, line {first + row}: node {edges[row, column]} does not exist: "
                f"nodes count from 1 to {nodes}"
            )
        edges -= 1
        source, target = edges.T
        if (apart := np.flatnonzero(node_graph[source] != node_graph[target])).size:
            raise GnnVpaError(
                f"{file}, line {first + apart[0]}: an edge between nodes of graph "
                f"{node_graph[source[apart[0]]] + 1} and graph {node_graph[target[apart[0]]] + 1}"
            )
        keys.append(target * nodes + source)
    return np.concatenate(keys) if keys else np.empty(0, np.int64)


_EdgeLabels = tuple[tuple[int, int], ...]


def _read_edge_attributes(archive: Archive, lines: int) -> tuple[_Array | None, _EdgeLabels | None]:
    """Return attributes, then one-hot labels of each line: [lines, width], and these labels."""
    attributes = _read_attributes(archive, "edge_attributes", lines)
    labels, first = _read_labels(archive, "edge_labels", lines)
    if labels is None or first is None:
        return attributes, None
    widths = labels.max(axis=0, initial=0) + 1
    _check_written(archive, "edge_labels", lines, int(widths.sum()))
    one_hot = np.zeros((lines, widths.sum()), np.float32)
    one_hot[np.arange(lines)[:, None], labels + np.cumsum(widths) - widths] = 1
    known = tuple(zip(first, widths.tolist(), strict=True))
    return one_hot if attributes is None else np.concatenate([attributes, one_hot], axis=1), known


def _read_attributes(archive: Archive, part: str, rows: int) -> _Array | None:
    """Return an optional file of numbers that must have so many lines, in float32."""
    if not archive.has(part):
        return None
    return _float32(_read_rows(archive, part, float, rows))


def _read_labels(
    archive: Archive, part: str, rows: int
) -> tuple[_Array | None, tuple[int, ...] | None]:
    """Return an optional file of labels, counted from the smallest of each column, and those."""
    if not archive.has(part):
        return None, None
    labels = _read_rows(archive, part, int, rows)
    low = labels.min(axis=0) if rows else np.zeros(labels.shape[1], int)
    return (_from_zero(archive, part, labels) if rows else labels), tuple(low.tolist())


def _read_rows(archive: Archive, part: str, dtype: type[int] | type[float], rows: int) -> _Array:
    values = archive.table(part, dtype)
    if len(values) != rows:
        raise GnnVpaError(f"{archive.file(part)} has {len(values)} lines, {rows} were expected")
    return values


def _float32(values: _Array) -> _Array:
    with np.errstate(over="ignore"):  # an infinite one is found, and named, by the GraphSet
        return values.astype(np.float32)


def _from_zero(archive: Archive, part: str, labels: _Array) -> _Array:
    """Count each column of labels from its smallest one."""
    low, high = labels.min(axis=0), labels.max(axis=0)
    for least, most in zip(low.tolist(), high.tolist(), strict=True):
        if most - least >= _MOST_LABELS:
            raise GnnVpaError(
                f"{archive.file(part)} has labels from {least} to {most}, which would be "
                f"{most - least + 1:,} one-hot columns: {_MOST_LABELS:,} is the most, number the "
                "labels without gaps"
            )
    labels = labels - low
    if part == "node_labels" and labels.shape[1] > 1:
        _check_written(archive, part, len(labels), int((high - low + 1).sum()))
    return labels


def _check_written(archive: Archive, part: str, lines: int, columns: int) -> None:
    if lines * columns > _MOST_WRITTEN:
        raise GnnVpaError(
            f"{archive.file(part)} would be {lines:,} lines of {columns:,} one-hot columns, more "
            f"than {_MOST_WRITTEN:,} entries: leave the file out, or use fewer labels"
        )


def _to_csr(
    keys: _Array, nodes: int, attributes: _Array | None
) -> tuple[_Array, _Array, _Array | None]:
    """Drop self-loops and duplicates, and sort: row pointers, columns and attributes."""
    # target * nodes + source = target * (nodes + 1) + (source - target): only a self-loop's key
    # is a multiple of nodes + 1.
    proper = keys % (nodes + 1) != 0
    keys = keys[proper]
    if attributes is None:
        keys.sort(kind="stable")  # files are sorted by the source: it merges their ascending runs
        first = np.ones(len(keys), bool)
        np.not_equal(keys[1:], keys[:-1], out=first[1:])
        keys = keys[first]
    else:
        keys, inverse = np.unique(keys, return_inverse=True)
        total = np.zeros((len(keys), attributes.shape[1]), np.float32)
        with np.errstate(over="ignore"):  # an infinite one is found, and named, by the GraphSet
            np.add.at(total, inverse, attributes[proper])
        attributes = total
    rowptr = np.searchsorted(keys, np.arange(nodes + 1) * nodes)
    return rowptr, (keys % nodes).astype(np.int32), attributes


def _tensor(array: _Array | None) -> torch.Tensor | None:
    return None if array is None else torch.from_numpy(array)
