"""Weights of any size: what is divided by their norm depends on their ratios alone."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gnn_vpa.ops import Graph, aggregate, use_backend
from gnn_vpa.ops._norm import normed

EDGES = torch.tensor([[0, 1, 2, 3, 0, 2, 1], [0, 0, 0, 1, 1, 2, 0]])  # node 3 has no neighbours
X = torch.tensor([[1.0, -2.0], [0.5, 3.0], [-1.0, 1.0], [2.0, 0.25]])
SHAPE = torch.tensor([1.0, -0.5, 0.25, 1.0, 0.75, 1.0, 0.5])
PROBE = torch.tensor([[1.0, -1.0], [0.5, 2.0], [3.0, 1.0], [1.0, 1.0]])

exponents = st.lists(st.integers(-37, 37), min_size=4, max_size=4)


def gradients(x: Tensor, weight: Tensor, graph: Graph, **options: Any) -> tuple[Tensor, ...]:
    """Return the result and the gradients to features and weights, of a fixed loss."""
    x, weight = x.clone().requires_grad_(), weight.clone().requires_grad_()
    out = aggregate(x, graph, "vpa", weight, **options)
    return out, *torch.autograd.grad((out * PROBE.to(out)).sum(), (x, weight))


def by_hand(x: Tensor, weight: Tensor, times: Tensor) -> tuple[Tensor, ...]:
    """Do the same by the definition, in float64, where squares of float32 do not overflow."""
    x, weight = x.double().requires_grad_(), weight.double().requires_grad_()
    source, target = EDGES
    messages = x[source] * (weight * times).unsqueeze(1)
    total = torch.zeros(4, 2, dtype=torch.float64).index_add(0, target, messages)
    mass = torch.zeros(4, dtype=torch.float64).index_add(0, target, times * weight**2)
    out = total / torch.where(mass > 0, mass, 1).sqrt().unsqueeze(1)
    return out, *torch.autograd.grad((out * PROBE).sum(), (x, weight))


@settings(deadline=None)
@given(exponents)
def test_weights_of_each_target_may_have_a_size_of_their_own(powers: list[int]) -> None:
    size = torch.tensor([10.0**power for power in powers])[EDGES[1]]
    for times in (None, torch.tensor([1.0, 2, 3, 1, 1, 5, 1])):
        weight = SHAPE * size
        found = gradients(X, weight, Graph(EDGES, 4), multiplicity=times)
        right = by_hand(X, weight, torch.ones(7) if times is None else times)
        torch.testing.assert_close(found[0], right[0].float())
        torch.testing.assert_close(found[1], right[1].float())
        # Gradients are as large as weights are small: compared after the chain rule of a gate.
        torch.testing.assert_close(
            (found[2].double() * size).float(), (right[2] * size).float(), atol=1e-5, rtol=1e-4
        )


@settings(deadline=None)
@given(st.integers(-450, 450))
def test_a_power_of_2_changes_no_bit_of_any_derivative(power: int) -> None:
    graph = Graph(EDGES, 4)

    def derivatives(power: int) -> tuple[Tensor, ...]:
        weight = (SHAPE.double() * 2.0**power).requires_grad_()
        x = X.double().requires_grad_()
        out = aggregate(x, graph, "vpa", weight)
        (first,) = torch.autograd.grad(out.square().sum(), weight, create_graph=True)
        (second,) = torch.autograd.grad(first[0] * 2.0**power, weight)
        return out, first * 2.0**power, second * 2.0**power

    for found, right in zip(derivatives(power), derivatives(0), strict=True):
        assert torch.equal(found, right)


def test_numbers_with_fewer_digits_still_count() -> None:
    weight = torch.tensor([3e-42, 4e-42])  # below the smallest normal number of float32
    out = aggregate(torch.ones(2, 1), torch.tensor([[0, 1], [0, 0]]), "vpa", weight)
    torch.testing.assert_close(out[0], torch.tensor([1.4]), rtol=1e-3, atol=0)


@pytest.mark.parametrize("through", [False, True])
def test_weights_that_are_all_0_give_0_and_take_no_gradient(through: bool) -> None:
    weight = SHAPE * (EDGES[1] != 0)
    out, to_x, to_weight = gradients(X, weight, Graph(EDGES, 4), normalizer_grad=through)
    assert (out[0] == 0).all()
    assert (to_weight[EDGES[1] == 0] == 0).all()
    assert to_x.isfinite().all()
    assert to_weight.isfinite().all()
    assert (out[1:3] != 0).all()


@settings(deadline=None)
@given(st.integers(-37, 38))
def test_an_edge_that_does_not_count_may_have_any_weight(power: int) -> None:
    times = torch.tensor([1.0, 1, 1, 1, 1, 1, 0])
    other = SHAPE.clone()
    other[6] = 10.0**power
    found = gradients(X, other, Graph(EDGES, 4), multiplicity=times)
    right = gradients(X, SHAPE[:6], Graph(EDGES[:, :6], 4))
    assert torch.equal(found[0], right[0])
    torch.testing.assert_close(found[1], right[1])
    torch.testing.assert_close(found[2][:6], right[2])
    assert found[2][6] == 0


def test_weights_may_be_of_a_wider_type_than_the_features() -> None:
    graph = Graph(EDGES, 4)
    found = aggregate(X, graph, "vpa", SHAPE.double() * 1e-200)
    torch.testing.assert_close(found, aggregate(X, graph, "vpa", SHAPE))
    whole = aggregate(X, graph, "vpa", torch.ones(7).long())
    torch.testing.assert_close(whole, aggregate(X, graph))


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_what_is_no_number_is_not_hidden(bad: float) -> None:
    weight = SHAPE.clone()
    weight[0] = bad
    out = aggregate(X, Graph(EDGES, 4), "vpa", weight)
    assert out[0].isnan().all()
    assert out[1:].isfinite().all()


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
def test_in_batches_compiled_and_by_the_reference(size: float) -> None:
    graph = Graph(EDGES, 4)
    weights = torch.stack([SHAPE, SHAPE.flip(0), SHAPE.abs()]) * size

    def run(weight: Tensor) -> Tensor:
        return aggregate(X, graph, "vpa", weight)

    right = torch.stack([run(weight / size) for weight in weights])
    torch.testing.assert_close(torch.func.vmap(run)(weights), right)
    compiled = torch.compile(run, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(weights[0]), right[0])
    with use_backend("reference"):
        torch.testing.assert_close(run(weights[0]), right[0])
    slope = torch.func.grad(lambda weight: (run(weight) * PROBE).sum())
    plain = gradients(X, SHAPE, graph)[2]
    torch.testing.assert_close(slope(weights[0]) * size, plain, atol=1e-5, rtol=1e-4)


@settings(deadline=None)
@given(exponents)
def test_parts_make_up_the_weights(powers: list[int]) -> None:
    weight = SHAPE * torch.tensor([10.0**power for power in powers])[EDGES[1]]
    norm = normed(weight, Graph(EDGES, 4))
    assert torch.equal(norm.unit.squeeze(1) * norm.size[EDGES[1], 0], weight)
    assert torch.equal(torch.frexp(norm.size).mantissa, torch.full((4, 1), 0.5))
    mass = torch.zeros(4, dtype=torch.float64).index_add(0, EDGES[1], weight.double() ** 2)
    right = torch.where(mass > 0, mass, torch.inf).rsqrt().float()
    torch.testing.assert_close(norm.inverse_norm.squeeze(1), right)
