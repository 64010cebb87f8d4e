import pytest
import torch

from gnn_vpa import UsageError
from gnn_vpa.nn._dropout import Dropout


def test_given_numbers_decide() -> None:
    x = torch.randn(100, 3, requires_grad=True)
    uniform = torch.rand(100, 3)
    out = Dropout(0.25)(x, uniform)
    torch.testing.assert_close(out, torch.where(uniform < 0.25, 0, x / 0.75))
    out.sum().backward()
    torch.testing.assert_close(x.grad, (uniform >= 0.25) / 0.75)


def test_without_numbers_it_is_torch_own() -> None:
    x = torch.randn(50)
    torch.manual_seed(0)
    ours = Dropout(0.5)(x)
    torch.manual_seed(0)
    assert torch.equal(ours, torch.nn.Dropout(0.5)(x))


def test_evaluation_drops_nothing() -> None:
    x = torch.randn(50)
    dropout = Dropout(0.5).eval()
    assert torch.equal(dropout(x), x)
    assert torch.equal(dropout(x, torch.zeros(50)), x)


def test_numbers_of_another_shape_are_refused() -> None:
    with pytest.raises(UsageError, match=r"uniform: expected shape \[4, 2\], got \[4, 1\]"):
        Dropout(0.5)(torch.ones(4, 2), torch.ones(4, 1))


def test_lanes_may_have_a_probability_each() -> None:
    together, uniform = Dropout(0.0), torch.rand(2, 6, 3)
    together.p = torch.tensor([0.2, 0.0, 0.7])  # three lanes of two graphs
    x = torch.rand(2, 6, 3)
    rows = [slice(0, 2), slice(2, 4), slice(4, 6)]
    for own, p in zip(rows, (0.2, 0.0, 0.7), strict=True):
        alone = Dropout(p)(x[:, own], uniform[:, own])
        torch.testing.assert_close(together(x, uniform)[:, own], alone)
    assert torch.equal(together.eval()(x), x)
    with pytest.raises(UsageError, match="lanes that differ in dropout"):
        together.train()(x)
