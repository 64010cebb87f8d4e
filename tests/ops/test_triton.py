"""The operators' kernels in Triton against the formulas in plain PyTorch.

A derivative of an operator is an operator again, so that values of the four are all there is.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from gnn_vpa.ops import _reference
from gnn_vpa.ops._csr import CSR, transpose

# Lengths of rows, and the kernels that they lead to.
ROWS = {
    "no edges": [0, 0, 0],
    "few": [3, 0, 1, 8, 2, 5, 0],  # rows side by side
    "one among few": [1, 0, 50, 2, *[0] * 20],  # … and a longer one alone
    "few, GPU full": [1, 0, 50, 2, *[0] * 20],  # … many of them in a program
    "many": [20, 0, 33, 9],  # a program a row
    "very many": [150, 90],
    "long among few": [1, 40, 0, 70, 200, 3, *[1] * 60],  # in pieces, two of which share a place
    "long among many": [100, 9, 66, 0, 65, 130],
}
WIDTHS = [1, 5, 130]  # of one block of features, and of two


@pytest.fixture(params=list(ROWS))
def lengths(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Lengths of rows; those longer than 64 are cut into pieces of 16 if the name says so."""
    _triton = pytest.importorskip("gnn_vpa.ops._triton")
    if "full" in request.param:
        monkeypatch.setattr(_triton, "_FULL", 0)
    if "long" in request.param:
        monkeypatch.setattr(_triton, "_HUGE", 64)
        monkeypatch.setattr(_triton, "_LONG", 16)
    return ROWS[request.param]


def graph_of(
    lengths: list[int],
    num_sources: int,
    device: str,
    ordered: bool = False,
    seed: int = 0,
    index: torch.dtype = torch.int32,
) -> CSR:
    """Return a random graph with rows of these lengths."""
    draw = torch.Generator().manual_seed(seed)
    ends = torch.tensor([0, *lengths]).cumsum(0).to(index)
    num_edges = int(ends[-1])
    col = torch.randint(num_sources, (num_edges,), generator=draw).to(index)
    edge = None if ordered else torch.randperm(num_edges, generator=draw).to(index).to(device)
    return CSR(ends.to(device), col.to(device), edge, max(lengths, default=0))


def random(*shape: int, device: str, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=draw, dtype=torch.float64).to(device, dtype)


def counts(num_edges: int, device: str) -> Tensor:
    return torch.randint(0, 3, (num_edges,), generator=torch.Generator().manual_seed(7)).to(device)


def check(name: str, *arguments: Any, tolerance: float = 1e-12) -> Any:
    from gnn_vpa.ops import _triton

    got, expected = (getattr(module, name)(*arguments) for module in (_triton, _reference))
    torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
    return got


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("factors", ["none", "w", "a and b", "all"])
@pytest.mark.sampled(14)
def test_sums(kernel_device: str, lengths: list[int], width: int, factors: str) -> None:
    csr = graph_of(lengths, 6, kernel_device, ordered=factors == "a and b")
    x = random(6, 1, width, device=kernel_device)
    w = random(sum(lengths), 1, device=kernel_device, seed=1)
    a, b = (random(n, 1, device=kernel_device, seed=2) for n in (len(lengths), 6))
    chosen = {"none": (None, None, None), "w": (w, None, None), "a and b": (None, a, b)}
    check("spmm", x, *chosen.get(factors, (w, a, b)), csr)


@pytest.mark.parametrize(("a_heads", "b_heads"), [(3, 3), (1, 3), (3, 1)])
@pytest.mark.sampled(7)
def test_sums_of_several_heads(
    kernel_device: str, lengths: list[int], a_heads: int, b_heads: int
) -> None:
    csr = graph_of(lengths, 6, kernel_device)
    x = random(6, 3, 5, device=kernel_device)
    w = random(sum(lengths), 3, device=kernel_device, seed=1)
    a = random(len(lengths), a_heads, device=kernel_device, seed=2)
    check("spmm", x, w, a, random(6, b_heads, device=kernel_device, seed=3), csr)
    check("spmm", x, None, None, None, csr)


