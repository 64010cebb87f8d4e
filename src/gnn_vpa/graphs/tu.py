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

_Array = NDArray[Any]


def read_tu(source: str | os.PathLike[str]) -> GraphSet:
    r"""Read a data set in the layout of the TU collection.

    As in PyG, self-loops and duplicate edges are dropped (the attributes of duplicates are
    added), node and edge labels are counted from the smallest one, and classes are numbered in
    sorted order.

    Args:
        source: A zip (LZMA too) or an unpacked folder, anywhere.

    Raises:
        GnnVpaError: The archive is damaged; the message names the file and the line.

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
        labels = archive.table("graph_labels", columns=1)[:, 0]
        y = np.unique(labels, return_inverse=True)[1]
        node_graph = _read_node_graph(archive, len(y))
        keys = _read_edge_keys(archive, node_graph)
        edge_attributes = _read_edge_attributes(archive, len(keys))
        rowptr, col, edge_attributes = _to_csr(keys, len(node_graph), edge_attributes)
        return GraphSet(
            name=archive.name,
            node_ptr=torch.from_numpy(np.searchsorted(node_graph, np.arange(len(y) + 1))),
            rowptr=torch.from_numpy(rowptr),
            col=torch.from_numpy(col),
            y=torch.from_numpy(y),
            node_labels=_tensor(_read_rows(archive, "node_labels", int, len(node_graph))),
            node_attributes=_tensor(_read_rows(archive, "node_attributes", float, len(node_graph))),
            edge_attributes=_tensor(edge_attributes),
        )


def _read_node_graph(archive: Archive, num_graphs: int) -> _Array:
    """Return the graph of each node, counted from 0: [nodes], sorted, without a gap."""
    graph = archive.table("graph_indicator", columns=1)[:, 0] - 1
    file = archive.file("graph_indicator")
    step = np.diff(graph, prepend=graph[:1])
    wrong = (step < 0) | (step > 1)
    wrong[:1] = graph[:1] != 0
    if wrong.any():
        line = int(wrong.argmax()) + 1
        raise GnnVpaError(
            f"{file}, line {line}: graph {graph[line - 1] + 1} where the same or the next graph "
            "must follow: the nodes of a graph stand together, graphs count from 1"
        )
    if len(graph) == 0 or graph[-1] + 1 != num_graphs:
        found = int(graph[-1]) + 1 if len(graph) else 0
        raise GnnVpaError(
            f"{file} names {found} graph(s), but {archive.name}_graph_labels.txt has "
            f"{num_graphs}: get the archive again"
        )
    return graph


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


def _read_edge_attributes(archive: Archive, lines: int) -> _Array | None:
    """Return attributes, then one-hot labels of each line: [lines, width]."""
    parts = []
    if (attributes := _read_rows(archive, "edge_attributes", float, lines)) is not None:
        parts.append(attributes)
    if (labels := _read_rows(archive, "edge_labels", int, lines)) is not None:
        parts += [
            np.eye(column.max(initial=0) + 1, dtype=np.float32)[column] for column in labels.T
        ]
    return np.concatenate(parts, axis=1) if parts else None


def _read_rows(
    archive: Archive, part: str, dtype: type[int] | type[float], rows: int
) -> _Array | None:
    """Return an optional file that must have so many lines: labels from 0, or float32."""
    if not archive.has(part):
        return None
    values = archive.table(part, dtype)
    if len(values) != rows:
        raise GnnVpaError(f"{archive.file(part)} has {len(values)} lines, {rows} were expected")
    if dtype is float:
        return values.astype(np.float32)
    return values - values.min(axis=0) if rows else values


def _to_csr(
    keys: _Array, nodes: int, attributes: _Array | None
) -> tuple[_Array, _Array, _Array | None]:
    """Drop self-loops and duplicates, and sort: row pointers, columns and attributes."""
    # target * nodes + source = target * (nodes + 1) + (source - target): only a self-loop's key
    # is a multiple of nodes + 1.
    proper = keys % (nodes + 1) != 0
    keys = keys[proper]
    if attributes is None:
        keys.sort()
        first = np.ones(len(keys), bool)
        np.not_equal(keys[1:], keys[:-1], out=first[1:])
        keys = keys[first]
    else:
        keys, inverse = np.unique(keys, return_inverse=True)
        total = np.zeros((len(keys), attributes.shape[1]), np.float32)
        np.add.at(total, inverse, attributes[proper])
        attributes = total
    rowptr = np.searchsorted(keys, np.arange(nodes + 1) * nodes)
    return rowptr, (keys % nodes).astype(np.int32), attributes


def _tensor(array: _Array | None) -> torch.Tensor | None:
    return None if array is None else torch.from_numpy(array)
