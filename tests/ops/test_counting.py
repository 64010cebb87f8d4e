"""Grouping by counting, against a stable sort."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gnn_vpa import UsageError
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


@given(st.integers(0, 12).flatmap(lambda count: st.permutations(range(count))))
def test_edges_in_order_are_seen(order: list[int]) -> None:
    assert _counting.is_in_order(np.array(order, np.int32)) == (order == sorted(order))


@given(INDEX, st.booleans())
def test_rows_that_ascend_are_seen_and_counted(row: np.ndarray, is_sorted: bool) -> None:
    narrow = (np.sort(row) if is_sorted else row).astype(np.int32)
    assert _counting.is_ascending(narrow) == (narrow.tolist() == sorted(row))
    for times in (1, 20):  # few edges of a row, and many
        rows_of_edges = np.sort(narrow).repeat(times)
        expected = [0, *np.bincount(rows_of_edges, minlength=ROWS).cumsum()]
        assert _counting.pointers(rows_of_edges, ROWS).tolist() == expected


@given(INDEX, st.sampled_from([torch.int64, torch.int32]), st.booleans(), st.integers(0, 2))
def test_a_list_of_edges_is_read_however_it_lies(
    source: np.ndarray, dtype: torch.dtype, turned: bool, more: int
) -> None:
    edges = torch.from_numpy(np.stack([source, source[::-1]])).to(dtype)
    plain = Graph(edges.clone(), (ROWS, ROWS + more))
    if turned:
        edges = edges.t().contiguous().t()
    graph = Graph(edges, (ROWS, ROWS + more))
    for found, expected in zip(graph.by_target, plain.by_target, strict=True):
        assert found is expected or torch.equal(torch.as_tensor(found), torch.as_tensor(expected))
    found = torch.stack([graph.by_target.col, rows(graph.by_target.rowptr, len(source))])
    assert sorted(found.t().tolist()) == sorted(edges.t().tolist())
    if len(source) > 0:
        for bad in (-1, ROWS + more, 2**31 - 1):
            edges[1, 0] = bad
            with pytest.raises(UsageError, match="target index"):
                Graph(edges, (ROWS, ROWS + more))


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
