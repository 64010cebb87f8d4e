"""``Graph``: every accepted form gives the same graph, and nothing is lost on the way."""

import warnings
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch_geometric import EdgeIndex

from gnn_vpa.ops import Graph, aggregate
from gnn_vpa.ops._csr import CSR

from .conftest import Case


def edges_of(csr: CSR) -> list[tuple[int, int, int]]:
    """Return ``(row, col, edge)`` of every position."""
    row = torch.repeat_interleave(torch.arange(len(csr.rowptr) - 1), csr.rowptr.diff().long().cpu())
    edge = torch.arange(len(row)) if csr.edge is None else csr.edge.cpu()
    return list(zip(row.tolist(), csr.col.tolist(), edge.tolist(), strict=True))


def test_both_groupings_hold_every_edge_once(case: Case, device: str) -> None:
    graph = Graph(case.edge_index.to(device), (case.num_sources, case.num_targets))
    source, target = case.edge_index.tolist()
    expected = {(t, s, e) for e, (s, t) in enumerate(zip(source, target, strict=True))}
    by_target, by_source = edges_of(graph.by_target), edges_of(graph.by_source)
    assert set(by_target) == expected
    assert {(t, s, e) for s, t, e in by_source} == expected
    assert [r for r, _, _ in by_target] == sorted(target)
    assert [r for r, _, _ in by_source] == sorted(source)
    assert graph.num_edges == len(source)
    assert graph.edge_targets.tolist() == target


def test_degree_counts_loops_and_parallel_edges() -> None:
    graph = Graph(torch.tensor([[0, 0, 1, 1], [0, 1, 1, 1]]), num_nodes=3)
    assert graph.degree.tolist() == [1, 3, 0]


def test_sizes_are_read_off_the_edges_by_default() -> None:
    graph = Graph(torch.tensor([[0, 4], [2, 1]]))
    assert (graph.num_sources, graph.num_targets) == (5, 5)
    assert Graph(torch.empty(2, 0, dtype=torch.long)).num_sources == 0


def formats(
    edge_index: Tensor, weight: Tensor, sizes: tuple[int, int]
) -> Iterator[tuple[str, Tensor]]:
    """The same weighted graph in every form: with parallel edges, CSR and CSC keep them too."""
    num_sources, num_targets = sizes
    shape = (num_targets, num_sources)
    adj_t = edge_index.flip(0)
    yield "COO", torch.sparse_coo_tensor(adj_t, weight, shape, check_invariants=True)
    for layout in ("CSR", "CSC"):
        major = adj_t[0] if layout == "CSR" else adj_t[1]
        minor = adj_t[1] if layout == "CSR" else adj_t[0]
        order = major.argsort(stable=True)
        size = shape[0] if layout == "CSR" else shape[1]
        pointer = torch.cat([torch.zeros(1), torch.bincount(major, minlength=size).cumsum(0)])
        make = torch.sparse_csr_tensor if layout == "CSR" else torch.sparse_csc_tensor
        # Parallel edges break the invariants that PyTorch would check, and not ours.
        yield (
            layout,
            make(pointer.long(), minor[order], weight[order], shape, check_invariants=False),
        )


@pytest.mark.filterwarnings("ignore:Sparse CS. tensor support is in beta")
@pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled")
def test_every_format_aggregates_alike_parallel_edges_included(device: str) -> None:
    edge_index = torch.tensor([[0, 2, 2, 1, 0, 3], [1, 1, 1, 0, 1, 3]], device=device)
    weight = torch.rand(6, dtype=torch.float64, device=device)
    x = torch.randn(4, 3, dtype=torch.float64, device=device)
    for aggr in ("sum", "mean", "vpa", "max"):
        expected = aggregate(x, edge_index, aggr, weight)
        for name, adj_t in formats(edge_index.cpu(), weight.cpu(), (4, 4)):
            out = aggregate(x, adj_t.to(device), aggr)
            torch.testing.assert_close(out, expected, msg=f"{name} {aggr}")


