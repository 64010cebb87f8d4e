"""Graphs, and the definitions written as loops."""

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from torch import Tensor


class Case(NamedTuple):
    """A graph and its number of sources and targets."""

    edge_index: Tensor
    num_sources: int
    num_targets: int


def _random(num_sources: int, num_targets: int, num_edges: int) -> Case:
    draw = torch.Generator().manual_seed(num_edges)
    source = torch.randint(max(num_sources, 1), (num_edges,), generator=draw)
    target = torch.randint(max(num_targets, 1), (num_edges,), generator=draw)
    return Case(torch.stack([source, target]), num_sources, num_targets)


def _star(degree: int) -> Case:
    leaves = torch.arange(1, degree + 1)
    return Case(torch.stack([leaves, torch.zeros_like(leaves)]), degree + 1, degree + 1)


CASES: dict[str, Callable[[], Case]] = {
    "random": lambda: _random(30, 30, 200),
    "bipartite": lambda: _random(7, 25, 90),
    "sparse": lambda: _random(60, 60, 25),
    "dense": lambda: _random(3, 4, 300),
    "no edges": lambda: _random(5, 5, 0),
    "no nodes": lambda: _random(0, 0, 0),
    "no targets": lambda: _random(5, 0, 0),
    "one loop": lambda: Case(torch.tensor([[0], [0]]), 1, 1),
    "parallel": lambda: Case(torch.tensor([[1, 1, 1, 0], [0, 0, 0, 0]]), 2, 2),
    "in order": lambda: Case(torch.tensor([[3, 1, 2, 0], [0, 0, 1, 3]]), 4, 4),
    "star": lambda: _star(9000),
}


@pytest.fixture(params=list(CASES))
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]()


@pytest.fixture
def random_case() -> Case:
    return CASES["random"]()


def by_definition(
    x: Tensor, case: Case, aggr: str, weight: Tensor | None, multiplicity: Tensor | None
) -> Tensor:
    """Aggregate target by target, as the formulas read."""
    source, target = case.edge_index.to(x.device)
    w = torch.ones(len(source)).to(x) if weight is None else weight
    m = torch.ones(len(source)).to(x) if multiplicity is None else multiplicity.to(x)
    # An axis of size 1 for each axis of x that the weight does not have.
    full = w.view(*w.shape, *[1] * (x.dim() - w.dim()))
    messages = x[source] * full
    count = m.view(-1, *[1] * (x.dim() - 1))
    out = []
    for i in range(case.num_targets):
        mine = (target == i) & (m > 0)
        received, times, squares = messages[mine], count[mine], full[mine] ** 2
        total = (received * times).sum(0)
        if not bool(mine.any()):
            out.append(torch.zeros_like(total))
        elif aggr == "sum":
            out.append(total)
        elif aggr == "mean":
            out.append(total / times.sum(0))
        elif aggr == "vpa":
            out.append(total / (squares * times).sum(0).sqrt())
        else:
            out.append(received.amax(0))
    return torch.stack(out) if out else x.new_zeros(0, *x.shape[1:])


@pytest.fixture(scope="session")
def definition() -> Callable[..., Tensor]:
    return by_definition


def assert_same_with_gradients(
    ours: Callable[..., Tensor], theirs: Callable[..., Tensor], *inputs: Tensor, tolerance: float
) -> None:
    """Compare values and the gradients to every input, for a random loss."""
    results = []
    for function in (ours, theirs):
        leaves = [t.detach().clone().requires_grad_() for t in inputs]
        out = function(*leaves)
        probe = torch.linspace(-1, 1, out.numel(), dtype=out.dtype, device=out.device)
        loss = (out * probe.view_as(out)).sum() + sum(0 * leaf.sum() for leaf in leaves)
        grads = torch.autograd.grad(loss, leaves)
        results.append([out, *grads])
    for mine, right in zip(*results, strict=True):
        torch.testing.assert_close(mine, right, atol=tolerance, rtol=tolerance)


@pytest.fixture(scope="session")
def same() -> Callable[..., None]:
    return assert_same_with_gradients
