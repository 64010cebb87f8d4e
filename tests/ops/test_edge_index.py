"""What PyG's EdgeIndex remembers is used, and filled."""

import pytest
import torch
from torch_geometric import EdgeIndex

from gnn_vpa import UsageError
from gnn_vpa.ops import Graph, _counting, _csr, aggregate

NODES = 7


def sorted_edges(order: str, draw: torch.Generator, count: int = 25) -> EdgeIndex:
    edges = torch.randint(NODES, (2, count), generator=draw)
    edges = edges[:, edges[0 if order == "row" else 1].argsort()]
    return EdgeIndex(edges, sort_order=order, sparse_size=(NODES, NODES))


@pytest.mark.parametrize("filled", [False, True])
@pytest.mark.parametrize("order", ["row", "col"])
def test_it_computes_what_the_plain_edges_do(
    order: str, filled: bool, generator: torch.Generator
) -> None:
    edge_index = sorted_edges(order, generator)
    if filled:
        edge_index.fill_cache_()
    weight = torch.rand(25, generator=generator, dtype=torch.float64, requires_grad=True)
    x = torch.randn(NODES, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    results = []
    for edges in (edge_index, edge_index.as_tensor().clone()):
        out = aggregate(x, edges, "vpa", weight)
        results.append((out, *torch.autograd.grad(out.square().sum(), (x, weight))))
    torch.testing.assert_close(results[0], results[1])


@pytest.mark.parametrize("order", ["row", "col"])
def test_what_it_remembers_is_used(
    order: str, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    edge_index = sorted_edges(order, generator).fill_cache_()
    monkeypatch.setattr(_counting, "transposed", None)  # would fail if it were called
    graph = Graph(edge_index)
    source, target = edge_index.as_tensor()
    for csr, row, col in ((graph.by_target, target, source), (graph.by_source, source, target)):
        edge = torch.arange(25) if csr.edge is None else csr.edge.long()
        assert row[edge].tolist() == _csr.rows(csr.rowptr, 25).tolist()
        assert col[edge].tolist() == csr.col.tolist()


@pytest.mark.parametrize("order", ["row", "col"])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_what_it_remembers_is_its_own(
    order: str, dtype: torch.dtype, generator: torch.Generator
) -> None:
    edge_index = sorted_edges(order, generator).to(dtype)
    graph = Graph(edge_index)
    x = torch.randn(graph.num_sources, 2, generator=generator, requires_grad=True)
    before = aggregate(x, graph, "sum")
    known = (edge_index._indptr, edge_index._T_indptr, edge_index._T_perm, *edge_index._T_index)
    written = [part.zero_() for part in known if part is not None]
    assert len(written) >= 4
    after = aggregate(x, graph, "sum")
    torch.testing.assert_close(after, before)
    gradients = [torch.autograd.grad(out.sum(), x)[0] for out in (after, before)]
    degree = edge_index.as_tensor()[0].long().bincount(minlength=len(x)).float()
    for gradient in gradients:
        torch.testing.assert_close(gradient, degree.unsqueeze(1).expand(-1, 2))


@pytest.mark.parametrize("order", ["row", "col"])
def test_it_remembers_what_was_found(order: str, generator: torch.Generator) -> None:
    edge_index = sorted_edges(order, generator)
    Graph(edge_index)
    assert edge_index._T_perm is not None
    own = EdgeIndex(edge_index.as_tensor(), sort_order=order, sparse_size=(NODES, NODES))
    for view in ("get_csr", "get_csc"):
        (pointer, index), order_of = getattr(edge_index, view)()
        (expected, _), _ = getattr(own.fill_cache_(), view)()
        assert torch.equal(pointer, expected)
        ends = edge_index.as_tensor() if order_of is None else edge_index.as_tensor()[:, order_of]
        assert torch.equal(index, ends[1 if view == "get_csr" else 0])
    turned = "col" if order == "row" else "row"
    assert edge_index.sort_by(turned).values.validate().sort_order == turned


def test_an_order_that_it_does_not_have_is_refused() -> None:
    edge_index = EdgeIndex([[0, 1], [1, 0]], sort_order="col", sparse_size=(2, 2))
    with pytest.raises(UsageError, match="sorted by 'col', and is not"):
        Graph(edge_index)


def test_of_edges_that_have_changed_nothing_is_taken(generator: torch.Generator) -> None:
    edge_index = sorted_edges("col", generator).fill_cache_()
    edge_index.as_tensor()[0] = torch.randint(NODES, (25,), generator=generator)
    x = torch.randn(NODES, 3, generator=generator, requires_grad=True)
    found = torch.autograd.grad(aggregate(x, Graph(edge_index)).square().sum(), x)
    plain = Graph(edge_index.as_tensor().clone(), NODES)
    torch.testing.assert_close(found, torch.autograd.grad(aggregate(x, plain).square().sum(), x))
