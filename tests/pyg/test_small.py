"""Small batches that are not grouped: the same numbers as by our kernels."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GAT, GCN, GIN, GATConv, GATv2Conv, GINConv, GraphSAGE

import gnn_vpa
from gnn_vpa.errors import UsageError
from gnn_vpa.ops import Graph, use_backend
from gnn_vpa.ops import aggregate as by_kernels
from gnn_vpa.ops.internal import attend_by_parts
from gnn_vpa.pyg import _loops, _propagate
from gnn_vpa.pyg._along import aggregate
from gnn_vpa.pyg._gathered import Gathered
from gnn_vpa.pyg._norm import vp_gcn_norm
from gnn_vpa.pyg._small import Small, small, small_readout

AGGREGATIONS = ["sum", "mean", "vpa", "power(0.3)"]


def edges(seed: int = 0, nodes: int = 9, count: int = 25) -> Tensor:
    """Return edges with parallel ones, self-loops, and nodes that hear from no other."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(nodes - 2, (2, count), generator=generator)


def values_and_gradients(
    compute: Callable[..., Tensor], *given: Tensor
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return what comes out, and the gradients of a function of it."""
    leaves = [one.clone().requires_grad_() for one in given]
    out = compute(*leaves)
    return out.detach(), torch.autograd.grad((out.sin() * out).sum(), leaves)


@pytest.mark.parametrize("aggr", AGGREGATIONS)
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_are_those_of_the_kernels(aggr: str, weighted: bool) -> None:
    if weighted and aggr == "vpa":
        pytest.skip("squares of weights are for the kernels")
    torch.manual_seed(0)
    edge_index = edges()
    x = torch.randn(9, 4, dtype=torch.float64)
    given = (x, torch.rand(25, dtype=torch.float64)) if weighted else (x,)
    gathered = Gathered(edge_index[0], edge_index[1], 9)

    def ours(x: Tensor, *weight: Tensor) -> Tensor:
        return aggregate(x, gathered, aggr, *weight)

    def theirs(x: Tensor, *weight: Tensor) -> Tensor:
        return by_kernels(x, Graph(edge_index, 9), aggr, *weight)

    torch.testing.assert_close(
        values_and_gradients(ours, *given), values_and_gradients(theirs, *given)
    )


@pytest.mark.parametrize("aggr", ["sum", "mean", "vpa"])
@pytest.mark.parametrize("train_eps", [False, True])
def test_gin_adds_nodes_to_their_sums_at_once(
    kernel_device: str, aggr: str, train_eps: bool, taken: list[Small]
) -> None:
    torch.manual_seed(0)
    layer = gnn_vpa.convert(GINConv(nn.Linear(4, 3), eps=0.5, train_eps=train_eps), aggr=aggr)[0]
    layer = layer.double().to(kernel_device)
    x = torch.randn(9, 4, dtype=torch.float64).to(kernel_device).requires_grad_()
    edge_index = edges().to(kernel_device)
    out = layer(x, edge_index)
    assert len(taken) == 1
    with use_backend("reference"):
        expected = layer.nn(by_kernels(x, Graph(edge_index, 9), aggr) + (1 + layer.eps) * x)
    assert len(taken) == 1
    torch.testing.assert_close(out, expected)
    leaves = [x, *(p for p in layer.parameters() if p.requires_grad)]
    assert len(leaves) == 3 + train_eps
    found, right = (torch.autograd.grad(o.sin().sum(), leaves) for o in (out, expected))
    torch.testing.assert_close(found, right)


def test_attention_is_that_of_the_kernels() -> None:
    torch.manual_seed(0)
    edge_index = edges()
    x, alpha = torch.randn(9, 3, 4, dtype=torch.float64), torch.rand(25, 3, dtype=torch.float64)
    alpha[edge_index[1] == 0] *= 1e-30  # what a dropout may leave
    alpha[edge_index[1] == 1] = 0
    small = Gathered(edge_index[0], edge_index[1], 9)

    def theirs(x: Tensor, alpha: Tensor) -> Tensor:
        return by_kernels(x, Graph(edge_index, 9), "vpa", alpha, normalizer_grad=False)

    torch.testing.assert_close(
        values_and_gradients(small.attend, x, alpha), values_and_gradients(theirs, x, alpha)
    )


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[Small]:
    """Return the batches that were taken for small ones."""
    made: list[Small] = []

    def taking(edge_index: Tensor, x: Tensor, num_targets: int) -> Small | None:
        edges = small(edge_index, x, num_targets)
        made.extend([] if edges is None else [edges])
        return edges

    monkeypatch.setattr(_propagate, "small", taking)
    return made


class Classifier(nn.Module):
    """Layers and a readout."""

    def __init__(self, layers: nn.Module) -> None:
        super().__init__()
        self.layers = layers

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        from torch_geometric.nn import global_mean_pool

        out: Tensor = global_mean_pool(self.layers(x, edge_index), batch)
        return out


@pytest.mark.parametrize("make", [GIN, GCN, GAT, GraphSAGE])
def test_converted_networks_say_the_same(
    kernel_device: str, make: Callable[..., nn.Module], taken: list[Small]
) -> None:
    torch.manual_seed(0)
    model = gnn_vpa.convert(Classifier(make(4, 8, 3)))[0].double()
    x, batch = torch.randn(9, 4, dtype=torch.float64), torch.tensor([0] * 5 + [1] * 4)
    with use_backend("cpu"):
        right = values_and_gradients(lambda x: model(x, edges(), batch), x)
    assert len(taken) == 0
    model.to(kernel_device)
    edge_index, batch = edges().to(kernel_device), batch.to(kernel_device)
    said = values_and_gradients(lambda x: model(x, edge_index, batch), x.to(kernel_device))
    assert len(taken) == 3
    torch.testing.assert_close((said[0].cpu(), said[1][0].cpu()), (right[0], right[1][0]))


@pytest.mark.parametrize("make", [GIN, GCN, GAT, GraphSAGE])
def test_a_graph_that_is_kept_says_the_same_when_it_is_grouped(
    kernel_device: str, make: Callable[..., nn.Module], taken: list[Small]
) -> None:
    torch.manual_seed(0)
    model = gnn_vpa.convert(make(4, 8, 1))[0].double().to(kernel_device)
    x = torch.randn(9, 4, dtype=torch.float64).to(kernel_device)
    edge_index = edges().to(kernel_device)
    said = [values_and_gradients(lambda x: model(x, edge_index), x) for _ in range(9)]
    assert len(taken) >= 8
    torch.testing.assert_close(said[8], said[0])


def test_attention_counts_edges_that_are_asked_for(kernel_device: str) -> None:
    torch.manual_seed(0)
    layer = gnn_vpa.convert(GATConv((4, 5), 3, heads=2, add_self_loops=False))[0].double()
    x = torch.randn(9, 4, dtype=torch.float64), torch.randn(7, 5, dtype=torch.float64)
    with use_backend("cpu"):
        right = layer(x, edges())
    layer.to(kernel_device)
    found = layer(tuple(one.to(kernel_device) for one in x), edges().to(kernel_device))
    torch.testing.assert_close(found.cpu(), right)


@pytest.mark.parametrize("is_pair", [False, True])
def test_gradients_are_the_same_where_they_are_to_be_differentiated(
    kernel_device: str, is_pair: bool
) -> None:
    # What attention is made of hangs on each other: both ends' features, a layer that comes twice.
    torch.manual_seed(0)
    conv = gnn_vpa.convert(GATConv((3, 3) if is_pair else 3, 3, add_self_loops=False))[0].double()

    def gradients(device: str, create_graph: bool) -> list[Tensor]:
        x = torch.randn(9, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        x = x.to(device).requires_grad_()
        conv.to(device)
        edge_index = edges().to(device)
        out = conv((x, x), edge_index) if is_pair else conv(conv(x, edge_index), edge_index)
        leaves = [x, *conv.parameters()]
        first = torch.autograd.grad(out.sin().sum(), leaves, create_graph=create_graph)
        if create_graph:
            squares = torch.stack([one.square().sum() for one in first])
            second = torch.autograd.grad(squares.sum(), leaves, allow_unused=True)
            first += tuple(one for one in second if one is not None)
        return [one.detach().cpu() for one in first]

    with use_backend("reference"):
        right = gradients("cpu", create_graph=True)
    for backend in (None, "cpu"):
        if backend is None:
            plain, found = (gradients(kernel_device, create_graph=c) for c in (False, True))
        else:
            with use_backend(backend):
                plain, found = (gradients("cpu", create_graph=c) for c in (False, True))
        torch.testing.assert_close(plain, right[: len(plain)])
        torch.testing.assert_close(found, right)


@pytest.mark.parametrize("make", [GIN, GCN, GAT, GraphSAGE])
def test_many_gradients_at_once_are_those_of_each(
    kernel_device: str, make: Callable[..., nn.Module]
) -> None:
    torch.manual_seed(0)
    model = gnn_vpa.convert(make(4, 3, 1))[0].double().to(kernel_device)
    x = torch.randn(9, 4, dtype=torch.float64).to(kernel_device).requires_grad_()
    out = model(x, edges().to(kernel_device))
    along = torch.randn(5, *out.shape, dtype=torch.float64).to(kernel_device)
    right = torch.stack([torch.autograd.grad(out, x, one, retain_graph=True)[0] for one in along])

    def gradient(one: Tensor) -> Tensor:
        return torch.autograd.grad(out, x, one, retain_graph=True)[0]

    torch.testing.assert_close(torch.vmap(gradient)(along), right)


def test_a_readout_whose_groups_change_before_the_backward_pass_is_refused(
    kernel_device: str,
) -> None:
    x = torch.ones(6, 2, device=kernel_device, requires_grad=True)
    batch = torch.tensor([0, 0, 0, 1, 1, 1], device=kernel_device)
    out = gnn_vpa.VPAggregation()(x, batch, dim_size=2)
    batch.copy_(1 - batch)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_units_are_normalised_as_on_the_cpu() -> None:
    for seed in range(3):
        edge_index = edges(seed)
        for fill in (1.0, 2.0):
            found = _loops._unit_norm_by_torch(edge_index, 9, fill, torch.float64)
            right = vp_gcn_norm(edge_index, None, 9, fill == 2.0, dtype=torch.float64)
            torch.testing.assert_close(found, right)


def test_a_changed_tensor_has_other_edges(kernel_device: str, taken: list[Small]) -> None:
    x, edge_index = torch.randn(9, 4).to(kernel_device), edges().to(kernel_device)
    conv = gnn_vpa.convert(GraphSAGE(4, 4, 1))[0].to(kernel_device)
    conv(x, edge_index), conv(x, edge_index)
    assert taken[0] is taken[1]
    edge_index[0, 0] = (edge_index[0, 0] + 1) % 7
    torch.testing.assert_close(conv(x, edge_index), conv(x, edge_index.clone()))
    assert taken[2] is not taken[0]


def test_what_grouped_edges_alone_can_do_is_left_to_them(kernel_device: str) -> None:
    x, edge_index = torch.randn(9, 4).to(kernel_device), edges().to(kernel_device)
    assert small(edge_index, x, 9) is not None
    assert small(edge_index, x.half(), 9) is None
    assert small(edge_index.int(), x, 9) is None
    assert small(edge_index, torch.empty(9, 1 << 21, device=kernel_device), 9) is None
    torch.use_deterministic_algorithms(True)
    try:
        assert small(edge_index, x, 9) is None
    finally:
        torch.use_deterministic_algorithms(False)
    for backend in ("reference", "cpu"):
        with use_backend(backend):
            assert small(edge_index, x, 9) is None
    ours = small(edge_index, x, 9)
    assert ours is not None
    weight = torch.rand(25).to(kernel_device)
    right = by_kernels(x, edge_index, "vpa", weight)
    torch.testing.assert_close(aggregate(x, ours, "vpa", weight), right)


def test_small_batches_are_for_a_gpu() -> None:
    assert small(edges(), torch.randn(9, 4), 9) is None
    assert small_readout(torch.zeros(9, dtype=torch.int64), torch.randn(9, 4), 1) is None


@pytest.mark.parametrize("wrong", [-1, 9])
def test_an_edge_out_of_range_is_refused_where_pytorch_would_end(
    kernel_device: str, wrong: int
) -> None:
    edge_index = edges()
    edge_index[1, 3] = wrong
    x = torch.randn(9, 4).to(kernel_device)
    ours = small(edge_index.to(kernel_device), x, 9)
    assert ours is not None
    with pytest.raises(UsageError, match=f"target index {wrong} is out of range: expected 0 to 8"):
        aggregate(x, ours, "mean", torch.rand(25).to(kernel_device))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")
@pytest.mark.parametrize("make", [GIN, GCN, GAT, GraphSAGE, GATv2Conv])
def test_on_a_gpu_networks_say_what_they_do_on_the_cpu(make: Callable[..., nn.Module]) -> None:
    torch.manual_seed(0)
    layers = make(4, 8) if make is GATv2Conv else make(4, 8, 3)
    model = gnn_vpa.convert(Classifier(layers))[0].double()
    x, batch = torch.randn(9, 4, dtype=torch.float64), torch.tensor([0] * 5 + [1] * 4)
    right = values_and_gradients(lambda x: model(x, edges(), batch), x)
    model.cuda()
    said = values_and_gradients(lambda x: model(x, edges().cuda(), batch.cuda()), x.cuda())
    torch.testing.assert_close(said[0].cpu(), right[0])
    torch.testing.assert_close(said[1][0].cpu(), right[1][0])


def test_edges_that_count_for_nothing_are_not_attended_to() -> None:
    torch.manual_seed(0)
    edge_index = torch.cat([edges(), torch.arange(9).expand(2, 9)], 1)
    times = (torch.arange(34) % 3 > 0).double()
    times[25:] = 1  # of each target some edge counts
    x = torch.randn(9, 3, 4, dtype=torch.float64)
    source, target = torch.randn(2, 9, 3, dtype=torch.float64)

    def ours(x: Tensor, source: Tensor, target: Tensor) -> Tensor:
        small = Gathered(edge_index[0], edge_index[1], 9, is_wide=True)
        return small.attend_by_parts(x, source, target, 0.2, times)

    def theirs(x: Tensor, source: Tensor, target: Tensor) -> Tensor:
        return attend_by_parts(x, Graph(edge_index, 9), source, target, 0.2, times)

    torch.testing.assert_close(
        values_and_gradients(ours, x, source, target),
        values_and_gradients(theirs, x, source, target),
    )


def test_wide_sums_lose_no_digits() -> None:
    target = torch.zeros(1 << 18, dtype=torch.int64)
    x = torch.full((1 << 18, 1), 0.1)
    out = Gathered(None, target, 1, is_wide=True).sum(x, 0.5)
    assert out.dtype == torch.float32
    torch.testing.assert_close(out.item(), x[0].item() * 2**9, rtol=1e-7, atol=0)


def test_edges_that_are_kept_are_grouped_after_some_uses(kernel_device: str) -> None:
    edge_index = torch.tensor([[0, 1, 2], [1, 1, 0]], device=kernel_device)
    x = torch.ones(3, 4, device=kernel_device)
    found = [small(edge_index, x, 3) is not None for _ in range(12)]
    assert found == [True] * 8 + [False] * 4
    assert small(edge_index.clone(), x, 3) is not None  # a batch that is new
    edge_index[0, 0] = 2
    assert small(edge_index, x, 3) is not None  # … and so is one that has changed