@pytest.mark.parametrize("index", [torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.sampled(10)
def test_sums_of_other_types(
    kernel_device: str, lengths: list[int], dtype: torch.dtype, index: torch.dtype
) -> None:
    csr = graph_of(lengths, 6, kernel_device, index=index)
    x = random(6, 1, 5, device=kernel_device, dtype=dtype)
    w = random(sum(lengths), 1, device=kernel_device, dtype=dtype, seed=1)
    # Both sum up to 200 terms of size 1 in float32, in another order, and round the result.
    check("spmm", x, w, None, None, csr, tolerance=200 * 2**-24 + torch.finfo(dtype).eps)


@pytest.mark.parametrize("counted", [False, True], ids=["single", "multiple"])
@pytest.mark.sampled(7)
def test_maxima(kernel_device: str, lengths: list[int], counted: bool) -> None:
    csr = graph_of(lengths, 6, kernel_device, ordered=not counted)
    m = counts(sum(lengths), kernel_device) if counted else None
    check("segmax", random(6, 5, device=kernel_device), m, csr, tolerance=0)


def test_maxima_of_many_features(kernel_device: str) -> None:
    csr = graph_of([3, 0, 1], 6, kernel_device)
    check("segmax", random(6, 130, device=kernel_device), None, csr, tolerance=0)


def test_a_maximum_over_edges_that_do_not_count_is_zero(
    kernel_device: str, lengths: list[int]
) -> None:
    csr = graph_of(lengths, 6, kernel_device)
    x = random(6, 2, device=kernel_device)
    none = torch.zeros(sum(lengths), device=kernel_device)
    assert (check("segmax", x, none, csr, tolerance=0) == 0).all()


@pytest.mark.filterwarnings(
    "ignore:invalid value encountered:RuntimeWarning"
)  # of NumPy, interpreting
def test_nan_and_infinity_stay(kernel_device: str, lengths: list[int]) -> None:
    csr = graph_of(lengths, 4, kernel_device)
    x = random(4, 1, 3, device=kernel_device)
    x[0, 0] = torch.tensor([torch.inf, torch.nan, -torch.inf])
    check("spmm", x, None, None, None, csr)
    check("segmax", x[:, 0], None, csr, tolerance=0)


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.sampled(7)
def test_products_for_each_edge(
    kernel_device: str, lengths: list[int], heads: int, width: int
) -> None:
    csr = graph_of(lengths, 6, kernel_device, ordered=width == 5)
    g = random(len(lengths), heads, width, device=kernel_device, seed=1)
    x = random(6, heads, width, device=kernel_device)
    a = random(len(lengths), 1, device=kernel_device, seed=2)
    b = random(6, heads, device=kernel_device, seed=3)
    check("sddmm", g, x, a, b, csr)
    check("sddmm", g, x, None, None, csr)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("counted", [False, True], ids=["single", "multiple"])
@pytest.mark.parametrize("shared", [False, True], ids=["ties", "shares"])
@pytest.mark.sampled(14)
def test_winners(
    kernel_device: str, lengths: list[int], width: int, counted: bool, shared: bool
) -> None:
    csr = graph_of(lengths, 6, kernel_device, ordered=width == 5)
    # Few values, so that many are alike.
    own = random(len(lengths), width, device=kernel_device, seed=1).round()
    other = random(6, width, device=kernel_device).round()
    m = counts(sum(lengths), kernel_device) if counted else None
    share = random(6, width, device=kernel_device, seed=2) if shared else None
    check("winners", own, other, share, m, csr)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("counted", [False, True], ids=["single", "multiple"])
@pytest.mark.sampled(8)
def test_a_maximum_shares_its_gradient_evenly_among_those_that_win(
    kernel_device: str, lengths: list[int], counted: bool, dtype: torch.dtype
) -> None:
    from gnn_vpa.ops import _triton

    csr = graph_of(lengths, 6, kernel_device)
    x = random(6, 5, device=kernel_device, dtype=dtype).round()  # few values: many are alike
    g = random(len(lengths), 5, device=kernel_device, dtype=dtype, seed=1)
    # A third of a neighbour is one that wins, too.
    m = counts(sum(lengths), kernel_device).to(dtype) / 4 if counted else None
    out = _reference.segmax(x, m, csr)
    by_col = transpose(csr, 6)
    got = _triton.segmax_gradient(g, x, out, m, csr, by_col)
    ties = _reference.winners(out, x, None, m, csr)
    share = g.to(ties.dtype) / torch.where(ties > 0, ties, 1)
    expected = _reference.winners(x, out, share, m, by_col).to(dtype)
    tolerance = 1e-12 if dtype == torch.float64 else 2**-7
    torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance)
    assert got.dtype == dtype


@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    lengths=st.lists(st.integers(0, 40), min_size=1, max_size=7),
    seed=st.integers(0, 99),
    huge=st.sampled_from([8, 33, 1024]),
)
def test_rows_of_any_length(kernel_device: str, lengths: list[int], seed: int, huge: int) -> None:
    _triton = pytest.importorskip("gnn_vpa.ops._triton")
    csr = graph_of(lengths, 5, kernel_device, seed=seed)
    x = random(5, 1, 2, device=kernel_device, seed=seed)
    w = random(sum(lengths), 1, device=kernel_device, seed=seed + 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_triton, "_HUGE", huge)
        patch.setattr(_triton, "_LONG", 8)
        check("spmm", x, w, None, None, csr)
        check("segmax", x[:, 0], counts(sum(lengths), kernel_device), csr, tolerance=0)


