"""``attend`` against a softmax written by hand."""

from collections.abc import Callable
from typing import Literal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gnn_vpa.ops import Graph, aggregate, attend, use_backend
from gnn_vpa.ops._attend import attend_by_power

from .conftest import Case


def by_hand(
    x: Tensor,
    case: Case,
    logits: Tensor,
    aggr: Literal["sum", "vpa"],
    multiplicity: Tensor | None,
    through: bool,
) -> Tensor:
    source, target = case.edge_index.to(x.device)
    count = torch.ones(len(source)).to(x) if multiplicity is None else multiplicity.to(x)
    tail = [1] * (x.dim() - logits.dim())
    out = []
    for i in range(case.num_targets):
        mine = (target == i) & (count > 0)
        if not bool(mine.any()):
            out.append(torch.zeros_like(x[0]))
            continue
        times = count[mine].view(-1, *[1] * (logits.dim() - 1))
        mass = torch.exp(logits[mine])
        share = mass / (mass * times).sum(0)
        total = (x[source[mine]] * (share * times).view(*share.shape, *tail)).sum(0)
        if aggr == "vpa":
            norm = (share**2 * times).sum(0).sqrt()
            norm = norm if through else norm.detach()
            total = total / norm.view(*norm.shape, *tail)
        out.append(total)
    return torch.stack(out)


@pytest.mark.parametrize("aggr", ["sum", "vpa"])
@pytest.mark.parametrize("through", [False, True], ids=["constant", "through"])
@pytest.mark.parametrize("counted", [False, True], ids=["single", "multiple"])
@pytest.mark.parametrize("heads", [None, 3])
def test_values_and_gradients(
    random_case: Case,
    device: str,
    aggr: Literal["sum", "vpa"],
    through: bool,
    counted: bool,
    heads: int | None,
    same: Callable[..., None],
) -> None:
    draw = torch.Generator().manual_seed(0)
    num_edges = random_case.edge_index.shape[1]
    shape, size = ((5,), (num_edges,)) if heads is None else ((heads, 5), (num_edges, heads))
    x = torch.randn(random_case.num_sources, *shape, generator=draw, dtype=torch.float64)
    logits = torch.randn(size, generator=draw, dtype=torch.float64)
    counts = torch.randint(0, 4, (num_edges,), generator=draw).to(device) if counted else None
    graph = Graph(random_case.edge_index.to(device), random_case[1:])
    same(
        lambda x, e: attend(x, graph, e, aggr, counts, normalizer_grad=through),
        lambda x, e: by_hand(x, random_case, e, aggr, counts, through),
        x.to(device),
        logits.to(device),
        tolerance=1e-10,
    )


@pytest.mark.parametrize("aggr", ["sum", "vpa"])
def test_the_fast_path_equals_the_reference_path(
    case: Case, device: str, aggr: Literal["sum", "vpa"], same: Callable[..., None]
) -> None:
    if case.num_targets == 0:
        pytest.skip("attention over no targets has nothing to compare")
    x = torch.randn(case.num_sources, 2, 3, dtype=torch.float64, device=device)
    logits = torch.randn(case.edge_index.shape[1], 2, dtype=torch.float64, device=device)
    graph = Graph(case.edge_index.to(device), case[1:])

    def plain(x: Tensor, e: Tensor) -> Tensor:
        with use_backend("reference"):
            return attend(x, graph, e, aggr)

    same(lambda x, e: attend(x, graph, e, aggr), plain, x, logits, tolerance=1e-11)


def test_uniform_attention_is_mean_and_vpa(random_case: Case, device: str) -> None:
    x = torch.randn(random_case.num_sources, 4, device=device)
    graph = Graph(random_case.edge_index.to(device), random_case[1:])
    logits = torch.full((graph.num_edges,), 3.0, device=device)
    torch.testing.assert_close(attend(x, graph, logits, "sum"), aggregate(x, graph, "mean"))
    torch.testing.assert_close(attend(x, graph, logits, "vpa"), aggregate(x, graph, "vpa"))


def test_attention_to_one_neighbour_is_that_neighbour(device: str) -> None:
    edge_index = torch.tensor([[1, 2, 3], [0, 0, 0]], device=device)
    x = torch.randn(4, 3, device=device)
    out = attend(x, edge_index, torch.tensor([0.0, 80.0, 0.0], device=device))
    torch.testing.assert_close(out[0], x[2])


@pytest.mark.parametrize("big", [1e4, -1e4])
def test_large_logits_do_not_overflow(device: str, big: float) -> None:
    edge_index = torch.tensor([[1, 2], [0, 0]], device=device)
    x = torch.randn(3, 3, device=device)
    out = attend(x, edge_index, torch.tensor([big, big], device=device))
    torch.testing.assert_close(out[0], (x[1] + x[2]) / 2**0.5)


def test_half_types(random_case: Case, device: str) -> None:
    x = torch.randn(random_case.num_sources, 2, 8, device=device)
    graph = Graph(random_case.edge_index.to(device), random_case[1:])
    logits = torch.randn(graph.num_edges, 2, device=device)
    exact = attend(x, graph, logits)
    out = attend(x.bfloat16(), graph, logits.bfloat16())
    assert out.dtype == torch.bfloat16
    assert (out.float() - exact).norm() < 2e-2 * exact.norm()


@settings(deadline=None)
@given(st.floats(-(2.0**100), 2.0**100, width=32), st.sampled_from(["sum", "vpa"]))
def test_an_edge_that_does_not_count_may_have_any_logit(
    high: float, aggr: Literal["sum", "vpa"]
) -> None:
    edge_index, times = torch.tensor([[1, 2, 3], [0, 0, 0]]), torch.tensor([2.0, 1.0, 0.0])
    draw = torch.Generator().manual_seed(0)

    def run(count: int, logits: Tensor) -> tuple[Tensor, ...]:
        x = torch.randn(4, 3, generator=draw.manual_seed(0)).requires_grad_()
        logits = logits.requires_grad_()
        out = attend(x, edge_index[:, :count], logits, aggr, times[:count], normalizer_grad=True)
        return out, *torch.autograd.grad(out.square().sum(), (x, logits))

    found, right = run(3, torch.tensor([0.5, -0.5, high])), run(2, torch.tensor([0.5, -0.5]))
    assert torch.equal(found[0], right[0])
    assert torch.equal(found[1], right[1])
    assert torch.equal(found[2], torch.cat([right[2], torch.zeros(1)]))


def test_lanes_of_either_form_bear_an_edge_that_does_not_count() -> None:
    x, logits = torch.ones(3, 2), torch.tensor([0.0, 100.0], requires_grad=True)
    graph = Graph(torch.tensor([[1, 2], [0, 0]]), 3, multiplicity=torch.tensor([2, 0]))
    for power in (0.0, 0.5):
        out = attend_by_power(x, graph, logits, torch.full((3,), power))
        torch.testing.assert_close(out[0], torch.full((2,), 2**power))
        (slope,) = torch.autograd.grad(out.sum(), logits)
        assert torch.equal(slope, torch.zeros(2))