def test_edge_index_of_pyg_with_its_sizes() -> None:
    edge_index = EdgeIndex([[0, 1, 1], [1, 0, 2]], sparse_size=(2, 3), sort_order="row")
    graph = Graph(edge_index)
    assert (graph.num_sources, graph.num_targets) == (2, 3)
    plain = Graph(torch.tensor([[0, 1, 1], [1, 0, 2]]), (2, 3))
    assert edges_of(graph.by_target) == edges_of(plain.by_target)
    assert type(graph.by_target.col) is torch.Tensor


def test_readout_counts_nodes_by_graph() -> None:
    graph = Graph.readout(torch.tensor([0, 0, 2]), num_graphs=4)
    assert graph.degree.tolist() == [2, 0, 1, 0]
    assert Graph.readout(torch.tensor([0, 0, 2])).num_targets == 3
    assert Graph.readout(torch.empty(0, dtype=torch.long)).num_targets == 0


def test_to_moves_everything_the_graph_has(device: str) -> None:
    graph = Graph(torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
    assert graph.to("cpu") is graph
    assert len(graph.by_source.col) == 2
    moved = graph.to(device)
    assert moved.device.type == device
    assert moved.by_source.col.device.type == device
    x = torch.tensor([[1.0], [2.0]], device=device)
    assert aggregate(x, moved, "sum").flatten().tolist() == [2.0, 1.0]


def test_index_types_agree() -> None:
    wide = torch.tensor([[0, 1, 2], [2, 2, 0]])
    x = torch.randn(3, 2)
    assert torch.equal(aggregate(x, wide, "vpa"), aggregate(x, wide.int(), "vpa"))


def test_what_a_transform_makes_is_not_kept() -> None:
    graph, x = Graph(torch.tensor([[0, 1], [1, 1]]), 2), torch.ones(2, 1)
    torch.func.grad(lambda w: aggregate(x, graph, "vpa", w).sum())(torch.ones(2))
    kept = graph.edge_targets
    assert not torch._C._functorch.is_functorch_wrapped_tensor(kept)
    assert graph.edge_targets is kept


def test_multiplicities_are_the_graphs_own() -> None:
    times, x = torch.ones(2), torch.tensor([[1.0], [3.0]])
    graph = Graph(torch.tensor([[0, 1], [1, 1]]), 2, times)
    before = [aggregate(x, graph, aggr) for aggr in ("mean", "vpa", "sum")]
    times *= 4
    after = [aggregate(x, graph, aggr) for aggr in ("mean", "vpa", "sum")]
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_with_loops_each_node_has_one() -> None:
    graph = Graph(torch.tensor([[0, 1, 1, 1], [1, 1, 1, 0]]), (3, 3)).with_loops
    edges = sorted(zip(*(end.tolist() for end in graph.ends), strict=True))
    assert edges == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 2)]
    assert graph.by_target.rowptr.tolist() == [0, 2, 4, 5]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_the_rows_of_a_matrix_are_its_graph(dtype: torch.dtype) -> None:
    rows, columns = torch.tensor([0, 2, 2, 3], dtype=dtype), torch.tensor([1, 0, 1], dtype=dtype)
    with torch.sparse.check_sparse_tensor_invariants(False), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that such tensors are in beta state
        matrix = torch.sparse_csr_tensor(rows, columns, torch.ones(3), (3, 2))
    graph, like = Graph.of_rows(matrix), Graph(torch.tensor([[1, 0, 1], [0, 0, 2]]), (2, 3))
    assert (graph.num_sources, graph.num_targets) == (2, 3)
    for found, expected in zip(graph.by_target[:2], like.by_target[:2], strict=True):
        assert torch.equal(found, expected)
    for end, wanted in zip(graph.ends, like.ends, strict=True):
        assert end.tolist() == wanted.tolist()
    columns[0] = 0  # a change of the matrix is none of the graph
    assert graph.by_target.col.tolist() == [1, 0, 1]