@pytest.mark.parametrize(
    ("num_rows", "width"), [(1, 128), (130_000, 2)], ids=["alone", "among few"]
)
def test_the_pieces_of_a_million_edges_sum_up_exactly_to_a_millionth(
    kernel_device: str, monkeypatch: pytest.MonkeyPatch, num_rows: int, width: int
) -> None:
    from gnn_vpa.ops import _triton

    class Pieces:
        """Stands for the kernel that sums the pieces: a million programs' work, done exactly."""

        def __getitem__(self, grid: object) -> Callable[..., None]:
            return self.fill

        def fill(
            self,
            x: Any,
            w: Any,
            b: Any,
            rowptr: Any,
            col: Any,
            edge: Any,
            pieces: Tensor,
            *others: Any,
            **shape: Any,
        ) -> None:
            pieces[:] = 12.8  # 128 times 0.1: constants are the worst case, no errors cancel

    monkeypatch.setattr(_triton, "_piece_kernel", Pieces())
    degree = 128 * 7_813
    ends = torch.full((num_rows + 1,), degree, dtype=torch.int32, device=kernel_device)
    ends[0] = 0
    col = torch.zeros(degree, dtype=torch.int32, device=kernel_device)
    x = torch.full((1, 1, width), 0.1, device=kernel_device)
    out = _triton.spmm(x, None, None, None, CSR(ends, col, None, degree))[0].double()
    exact = torch.full_like(out, 7_813 * float(torch.tensor(12.8)))
    torch.testing.assert_close(out, exact, rtol=1e-6, atol=0)


@pytest.mark.parametrize("num_rows", [1, 2_500], ids=["alone", "among few"])
def test_what_a_hub_wins_is_summed_exactly_to_a_millionth(
    kernel_device: str, num_rows: int
) -> None:
    from gnn_vpa.ops import _triton

    degree = 20_000  # 0.1 added so often in float32 is off by a ten-thousandth
    ends = torch.full((num_rows + 1,), degree, dtype=torch.int32, device=kernel_device)
    ends[0] = 0
    col = torch.zeros(degree, dtype=torch.int32, device=kernel_device)
    own, other = (torch.ones(n, 1, device=kernel_device) for n in (num_rows, 1))
    out = _triton.winners(own, other, 0.1 * other, None, CSR(ends, col, None, degree))[0].double()
    exact = torch.full_like(out, degree * float(torch.tensor(0.1)))
    torch.testing.assert_close(out, exact, rtol=1e-6, atol=0)
