from typing import Any

import pytest
import torch
from torch.func import functional_call, stack_module_state

from gnn_vpa import Graph, UsageError
from gnn_vpa.nn import GCN
from gnn_vpa.nn.deep import DeepGCN

EDGES = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
BATCH = torch.tensor([0, 0, 0, 1, 1])
AGGRS = ["sum", "mean", "max", "vpa"]


@pytest.fixture(autouse=True)
def _same_weights() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("aggr", AGGRS)
def test_without_a_residual_it_is_the_gcn(aggr: str, generator: torch.Generator) -> None:
    x = torch.randn(5, 3, generator=generator)
    models = []
    for cls in (GCN, DeepGCN):
        torch.manual_seed(0)
        models.append(cls(3, 2, aggr, width=8, depth=4).eval())
    plain, deep = (model(x, EDGES, BATCH) for model in models)
    assert torch.allclose(plain, deep, atol=1e-6)


@pytest.mark.parametrize("branch", [1 / 64, 0.5, 1.0])
def test_a_residual_preserves_the_variance_of_uncorrelated_parts(
    branch: float, generator: torch.Generator
) -> None:
    model = DeepGCN(16, 2, width=256, depth=2, branch=branch)
    loops = torch.arange(400).expand(2, -1)  # a neighbour each: vpa is the identity
    with torch.no_grad():
        conv: Any
        for conv in model.convs:
            for lin in (conv.lin_rel, conv.lin_root):
                lin.weight.normal_(0, lin.in_features**-0.5, generator=generator)
            conv.lin_rel.bias.zero_()
        first, second = model.signals(torch.randn(400, 16, generator=generator), loops)
    # relu halves the second moment, and two terms are added: the branch gets what is kept.
    assert second.var() / first.var() == pytest.approx(1, abs=0.1)


def test_it_yields_every_layer_and_reads_the_last_one_out() -> None:
    model = DeepGCN(1, 2, width=4, depth=7, branch=0.1).eval()
    signals = list(model.signals(torch.ones(5, 1), EDGES))
    assert [z.shape for z in signals] == [(5, 4)] * 7
    pooled = torch.zeros(2, 4).index_add(0, BATCH, signals[-1].relu())
    pooled /= torch.tensor([[3.0], [2.0]]).sqrt()
    expected = model.head.lin2(model.head.lin1(pooled).relu())
    assert torch.allclose(model(torch.ones(5, 1), EDGES, BATCH), expected, atol=1e-6)


def test_lanes_may_differ_in_their_residuals(generator: torch.Generator) -> None:
    models = [DeepGCN(3, 2, width=8, depth=5, branch=branch).double() for branch in (0.2, 1.0, 0.7)]
    x = torch.randn(5, 3, generator=generator, dtype=torch.float64)
    apart = torch.cat([model.eval()(x, EDGES, BATCH) for model in models])
    edges = torch.cat([EDGES + 5 * lane for lane in range(3)], dim=1)
    batch = torch.cat([BATCH + 2 * lane for lane in range(3)])
    together = functional_call(
        models[0], stack_module_state(models), (x.repeat(3, 1), edges, batch)
    )
    assert torch.allclose(together, apart, atol=1e-12)


@pytest.mark.parametrize("aggr", AGGRS)
def test_it_computes_the_same_on_merged_nodes(aggr: str) -> None:
    model = DeepGCN(1, 2, aggr, width=8, depth=6, branch=0.3).eval()
    star = torch.tensor([[1, 2, 3, 0, 0, 0], [0, 0, 0, 1, 2, 3]])
    whole = model(torch.ones(4, 1), star, torch.zeros(4, dtype=torch.int64))
    merged = Graph(torch.tensor([[1, 0], [0, 1]]), 2, torch.tensor([3, 1]))
    nodes = torch.tensor([1, 3])
    readout = Graph.readout(torch.tensor([0, 0]), multiplicity=nodes)
    small = model(torch.zeros(2, dtype=torch.int64), merged, readout, nodes)
    assert torch.allclose(small, whole, atol=1e-5)


def test_it_trains_at_128_layers() -> None:
    model = DeepGCN(1, 2, width=4, depth=128, branch=1 / 128)
    model(torch.ones(5, 1), EDGES, BATCH).sum().backward()
    gradients = [weight.grad for weight in model.parameters()]
    assert all(grad is not None and bool(grad.isfinite().all()) for grad in gradients)


@pytest.mark.parametrize("branch", [0.0, -0.1, 1.1])
def test_a_share_out_of_range_is_wrong_use(branch: float) -> None:
    with pytest.raises(UsageError, match="branch: expected a share"):
        DeepGCN(1, 2, branch=branch)
