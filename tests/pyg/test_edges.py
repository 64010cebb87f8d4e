"""Every drop-in in every form in which its parent is given edges, between two kinds of nodes."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import typing as pyg_typing
from torch_geometric.nn import (
    GATConv,
    GATv2Conv,
    GCNConv,
    GINConv,
    GraphConv,
    SAGEConv,
    SimpleConv,
    TransformerConv,
)
from torch_geometric.typing import SparseTensor

from gnn_vpa.errors import UsageError
from gnn_vpa.ops import Graph
from gnn_vpa.ops.internal import power_sum
from gnn_vpa.pyg import VPGATConv, convert, vp_gcn_norm
from gnn_vpa.pyg.internal import plain_edges

# Four sources, two targets (0 and 1 are both), as in PyG's own tests; more of either, and fewer.
SHAPES = {"4 to 2": (4, 2), "2 to 4": (2, 4), "3 to 3": (3, 3)}
EDGES = {
    "4 to 2": [[0, 1, 2, 3], [0, 0, 1, 1]],
    "2 to 4": [[0, 1, 1, 0], [0, 0, 2, 3]],
    "3 to 3": [[0, 1, 2, 1], [1, 1, 1, 2]],
}
PARENTS: dict[str, Callable[[], nn.Module]] = {
    "GAT": lambda: GATConv((8, 8), 4, heads=2),
    "GAT without loops": lambda: GATConv((8, 8), 4, heads=2, add_self_loops=False),
    "GAT with residual": lambda: GATConv((8, 8), 4, heads=2, residual=True),
    "GATv2": lambda: GATv2Conv((8, 8), 4, heads=2),
    "GATv2 without loops": lambda: GATv2Conv((8, 8), 4, heads=2, add_self_loops=False),
    "Transformer": lambda: TransformerConv((8, 8), 4, heads=2),
    "SAGE": lambda: SAGEConv((8, 8), 4),
    "GraphConv": lambda: GraphConv((8, 8), 4),
    "GIN": lambda: GINConv(nn.Linear(8, 4)),
    "Simple": lambda: SimpleConv(),
}
# Those that can do without features of the targets.
LONE = [name for name in PARENTS if not name.startswith(("GATv2", "Transformer"))]


def coo(edge_index: Tensor, sizes: tuple[int, int]) -> Tensor:
    ones = torch.ones(edge_index.shape[1])
    return torch.sparse_coo_tensor(edge_index.flip(0), ones, sizes[::-1]).coalesce()


def sparse_tensor(edge_index: Tensor, sizes: tuple[int, int]) -> SparseTensor:
    if not pyg_typing.WITH_TORCH_SPARSE:
        pytest.skip("torch_sparse is not installed")
    return SparseTensor(row=edge_index[1], col=edge_index[0], sparse_sizes=sizes[::-1])


FORMS: dict[str, Callable[[Tensor, tuple[int, int]], Any]] = {
    "edge_index": lambda edges, _: edges,
    "COO": coo,
    "CSR": lambda edges, sizes: coo(edges, sizes).to_sparse_csr(),
    "CSC": lambda edges, sizes: coo(edges, sizes).to_sparse_csc(),
    "SparseTensor": sparse_tensor,
}
every_form = pytest.mark.parametrize("form", FORMS)
every_shape = pytest.mark.parametrize("shape", SHAPES)


def both(name: str) -> tuple[nn.Module, nn.Module]:
    torch.manual_seed(0)
    parent = PARENTS[name]().eval()
    return convert(parent)[0], parent


def takes_size(layer: nn.Module) -> bool:
    return "size" in inspect.signature(layer.forward).parameters


@every_shape
@every_form
@pytest.mark.parametrize("name", PARENTS)
def test_with_features_of_both_ends(name: str, form: str, shape: str) -> None:
    ours, parent = both(name)
    sizes, edges = SHAPES[shape], torch.tensor(EDGES[shape])
    x = tuple(torch.randn(size, 8) for size in sizes)
    expected = ours(x, edges)
    assert expected.shape == parent(x, edges).shape
    assert len(expected) == sizes[1]
    given = FORMS[form](edges, sizes)
    torch.testing.assert_close(ours(x, given), expected)
    if takes_size(parent):
        torch.testing.assert_close(ours(x, given, size=sizes), expected)
    if takes_size(parent) and form == "edge_index":
        with pytest.raises(ValueError, match="size"):
            ours(x, given, size=(sizes[0], sizes[1] + 1))


@pytest.mark.parametrize("form", ["edge_index", "CSR", "CSC", "COO"])
def test_gin_adds_nodes_to_their_sums_at_once_in_every_form(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, _ = convert(GINConv(nn.Linear(8, 8), eps=0.5))
    sizes, edges = SHAPES["3 to 3"], torch.tensor(EDGES["3 to 3"])
    x = torch.randn(3, 8, requires_grad=True)
    expected = ours((x, x), edges)  # in two steps
    taken: list[float] = []

    def noted(x: Tensor, graph: Graph, exponent: float, own: float) -> Tensor | None:
        taken.append(own)
        return power_sum(x, graph, exponent, own=own)

    monkeypatch.setattr("gnn_vpa.pyg._forms.power_sum", noted)
    out = ours(x, FORMS[form](edges, sizes))
    assert taken == [1.5]
    torch.testing.assert_close(out, expected)
    g = torch.randn(3, 8)
    for found, wanted in zip(*(torch.autograd.grad(o, x, g) for o in (out, expected)), strict=True):
        torch.testing.assert_close(found, wanted)


@every_shape
@every_form
@pytest.mark.parametrize("name", LONE)
def test_without_features_of_the_targets(name: str, form: str, shape: str) -> None:
    ours, parent = both(name)
    sizes, edges = SHAPES[shape], torch.tensor(EDGES[shape])
    x = (torch.randn(sizes[0], 8), None)
    expected = ours(x, edges, size=sizes)
    assert expected.shape == parent(x, edges, size=sizes).shape
    assert len(expected) == sizes[1]
    given = FORMS[form](edges, sizes)
    if form != "edge_index":  # which does not tell how many targets there are
        torch.testing.assert_close(ours(x, given), expected)
    torch.testing.assert_close(ours(x, given, size=sizes), expected)


@pytest.mark.parametrize("form", ["edge_index", "CSR", "SparseTensor"])  # what every parent takes
@pytest.mark.parametrize("name", LONE)
def test_with_one_neighbour_each_it_is_the_parent(name: str, form: str) -> None:
    ours, parent = both(name)
    # A loop would be a second neighbour.
    ours.add_self_loops = parent.add_self_loops = False  # type: ignore[assignment]
    sizes, edges = (4, 2), torch.tensor([[3, 1], [0, 1]])
    x = (torch.randn(4, 8), None)
    given = FORMS[form](edges, sizes)
    wanted = parent(x, given, size=sizes if form == "edge_index" else None)
    result = ours(x, given, size=sizes if form == "edge_index" else None)
    torch.testing.assert_close(result, wanted)


@pytest.mark.parametrize("loops", [False, True])
def test_asked_for_attention_weights_or_not_parallel_edges_count(loops: bool) -> None:
    layer, x = VPGATConv(4, 3, add_self_loops=loops), torch.randn(3, 4)
    edges = torch.tensor([[1, 1, 2, 0], [0, 0, 0, 1]])
    pointer, ones = torch.tensor([0, 3, 4, 4]), torch.ones(4)
    adj_t = torch.sparse_csr_tensor(pointer, edges[0], ones, (3, 3))
    expected, (_, weight) = layer(x, edges, return_attention_weights=True)
    for asked in ({"return_attention_weights": True}, {"size": (3, 3)}, {}):
        result = layer(x, adj_t, **asked)
        if isinstance(result, tuple):
            result, (_, found) = result
            torch.testing.assert_close(found, weight)
        torch.testing.assert_close(result, expected)
    torch.testing.assert_close(layer(x, adj_t, None, (3, 3)), expected)


@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_csc, torch.sparse_coo])
def test_a_matrix_is_read_once_and_again_when_it_changes(layout: torch.layout) -> None:
    dense = torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    matrix = dense.to_sparse(layout=layout)
    edges, values = plain_edges(matrix)
    again, _ = plain_edges(matrix)
    assert again is edges
    assert values is not None
    values[0] = 7.0
    _, changed_values = plain_edges(matrix)
    assert changed_values is not None
    assert float(changed_values[0]) == 7.0
    index = {
        torch.sparse_csr: lambda: matrix.col_indices(),
        torch.sparse_csc: lambda: matrix.row_indices(),
        torch.sparse_coo: lambda: matrix._indices()[1],
    }[layout]()
    index[0] = 2
    changed, _ = plain_edges(matrix)
    assert changed is not edges
    assert 2 in changed[:, 0].tolist()


def csr(edge_index: Tensor, values: Tensor, nodes: int) -> Tensor:
    return torch.sparse_coo_tensor(edge_index.flip(0), values, (nodes, nodes)).to_sparse_csr()


def ring(nodes: int) -> Tensor:
    """Edges from each node to the next two, by target and then by source."""
    edges = sorted(((i + step) % nodes, i) for i in range(nodes) for step in (1, 2))
    return torch.tensor(edges).t().flip(0)


@pytest.mark.parametrize("name", ["SAGE", "GraphConv", "Simple"])
def test_rows_of_a_matrix_are_not_grouped_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("edges are grouped")

    ours, _ = both(name)
    x, edges = torch.randn(5, 8), ring(5)
    expected = ours((x, x), edges)
    monkeypatch.setattr("gnn_vpa.ops._counting.coo_tocsr", refuse)
    torch.testing.assert_close(ours((x, x), csr(edges, torch.ones(10), 5)), expected)


@pytest.mark.parametrize("cls", [GCNConv, GraphConv])
def test_values_of_a_matrix_count_unless_all_are_1(cls: Any) -> None:
    ours, _ = convert(cls(8, 4).double())
    edges, weight = ring(5), torch.ones(10, dtype=torch.float64)
    matrix = csr(edges, weight, 5)
    x = torch.randn(5, 8, dtype=torch.float64, requires_grad=True)
    g = torch.randn(5, 4, dtype=torch.float64)

    def results(*given: Tensor) -> tuple[Tensor, ...]:
        out = ours(x, *given)
        return out, *torch.autograd.grad(out, x, g)

    torch.testing.assert_close(results(matrix), results(edges))
    matrix.values()[3] = weight[3] = 2.0
    assert not torch.allclose(ours(x, matrix), ours(x, edges))
    torch.testing.assert_close(results(matrix), results(edges, weight))
    matrix.values()[3] = 1.0
    torch.testing.assert_close(results(matrix), results(edges))


@pytest.mark.parametrize("cls", [GCNConv, GraphConv])
def test_values_of_a_matrix_that_are_learned_have_a_gradient(cls: Any) -> None:
    ours, _ = convert(cls(8, 4).double())
    x, edges = torch.randn(5, 8, dtype=torch.float64), ring(5)
    weight = torch.ones(10, dtype=torch.float64, requires_grad=True)
    found, expected = (
        torch.autograd.grad(ours(x, *given).square().sum(), weight)
        for given in ((csr(edges, weight, 5),), (edges, weight))
    )
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("pointer", [[0, 2, 1, 3], [0, 1, 2, 2], [1, 1, 2, 3]])
@pytest.mark.parametrize("name", ["SAGE", "GIN", "GraphConv", "GAT"])
def test_rows_of_a_matrix_that_are_none_are_refused(
    name: str, pointer: list[int], dtype: torch.dtype
) -> None:
    rows, columns = torch.tensor(pointer, dtype=dtype), torch.tensor([0, 1, 2], dtype=dtype)
    matrix = torch.sparse_csr_tensor(rows, columns, torch.ones(3), (3, 3), check_invariants=False)
    x = torch.randn(3, 8)
    with pytest.raises(UsageError, match="does not ascend"):
        both(name)[0]((x, x), matrix)


def test_a_sparse_tensor_of_torch_sparse_is_read_once() -> None:
    class Stored(SparseTensor):
        """Stands for one, as torch_sparse need not be installed: it hands out what it stores."""

        def __init__(self, row: Tensor, col: Tensor) -> None:
            self.parts = row, col, None

        def coo(self) -> tuple[Tensor, Tensor, None]:
            return self.parts

    matrix = Stored(torch.tensor([0, 1]), torch.tensor([1, 0]))
    edges, _ = plain_edges(matrix)
    assert plain_edges(matrix)[0] is edges
    matrix.parts[1][0] = 2
    assert plain_edges(matrix)[0].tolist() == [[2, 0], [0, 1]]


def test_other_weights_of_the_same_edges_are_normalised_anew() -> None:
    edge_index, weight = torch.tensor([[0, 1, 2], [1, 2, 0]]), torch.tensor([1.0, 2.0, 3.0])
    first = vp_gcn_norm(edge_index, weight)
    assert vp_gcn_norm(edge_index, weight)[1] is first[1]
    weight[0] = 5.0
    second = vp_gcn_norm(edge_index, weight)
    torch.testing.assert_close(second, vp_gcn_norm(edge_index.clone(), weight.clone()))
    assert not torch.equal(second[1], first[1])
    learned = weight.clone().requires_grad_()
    assert vp_gcn_norm(edge_index, learned)[1].requires_grad
    torch.testing.assert_close(vp_gcn_norm(edge_index)[1], vp_gcn_norm(edge_index.clone())[1])
