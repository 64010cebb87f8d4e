"""VPAggregation, its name in PyG, and the readout."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.nn import GATConv, GraphConv, MultiAggregation, SAGEConv, aggr
from torch_geometric.nn.resolver import aggregation_resolver

from gnn_vpa import UsageError
from gnn_vpa.pyg import VPAggregation, global_vpa_pool, register

INDEX = torch.tensor([2, 0, 2, 2, 0, 4])  # groups 1 and 3 are empty
COUNT = torch.tensor([2.0, 1, 3, 1, 1])


def test_it_is_what_pyg_computes(x: Tensor) -> None:
    expected = aggr.VariancePreservingAggregation()(x, INDEX, dim_size=5)
    torch.testing.assert_close(VPAggregation()(x, INDEX, dim_size=5), expected)
    assert (expected[[1, 3]] == 0).all()


def test_it_is_the_sum_over_the_root_of_the_count(x: Tensor) -> None:
    total = aggr.SumAggregation()(x, INDEX, dim_size=5)
    expected = total / COUNT.sqrt().to(x.dtype).unsqueeze(1)
    torch.testing.assert_close(VPAggregation()(x, INDEX, dim_size=5), expected)


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2, -3])
def test_any_axis(dim: int, generator: torch.Generator) -> None:
    x = torch.randn(6, 6, 6, generator=generator)
    expected = aggr.VariancePreservingAggregation()(x, INDEX, dim_size=5, dim=dim)
    torch.testing.assert_close(VPAggregation()(x, INDEX, dim_size=5, dim=dim), expected)


def test_boundaries_say_the_same_as_an_index(x: Tensor) -> None:
    ptr, index = torch.tensor([0, 2, 2, 5, 6]), torch.tensor([0, 0, 2, 2, 2, 3])
    expected = VPAggregation()(x, index, dim_size=4)
    assert torch.equal(VPAggregation()(x, ptr=ptr), expected)
    assert torch.equal(VPAggregation()(x, index, ptr=ptr), expected)


def test_weights_enter_the_normaliser(x: Tensor) -> None:
    weight = torch.tensor([3.0, -1, 4, 0, 0.5, 0], dtype=x.dtype)
    out = VPAggregation()(weight.unsqueeze(1) * x, INDEX, dim_size=5, weight=weight)
    torch.testing.assert_close(out[2], (3 * x[0] + 4 * x[2]) / 5)
    assert (out[4] == 0).all()  # its only weight is 0


def test_a_weight_per_head_normalises_each_head(generator: torch.Generator) -> None:
    x, weight = torch.randn(6, 2, 3, generator=generator), torch.rand(6, 2, generator=generator)
    out = VPAggregation()(weight.unsqueeze(2) * x, INDEX, dim=0, weight=weight)
    for head in range(2):
        alone = VPAggregation()(weight[:, head, None] * x[:, head], INDEX, weight=weight[:, head])
        torch.testing.assert_close(out[:, head], alone)


def test_gradients_are_right_and_finite(generator: torch.Generator) -> None:
    x = torch.randn(6, 2, generator=generator, dtype=torch.float64, requires_grad=True)
    weight = torch.rand(6, generator=generator, dtype=torch.float64).requires_grad_()
    module = VPAggregation()
    torch.autograd.gradcheck(lambda x: module(x, INDEX), x)
    torch.autograd.gradcheck(lambda x, w: module(w[:, None] * x, INDEX, weight=w), (x, weight))
    zero = torch.zeros(6, dtype=torch.float64, requires_grad=True)
    module(zero[:, None] * x, INDEX, weight=zero).sum().backward()
    assert zero.grad is not None
    assert zero.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("weighted", [False, True])
def test_half_types_add_in_single_precision(dtype: torch.dtype, weighted: bool) -> None:
    ones, index = torch.ones(100_000, 1, dtype=dtype), torch.zeros(100_000, dtype=torch.int64)
    weight = torch.ones(100_000, dtype=dtype) if weighted else None
    out = VPAggregation()(ones, index, weight=weight)  # 100,000 exceeds what float16 can hold
    assert out.dtype == dtype
    torch.testing.assert_close(out, torch.full((1, 1), 100_000**0.5, dtype=dtype))


@settings(deadline=None)
@given(st.lists(st.integers(-37, 37), min_size=5, max_size=5))
def test_weights_of_each_group_may_have_a_size_of_their_own(powers: list[int]) -> None:
    draw = torch.Generator().manual_seed(0)
    size = torch.tensor([10.0**power for power in powers])[INDEX].unsqueeze(1)
    weight = (torch.rand(6, 3, generator=draw) + 0.25) * size
    x = torch.randn(6, 3, 2, generator=draw)

    def run(x: Tensor, weight: Tensor) -> list[Tensor]:
        weight = weight.clone().requires_grad_()
        out = VPAggregation()(x * weight.unsqueeze(-1), INDEX, dim=0, weight=weight)
        # The gradient is as large as the weights are small: after the chain rule of a gate.
        slope = torch.autograd.grad(out.square().sum(), weight)[0] * size.to(x.dtype)
        return [out.detach().float(), slope.float()]

    for found, right in zip(run(x, weight), run(x.double(), weight.double()), strict=True):
        torch.testing.assert_close(found, right, atol=1e-4, rtol=1e-4)


def test_a_weight_for_every_entry_and_whole_weights() -> None:
    x = torch.tensor([[3.0, 1.0], [4.0, 1.0]])
    index, one = torch.tensor([0, 0]), torch.ones(2, 2)
    out = VPAggregation()(x, index, weight=x)
    torch.testing.assert_close(out, torch.tensor([[7 / 5, 2 / 2**0.5]]))
    whole = VPAggregation()(one, index, weight=torch.tensor([1, 1]))
    torch.testing.assert_close(whole, torch.full((1, 2), 2**0.5))


def test_wrong_use_is_refused() -> None:
    x = torch.ones(6, 2)
    with pytest.raises(UsageError, match="weight: expected"):
        VPAggregation()(x, INDEX, weight=torch.ones(5))
    with pytest.raises(UsageError, match="x: expected floating-point"):
        VPAggregation()(x.long(), INDEX)
    with pytest.raises(UsageError, match="out of range"):
        VPAggregation()(x, INDEX, dim_size=3)
    with pytest.raises(UsageError, match="index: expected"):
        VPAggregation().forward(x)


def test_its_name_resolves_once_registered() -> None:
    register()
    register()
    assert isinstance(aggregation_resolver("vpa"), VPAggregation)
    layer = SAGEConv(4, 4, aggr="vpa")
    assert (layer.aggr, layer.fuse) == ("vpa", False)
    assert MultiAggregation(["sum", "vpa"])(torch.ones(6, 2), INDEX).shape == (5, 4)


def test_it_serves_a_layer_of_pyg(x: Tensor, edge_index: Tensor) -> None:
    torch.manual_seed(0)
    ours = GraphConv(4, 3, aggr=VPAggregation()).to(x.dtype)
    theirs = GraphConv(4, 3, aggr="variance_preserving").to(x.dtype)
    theirs.load_state_dict(ours.state_dict())
    torch.testing.assert_close(ours(x, edge_index), theirs(x, edge_index))
    assert GATConv(4, 4, aggr=VPAggregation()).aggr == "VPAggregation()"


@pytest.mark.parametrize("shape", [(6,), (6, 3), (2, 6, 3)])
def test_the_pool_has_the_shapes_of_those_of_pyg(shape: tuple[int, ...]) -> None:
    from torch_geometric.nn import global_add_pool

    x, batch = torch.ones(shape), torch.tensor([0, 0, 0, 0, 1, 1])
    roots = torch.tensor([2.0, 2**0.5]).view(-1, *[1] * (min(len(shape), 2) - 1))
    torch.testing.assert_close(global_vpa_pool(x, batch), global_add_pool(x, batch) / roots)
    torch.testing.assert_close(global_vpa_pool(x, None), global_add_pool(x, None) / 6**0.5)
    padded = global_vpa_pool(x, batch, size=3)
    assert padded.shape == global_add_pool(x, batch, size=3).shape
