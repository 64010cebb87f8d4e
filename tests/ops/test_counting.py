"""Grouping by counting, against a stable sort."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gnn_vpa.ops import Graph, _counting
from gnn_vpa.ops._csr import CSR, group, rows

ROWS = 6
INDEX = arrays(np.int64, st.integers(0, 30), elements=st.integers(0, ROWS - 1))


@given(INDEX)
def test_it_is_a_stable_sort(row: np.ndarray) -> None:
    narrow = row.astype(np.int32)
    rowptr, col, edge = _counting.by_row(narrow, narrow + 1, ROWS)
    assert col.tolist() == sorted(row + 1)
    assert edge.tolist() == np.argsort(row, kind="stable").tolist()
    assert rowptr.tolist() == [0, *np.bincount(row, minlength=ROWS).cumsum()]


@given(INDEX, st.data())
def test_a_graph_is_the_same_however_its_edges_are_ordered(
    source: np.ndarray, data: st.DataObject
) -> None:
    target = data.draw(arrays(np.int64, len(source), elements=st.integers(0, ROWS - 1)))
    for order in (
        np.arange(len(source)),
        np.lexsort((target, source)),
        np.lexsort((source, target)),
    ):
        edges = torch.from_numpy(np.stack([source[order], target[order]]))
        graph = Graph(edges, ROWS)
        for csr, (row, col) in (
            (graph.by_target, (edges[1], edges[0])),
            (graph.by_source, (edges[0], edges[1])),
        ):
            check(csr, row, col)


def check(csr: CSR, row: torch.Tensor, col: torch.Tensor) -> None:
    """Compare with what the registered operator makes of the edges."""
    rowptr, ordered, edge = group(row, col, ROWS, ROWS)
    assert csr.rowptr.tolist() == rowptr.tolist()
    if csr.edge is not None:
        assert col[csr.edge.long()].tolist() == csr.col.tolist()
        assert row[csr.edge.long()].tolist() == rows(csr.rowptr, len(row)).tolist()
    else:
        assert col.tolist() == csr.col.tolist()
    assert csr.longest == int(rowptr.diff().max())
    assert sorted(ordered.tolist()) == sorted(csr.col.tolist())
    assert len(edge) == len(row)
