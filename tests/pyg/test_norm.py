"""Degree normalisation with fourth roots."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gnn_vpa import UsageError
from gnn_vpa.pyg import _edges, _norm, vp_gcn_norm
from gnn_vpa.pyg._norm import vp_softmax


def dense(edges: tuple[Tensor, Tensor], num_nodes: int = 6) -> Tensor:
    """Return the matrix whose row ``i`` holds the weights of the in-edges of ``i``."""
    (source, target), weight = edges
    return weight.new_zeros(num_nodes, num_nodes).index_put((target, source), weight, True)


def by_hand(matrix: Tensor) -> Tensor:
    q = (matrix**2).sum(1)
    root = torch.where(q > 0, q**-0.25, 0)  # as in PyG, a node without in-edges sends nothing
    return matrix * root[:, None] * root[None, :]


def test_unit_weights_give_the_formula_of_the_paper() -> None:
    edge_index = torch.tensor([[0, 1, 1, 2, 0, 2], [1, 0, 2, 1, 2, 0]])  # a triangle, and node 3
    edges, weight = vp_gcn_norm(edge_index, num_nodes=4)
    degree = torch.tensor([2, 2, 2, 0])
    expected = ((degree[edges[0]] + 1) * (degree[edges[1]] + 1.0)) ** -0.25
    torch.testing.assert_close(weight, expected)
    assert edges.shape == (2, 10)


@pytest.mark.parametrize("improved", [False, True])
@pytest.mark.parametrize("loops", [False, True])
def test_weights_are_divided_by_fourth_roots(
    improved: bool, loops: bool, dtype: torch.dtype, generator: torch.Generator
) -> None:
    edge_index = torch.tensor([[1, 2, 3, 0, 4, 0], [0, 0, 0, 1, 3, 4]])
    weight = torch.rand(6, generator=generator, dtype=torch.float64).to(dtype)
    for some in (weight, None):
        matrix = dense((edge_index, torch.ones(6, dtype=dtype) if some is None else some))
        if loops:
            matrix = matrix + (2 if improved else 1) * torch.eye(6, dtype=dtype)
        result = vp_gcn_norm(edge_index, some, 6, improved, loops, dtype=dtype)
        torch.testing.assert_close(dense(result), by_hand(matrix))


def test_against_the_flow_the_out_degree_counts(edge_index: Tensor) -> None:
    forward = vp_gcn_norm(edge_index.flip(0), num_nodes=6)
    backward = vp_gcn_norm(edge_index, num_nodes=6, flow="target_to_source")
    assert torch.equal(backward[0].flip(0), forward[0])
    assert torch.equal(backward[1], forward[1])


def test_sparse_matrices_say_the_same_and_keep_parallel_edges(edge_index: Tensor) -> None:
    weight = torch.arange(1.0, 9)
    expected = dense(vp_gcn_norm(edge_index, weight, 6))
    coo = torch.sparse_coo_tensor(edge_index.flip(0), weight, (6, 6))
    order = edge_index[1].argsort(stable=True)
    rows = torch.bincount(edge_index[1], minlength=6).cumsum(0)
    csr = torch.sparse_csr_tensor(
        torch.cat([torch.zeros(1, dtype=torch.int64), rows]),
        edge_index[0][order],
        weight[order],
        (6, 6),
    )
    for adj_t in (coo, csr):
        torch.testing.assert_close(dense(vp_gcn_norm(adj_t)), expected)
    with pytest.raises(UsageError, match="transpose"):
        vp_gcn_norm(csr, flow="target_to_source")


def test_a_sparse_tensor_of_torch_sparse_stays_one(
    monkeypatch: pytest.MonkeyPatch, edge_index: Tensor
) -> None:
    class Fake:
        def __init__(self, row: Tensor, col: Tensor, value: Tensor, sparse_sizes: Any) -> None:
            self.parts, self.shape = (row, col, value), sparse_sizes

        def coo(self) -> tuple[Tensor, Tensor, Tensor]:
            return self.parts

        def size(self, dim: int) -> int:
            return int(self.shape[dim])

        def sizes(self) -> list[int]:
            return list(self.shape)

    monkeypatch.setattr(_norm, "SparseTensor", Fake)
    monkeypatch.setattr(_edges, "SparseTensor", Fake)
    result = vp_gcn_norm(Fake(edge_index[1], edge_index[0], torch.ones(8), (6, 6)))
    assert isinstance(result, Fake)
    row, col, value = result.parts
    expected = dense(vp_gcn_norm(edge_index, num_nodes=6))
    torch.testing.assert_close(dense((torch.stack([col, row]), value)), expected)


def test_no_degree_or_no_weight_gives_0_and_finite_gradients() -> None:
    edge_index = torch.tensor([[0, 1, 2], [1, 0, 0]])
    weight = torch.zeros(3, requires_grad=True)
    _, result = vp_gcn_norm(edge_index, weight, 4, add_self_loops=False)
    result.sum().backward()
    assert (result == 0).all()
    assert weight.grad is not None
    assert weight.grad.isfinite().all()


def test_gradients_are_right(generator: torch.Generator, edge_index: Tensor) -> None:
    weight = torch.rand(8, generator=generator, dtype=torch.float64) + 0.5
    torch.autograd.gradcheck(lambda w: vp_gcn_norm(edge_index, w, 6)[1], weight.requires_grad_())


def test_attention_weights_have_norm_1(edge_index: Tensor, x: Tensor) -> None:
    share = vp_softmax(x[edge_index[0]], edge_index[1], num_nodes=6)
    mass = torch.zeros_like(x).index_add(0, edge_index[1], share**2)
    torch.testing.assert_close(mass[:5], torch.ones_like(mass[:5]))
    in_order = edge_index[:, edge_index[1].argsort(stable=True)]
    ptr = torch.cat([torch.zeros(1), torch.bincount(in_order[1], minlength=6).cumsum(0)]).long()
    by_index = vp_softmax(x[in_order[0]], in_order[1], num_nodes=6)
    torch.testing.assert_close(vp_softmax(x[in_order[0]], ptr=ptr), by_index)


@settings(deadline=None)
@given(st.lists(st.integers(-16, 16), min_size=6, max_size=6))
def test_weights_of_each_node_may_have_a_size_of_their_own(powers: list[int]) -> None:
    edge_index = torch.tensor([[1, 2, 3, 0, 4, 0], [0, 0, 0, 1, 3, 4]])
    size = torch.tensor([10.0 ** (2 * power) for power in powers])[edge_index[1]]
    weight = torch.tensor([1.0, 0.5, 0.25, 1.0, 0.75, 1.0]) * size

    def run(weight: Tensor) -> tuple[Tensor, Tensor]:
        weight = weight.clone().requires_grad_()
        _, out = vp_gcn_norm(edge_index, weight, 6, add_self_loops=False)
        share = out / out.detach().where(out != 0, 1)
        return out.detach(), torch.autograd.grad(share.sum(), weight)[0] * size

    (out, slope), (right, right_slope) = run(weight), run(weight.double())
    torch.testing.assert_close(out, right.float(), rtol=1e-4, atol=0)
    torch.testing.assert_close(slope, right_slope.float(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("degree", [5, 5_000])
def test_attention_weights_of_half_types_have_norm_1(dtype: torch.dtype, degree: int) -> None:
    draw = torch.Generator().manual_seed(0)
    logits = torch.randn(degree, 2, generator=draw).to(dtype)
    share = vp_softmax(logits, torch.zeros(degree, dtype=torch.int64), num_nodes=1)
    assert share.dtype == dtype
    norm = share.double().square().sum(0).sqrt()
    torch.testing.assert_close(norm, torch.ones_like(norm), rtol=torch.finfo(dtype).eps, atol=0)


def test_whole_weights_are_not_rounded_to_whole_results() -> None:
    edge_index = torch.tensor([[0, 1], [1, 0]])
    _, whole = vp_gcn_norm(edge_index, torch.tensor([1, 1]))
    torch.testing.assert_close(whole, vp_gcn_norm(edge_index)[1])


def test_wrong_use_is_refused(edge_index: Tensor) -> None:
    with pytest.raises(UsageError, match="edge_weight: expected shape"):
        vp_gcn_norm(edge_index, torch.ones(8, 1), 6)
    with pytest.raises(UsageError, match="dim: expected 0"):
        vp_softmax(torch.ones(2, 8), edge_index[1], num_nodes=6, dim=1)
