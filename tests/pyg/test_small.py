"""Small batches that are not grouped: the same numbers as by our kernels."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GAT, GCN, GIN, GATv2Conv, GINConv, GraphSAGE

import gnn_vpa
from gnn_vpa.errors import UsageError
from gnn_vpa.ops import Graph, use_backend
from gnn_vpa.ops import aggregate as by_kernels
from gnn_vpa.ops.internal import attend_by_parts
from gnn_vpa.pyg import _aggregation, _loops, _propagate, _small, attention
from gnn_vpa.pyg._along import aggregate
from gnn_vpa.pyg._norm import vp_gcn_norm
from gnn_vpa.pyg._small import Small, ungrouped

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
    small = Small(edge_index[0], edge_index[1], 9)

    def ours(x: Tensor, *weight: Tensor) -> Tensor:
        return aggregate(x, small, aggr, *weight)

    def theirs(x: Tensor, *weight: Tensor) -> Tensor:
        return by_kernels(x, Graph(edge_index, 9), aggr, *weight)

    torch.testing.assert_close(
        values_and_gradients(ours, *given), values_and_gradients(theirs, *given)
    )


@pytest.mark.parametrize("aggr", ["sum", "mean", "vpa"])
@pytest.mark.parametrize("train_eps", [False, True])
def test_gin_adds_nodes_to_their_sums_at_once(
    aggr: str, train_eps: bool, on_the_cpu: list[Small]
) -> None:
    torch.manual_seed(0)
    layer = gnn_vpa.convert(GINConv(nn.Linear(4, 3), eps=0.5, train_eps=train_eps), aggr=aggr)[0]
    layer = layer.double()
    x = torch.randn(9, 4, dtype=torch.float64, requires_grad=True)
    out = layer(x, edges())
    assert len(on_the_cpu) == 1
    with use_backend("reference"):
        expected = layer.nn(by_kernels(x, Graph(edges(), 9), aggr) + (1 + layer.eps) * x)
    assert len(on_the_cpu) == 1
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
    small = Small(edge_index[0], edge_index[1], 9)

    def theirs(x: Tensor, alpha: Tensor) -> Tensor:
        return by_kernels(x, Graph(edge_index, 9), "vpa", alpha, normalizer_grad=False)

    torch.testing.assert_close(
        values_and_gradients(small.attend, x, alpha), values_and_gradients(theirs, x, alpha)
    )


@pytest.fixture
def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> list[Small]:
    """Let every batch be a small one, as on a GPU; return those that were."""
    taken: list[Small] = []

    def taking(*arguments: Tensor) -> Small | None:
        made = ungrouped(*arguments)  # type: ignore[arg-type]
        if made is not None:
            taken.append(made)
        return made

    def readout(index: Tensor, x: Tensor, size: int | None) -> Small:
        return Small(None, index, int(index.max()) + 1 if size is None else size)

    monkeypatch.setattr(attention, "is_on_host", lambda _: False)
    monkeypatch.setattr(_propagate, "small", taking)
    monkeypatch.setattr(_aggregation, "small_readout", readout)
    return taken


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
    make: Callable[..., nn.Module], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    model = gnn_vpa.convert(Classifier(make(4, 8, 3)))[0].double()
    x, batch = torch.randn(9, 4, dtype=torch.float64), torch.tensor([0] * 5 + [1] * 4)
    right = values_and_gradients(lambda x: model(x, edges(), batch), x)
    with monkeypatch.context() as patch:
        taken: list[object] = []
        patch.setattr(attention, "is_on_host", lambda _: False)
        patch.setattr(_propagate, "small", lambda *a: taken.append(1) or ungrouped(*a))
        said = values_and_gradients(lambda x: model(x, edges(), batch), x)
    assert len(taken) >= 3
    torch.testing.assert_close(said, right)


def test_attention_in_parts_is_that_of_the_kernels() -> None:
    torch.manual_seed(0)
    edge_index = edges()
    x = torch.randn(9, 3, 4, dtype=torch.float64)
    source, target = torch.randn(2, 9, 3, dtype=torch.float64)
    small = Small(edge_index[0], edge_index[1], 9)

    def ours(x: Tensor, source: Tensor, target: Tensor) -> Tensor:
        return small.attend_by_parts(x, source, target, 0.2)

    def theirs(x: Tensor, source: Tensor, target: Tensor) -> Tensor:
        return attend_by_parts(x, Graph(edge_index, 9), source, target, 0.2, None)

    torch.testing.assert_close(
        values_and_gradients(ours, x, source, target),
        values_and_gradients(theirs, x, source, target),
    )


def test_attention_in_parts_has_first_and_second_derivatives() -> None:
    torch.manual_seed(0)
    edge_index = edges(nodes=6, count=9)
    small = Small(edge_index[0], edge_index[1], 6)
    x = torch.randn(6, 2, 2, dtype=torch.float64, requires_grad=True)
    source, target = (torch.randn(6, 2, dtype=torch.float64, requires_grad=True) for _ in "st")
    given = [x, source, target]

    def first(attend: Callable[..., Tensor], *rest: object) -> tuple[Tensor, ...]:
        out = attend(x, source, target, 0.2, *rest)
        return torch.autograd.grad(out.sin().sum(), given, create_graph=True)

    def second(gradients: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        squares = torch.stack([one.square().sum() for one in gradients])
        return torch.autograd.grad(squares.sum(), given)

    # The root takes no gradient, so that differences of values say nothing: PyTorch's own
    # derivatives of the plain formula do.
    found, plain = first(small.attend_by_parts), first(small._attend_by_parts, None)
    torch.testing.assert_close(found, plain)
    torch.testing.assert_close(second(found), second(plain))
    # Of some alone.
    parts = small.attend_by_parts(x.detach(), source, target.detach(), 0.2)
    alone = torch.autograd.grad(parts.sin().sum(), source, create_graph=True)[0]
    torch.testing.assert_close(alone, found[1])


def test_units_are_normalised_as_on_the_cpu() -> None:
    for seed in range(3):
        edge_index = edges(seed)
        for fill in (1.0, 2.0):
            found = _loops._unit_norm_by_torch(edge_index, 9, fill, torch.float64)
            right = vp_gcn_norm(edge_index, None, 9, fill == 2.0, dtype=torch.float64)
            torch.testing.assert_close(found, right)


def test_a_changed_tensor_has_other_edges(on_the_cpu: list[Small]) -> None:
    x, edge_index = torch.randn(9, 4), edges()
    conv = gnn_vpa.convert(GraphSAGE(4, 4, 1))[0]
    conv(x, edge_index), conv(x, edge_index)
    assert on_the_cpu[0] is on_the_cpu[1]
    edge_index[0, 0] = (edge_index[0, 0] + 1) % 7
    torch.testing.assert_close(conv(x, edge_index), conv(x, edge_index.clone()), rtol=0, atol=0)
    assert on_the_cpu[2] is not on_the_cpu[0]


def test_what_the_kernels_alone_can_do_is_left_to_them() -> None:
    x, edge_index = torch.randn(9, 4), edges()
    assert ungrouped(edge_index, x, 9) is not None
    assert ungrouped(edge_index, x.half(), 9) is None
    assert ungrouped(edge_index.int(), x, 9) is None
    assert ungrouped(edge_index, torch.empty(9, 1 << 21), 9) is None
    torch.use_deterministic_algorithms(True)
    try:
        assert ungrouped(edge_index, x, 9) is None
    finally:
        torch.use_deterministic_algorithms(False)
    with use_backend("reference"):
        assert ungrouped(edge_index, x, 9) is None
    assert _small.small(edge_index, x, 9) is None  # no GPU
    small = ungrouped(edge_index, x, 9)
    assert small is not None
    weight = torch.rand(25)
    right = by_kernels(x, edge_index, "vpa", weight)
    torch.testing.assert_close(aggregate(x, small, "vpa", weight), right)


@pytest.mark.parametrize("wrong", [-1, 9])
def test_an_edge_out_of_range_is_refused(wrong: int) -> None:
    edge_index = edges()
    edge_index[1, 3] = wrong
    with pytest.raises(UsageError, match=f"target index {wrong} is out of range: expected 0 to 8"):
        ungrouped(edge_index, torch.randn(9, 4), 9)


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
        small = Small(edge_index[0], edge_index[1], 9, is_wide=True)
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
    out = Small(None, target, 1, is_wide=True).sum(x, 0.5)
    assert out.dtype == torch.float32
    torch.testing.assert_close(out.item(), x[0].item() * 2**9, rtol=1e-7, atol=0)


def test_edges_that_are_kept_are_grouped_after_some_uses() -> None:
    edge_index, x = torch.tensor([[0, 1, 2], [1, 1, 0]]), torch.ones(3, 4)
    taken = [ungrouped(edge_index, x, 3) is not None for _ in range(12)]
    assert taken == [True] * 8 + [False] * 4
    assert ungrouped(edge_index.clone(), x, 3) is not None  # a batch that is new
    edge_index[0, 0] = 2
    assert ungrouped(edge_index, x, 3) is not None  # … and so is one that has changed
