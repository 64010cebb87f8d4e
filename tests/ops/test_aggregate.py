"""``aggregate`` against its definition, target by target."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from gnn_vpa.ops import Graph, aggregate, use_backend

from .conftest import Case

AGGREGATIONS = ("sum", "mean", "max", "vpa")
LINEAR = ("sum", "mean", "vpa")


def inputs(
    case: Case,
    shape: tuple[int, ...],
    device: str,
    heads: int | None = None,
    dtype: torch.dtype = torch.float64,
) -> tuple[Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(1)
    x = torch.randn(case.num_sources, *shape, generator=draw, dtype=dtype)
    num_edges = case.edge_index.shape[1]
    size = (num_edges,) if heads is None else (num_edges, heads)
    weight = torch.rand(size, generator=draw, dtype=dtype) + 0.1
    multiplicity = torch.randint(0, 4, (num_edges,), generator=draw)
    return x.to(device), weight.to(device), multiplicity.to(device)


def graph_of(case: Case, device: str) -> Graph:
    return Graph(case.edge_index.to(device), (case.num_sources, case.num_targets))


@pytest.mark.parametrize("aggr", AGGREGATIONS)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("counted", [False, True], ids=["single", "multiple"])
def test_values_and_gradients_follow_the_definition(
    case: Case,
    device: str,
    aggr: str,
    weighted: bool,
    counted: bool,
    definition: Callable[..., Tensor],
    same: Callable[..., None],
) -> None:
    if case.num_targets > 1000 and (weighted or counted or aggr == "max"):
        pytest.skip("the definition is a loop over targets: one large case is enough")
    x, weight, multiplicity = inputs(case, (3,), device)
    graph = graph_of(case, device)
    times = multiplicity if counted else None

    def ours(x: Tensor, w: Tensor) -> Tensor:
        return aggregate(x, graph, aggr, w if weighted else None, times)

    def by_hand(x: Tensor, w: Tensor) -> Tensor:
        return definition(x, case, aggr, w if weighted else None, times)

    same(ours, by_hand, x, weight, tolerance=1e-10)


@pytest.mark.parametrize("aggr", AGGREGATIONS)
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (2, 1, 4), (0,), (2, 0, 3), (257,)])
def test_features_of_any_trailing_shape(
    random_case: Case,
    device: str,
    aggr: str,
    shape: tuple[int, ...],
    definition: Callable[..., Tensor],
    same: Callable[..., None],
) -> None:
    x, weight, _ = inputs(random_case, shape, device)
    graph = graph_of(random_case, device)
    same(
        lambda x, w: aggregate(x, graph, aggr, w),
        lambda x, w: definition(x, random_case, aggr, w, None),
        x,
        weight,
        tolerance=1e-10,
    )


@pytest.mark.parametrize("aggr", AGGREGATIONS)
@pytest.mark.parametrize("shape", [(3,), (3, 4), (3, 2, 2)])
def test_a_weight_for_each_head(
    random_case: Case,
    device: str,
    aggr: str,
    shape: tuple[int, ...],
    definition: Callable[..., Tensor],
    same: Callable[..., None],
) -> None:
    x, weight, multiplicity = inputs(random_case, shape, device, heads=3)
    graph = graph_of(random_case, device)
    same(
        lambda x, w: aggregate(x, graph, aggr, w, multiplicity),
        lambda x, w: definition(x, random_case, aggr, w, multiplicity),
        x,
        weight,
        tolerance=1e-10,
    )


@pytest.mark.parametrize("aggr", AGGREGATIONS)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_the_fast_path_equals_the_reference_path(
    case: Case,
    device: str,
    aggr: str,
    weighted: bool,
    same: Callable[..., None],
    dtype: torch.dtype,
) -> None:
    x, weight, _ = inputs(case, (5,), device, dtype=dtype)
    graph = graph_of(case, device)

    def fast(x: Tensor, w: Tensor) -> Tensor:
        return aggregate(x, graph, aggr, w if weighted else None)

    def plain(x: Tensor, w: Tensor) -> Tensor:
        with use_backend("reference"):
            return fast(x, w)

    same(fast, plain, x, weight, tolerance=1e-11 if dtype == torch.float64 else 1e-3)


@pytest.mark.parametrize("aggr", AGGREGATIONS)
def test_multiplicity_equals_that_many_parallel_edges(
    random_case: Case, device: str, aggr: str, same: Callable[..., None]
) -> None:
    x, weight, multiplicity = inputs(random_case, (3,), device)
    graph = graph_of(random_case, device)
    repeated = random_case.edge_index.to(device).repeat_interleave(multiplicity, dim=1)
    expanded = Graph(repeated, (random_case.num_sources, random_case.num_targets))
    same(
        lambda x, w: aggregate(x, graph, aggr, w, multiplicity),
        lambda x, w: aggregate(x, expanded, aggr, w.repeat_interleave(multiplicity)),
        x,
        weight,
        tolerance=1e-10,
    )


@pytest.mark.parametrize("aggr", AGGREGATIONS)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_a_graph_may_carry_the_multiplicities(
    random_case: Case, device: str, aggr: str, weighted: bool, same: Callable[..., None]
) -> None:
    x, weight, multiplicity = inputs(random_case, (3,), device)
    graph = graph_of(random_case, device)
    counted = Graph(random_case.edge_index.to(device), random_case[1:], multiplicity)
    same(
        lambda x, w: aggregate(x, counted, aggr, w if weighted else None),
        lambda x, w: aggregate(x, graph, aggr, w if weighted else None, multiplicity),
        x,
        weight,
        tolerance=1e-12,
    )


@pytest.mark.parametrize("aggr", LINEAR)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_first_and_second_derivatives(device: str, aggr: str, weighted: bool) -> None:
    edge_index = torch.tensor([[0, 1, 2, 2, 3, 3], [1, 0, 0, 0, 2, 3]], device=device)
    draw = torch.Generator().manual_seed(2)
    x = torch.randn(4, 2, generator=draw, dtype=torch.float64).to(device).requires_grad_()
    w = torch.rand(6, generator=draw, dtype=torch.float64).to(device).requires_grad_()
    function = (
        (lambda x, w: aggregate(x, edge_index, aggr, w))
        if weighted
        else (lambda x: aggregate(x, edge_index, aggr))
    )
    leaves = (x, w) if weighted else (x,)
    assert torch.autograd.gradcheck(function, leaves)
    assert torch.autograd.gradgradcheck(function, leaves)


def test_derivatives_of_the_maximum(device: str) -> None:
    edge_index = torch.tensor([[0, 1, 2, 2, 3], [1, 0, 0, 3, 3]], device=device)
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    x = x.to(device).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: aggregate(x, edge_index, "max"), x)
    assert torch.autograd.gradgradcheck(lambda x: aggregate(x, edge_index, "max"), x)


def test_ties_share_the_gradient_of_the_maximum(device: str) -> None:
    x = torch.tensor([[1.0], [1.0], [0.0]], device=device, requires_grad=True)
    edge_index = torch.tensor([[0, 1, 2], [2, 2, 2]], device=device)
    aggregate(x, edge_index, "max").sum().backward()
    torch.testing.assert_close(x.grad.cpu(), torch.tensor([[0.5], [0.5], [0.0]]))


def test_the_maximum_of_minus_infinity_and_of_nan(device: str) -> None:
    x = torch.tensor([[-torch.inf, torch.nan], [-torch.inf, 1.0]], device=device)
    out = aggregate(x, torch.tensor([[0, 1], [0, 0]], device=device), "max")
    assert out[0, 0] == -torch.inf
    assert out[0, 1].isnan()
    assert (out[1] == 0).all()


@pytest.mark.parametrize("aggr", AGGREGATIONS)
def test_isolated_nodes_get_zero_and_no_gradient_is_nan(device: str, aggr: str) -> None:
    x = torch.randn(4, 2, device=device, requires_grad=True)
    weight = torch.zeros(2, device=device, requires_grad=True)
    edge_index = torch.tensor([[0, 1], [2, 2]], device=device)
    out = aggregate(x, edge_index, aggr, weight)
    assert (out[[0, 1, 3]] == 0).all()
    out.sum().backward()
    assert x.grad.isfinite().all()
    assert weight.grad.isfinite().all()


@pytest.mark.parametrize("aggr", AGGREGATIONS)
@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16], ids=str)
def test_half_types_accumulate_in_float32(device: str, aggr: str, half: torch.dtype) -> None:
    # 4,096 times 0.1: a running sum in bfloat16 would stop growing at 32.
    degree = 4096
    leaves = torch.arange(1, degree + 1, device=device)
    graph = Graph(torch.stack([leaves, leaves * 0]), degree + 1)
    x = torch.full((degree + 1, 3), 0.1, dtype=half, device=device)
    exact = aggregate(x.double(), graph, aggr)[0]
    out = aggregate(x, graph, aggr)
    assert out.dtype == half
    torch.testing.assert_close(out[0].double(), exact, rtol=torch.finfo(half).eps, atol=0)


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16], ids=str)
def test_half_types_do_not_overflow_before_the_normaliser(device: str, half: torch.dtype) -> None:
    # The sum, 4e5, is beyond float16; divided by sqrt(N) it is 2e3.
    degree = 40_000
    leaves = torch.arange(1, degree + 1, device=device)
    graph = Graph(torch.stack([leaves, leaves * 0]), degree + 1)
    x = torch.full((degree + 1, 1), 10.0, dtype=half, device=device)
    weight = torch.ones(degree, dtype=half, device=device, requires_grad=True)
    for out in (aggregate(x, graph, "vpa"), aggregate(x, graph, "vpa", weight)):
        torch.testing.assert_close(
            out[0].double().cpu(), torch.tensor([2e3]).double(), rtol=4e-3, atol=0
        )


def test_a_hub_of_degree_one_million(device: str) -> None:
    degree = 1_000_000
    leaves = torch.arange(1, degree + 1, device=device)
    graph = Graph(torch.stack([leaves, leaves * 0]), degree + 1)
    x = torch.full((degree + 1, 2), 0.1, device=device, requires_grad=True)
    total = 0.1 * degree
    expected = {"sum": total, "mean": 0.1, "vpa": total / degree**0.5, "max": 0.1}
    for aggr, value in expected.items():
        out = aggregate(x, graph, aggr)
        torch.testing.assert_close(out[0].cpu(), torch.full((2,), value), rtol=1e-5, atol=0)
        assert (out[1:] == 0).all()
    (grad,) = torch.autograd.grad(aggregate(x, graph, "vpa").sum(), x)
    torch.testing.assert_close(grad[1:].cpu(), torch.full((degree, 2), degree**-0.5))


@pytest.mark.parametrize("aggr", AGGREGATIONS)
def test_inputs_that_are_not_contiguous(
    random_case: Case, device: str, aggr: str, same: Callable[..., None]
) -> None:
    graph = graph_of(random_case, device)
    wide = torch.randn(8, random_case.num_sources, 2, dtype=torch.float64, device=device)
    weight = torch.rand(random_case.edge_index.shape[1], 2, dtype=torch.float64, device=device)
    same(
        lambda x, w: aggregate(x[::2].transpose(0, 1), graph, aggr, w[:, 1]),
        lambda x, w: aggregate(x[::2].transpose(0, 1).contiguous(), graph, aggr, w[:, 1].clone()),
        wide,
        weight,
        tolerance=1e-12,
    )


@pytest.mark.parametrize("aggr", AGGREGATIONS)
def test_every_run_gives_the_same_bits(device: str, aggr: str) -> None:
    draw = torch.Generator().manual_seed(4)
    edge_index = torch.randint(500, (2, 20_000), generator=draw).to(device)
    edge_index[1, :5000] = 7
    x = torch.randn(500, 33, generator=draw).to(device)
    weight = torch.rand(20_000, generator=draw).to(device)

    def run() -> tuple[Any, ...]:
        leaf, scale = x.clone().requires_grad_(), weight.clone().requires_grad_()
        out = aggregate(leaf, edge_index.clone(), aggr, scale)
        out.square().sum().backward()
        return out, leaf.grad, scale.grad

    first = run()
    for _ in range(5):
        assert all(torch.equal(a, b) for a, b in zip(first, run(), strict=True))


@pytest.mark.parametrize("aggr", LINEAR)
def test_no_tensor_of_edges_times_features_is_made(random_case: Case, aggr: str) -> None:
    from torch.utils._python_dispatch import TorchDispatchMode

    num_edges, width = random_case.edge_index.shape[1], 16
    largest = [0]

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            out = func(*args, **(kwargs or {}))
            for t in out if isinstance(out, tuple | list) else [out]:
                if isinstance(t, torch.Tensor):
                    largest[0] = max(largest[0], t.numel())
            return out

    x = torch.randn(random_case.num_sources, width, requires_grad=True)
    weight = torch.rand(num_edges, requires_grad=True)
    with Watch():
        aggregate(x, random_case.edge_index, aggr, weight).sum().backward()
    assert largest[0] < num_edges * width


def test_weighted_vpa_can_leave_the_normaliser_out_of_the_gradient(
    random_case: Case, device: str
) -> None:
    x, weight, _ = inputs(random_case, (3,), device)
    graph = graph_of(random_case, device)
    squares = aggregate(weight.new_ones(random_case.num_sources), graph, "sum", weight**2)
    expected, got = weight.clone().requires_grad_(), weight.clone().requires_grad_()
    scale = torch.where(squares > 0, squares.clamp(min=1e-30).rsqrt(), 0)
    (aggregate(x, graph, "sum", expected) * scale[:, None]).square().sum().backward()
    aggregate(x, graph, "vpa", got, normalizer_grad=False).square().sum().backward()
    torch.testing.assert_close(got.grad, expected.grad)


@pytest.mark.parametrize("aggr", LINEAR)
@pytest.mark.parametrize("weighted", [False, True])
def test_under_inference_mode_then_training(random_case: Case, aggr: str, weighted: bool) -> None:
    x, weight, _ = inputs(random_case, (3,), "cpu")
    edge_index, w = random_case.edge_index.clone(), weight if weighted else None
    with torch.inference_mode():
        first = aggregate(x, edge_index, aggr, w)
    leaf = x.clone().requires_grad_()
    out = aggregate(leaf, edge_index, aggr, w)
    out.sum().backward()
    assert torch.equal(first, out.detach())
