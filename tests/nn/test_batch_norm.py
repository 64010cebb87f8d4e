import pytest
import torch
from torch import nn

from gnn_vpa.nn._batch_norm import BatchNorm

TIMES = torch.tensor([3, 1, 0, 2, 1])


def _norms(dtype: torch.dtype) -> tuple[BatchNorm, nn.BatchNorm1d]:
    """Ours and PyTorch's, with the same weights that are not the initial ones."""
    ours, theirs = BatchNorm(4).to(dtype), nn.BatchNorm1d(4).to(dtype)
    for parameter in ours.parameters():
        nn.init.normal_(parameter)
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


def test_one_model_without_multiplicity_is_torch_bit_for_bit(dtype: torch.dtype) -> None:
    ours, theirs = _norms(dtype)
    x = torch.randn(9, 4, dtype=dtype)
    assert torch.equal(ours(x), theirs(x))
    assert torch.equal(ours.running_var, theirs.running_var)  # type: ignore[arg-type]


def test_multiplicities_are_copies(dtype: torch.dtype) -> None:
    ours, theirs = _norms(dtype)
    x = torch.randn(5, 4, dtype=dtype, requires_grad=True)
    for _ in range(3):
        out, expected = ours(x, TIMES), theirs(x.repeat_interleave(TIMES, dim=0))
        seen = TIMES > 0
        torch.testing.assert_close(out[seen].repeat_interleave(TIMES[seen], dim=0), expected)
    for name, buffer in theirs.named_buffers():
        torch.testing.assert_close(ours.get_buffer(name), buffer)
    direction = torch.randn(5, 4, dtype=dtype)
    weighted = (out * direction * TIMES.unsqueeze(1)).sum()
    (gradient,) = torch.autograd.grad(weighted, x)
    copies = (expected * direction.repeat_interleave(TIMES, dim=0)).sum()
    torch.testing.assert_close(gradient, torch.autograd.grad(copies, x)[0])


def test_evaluation_uses_the_running_statistics(dtype: torch.dtype) -> None:
    ours, theirs = _norms(dtype)
    x = torch.randn(5, 4, dtype=dtype)
    ours(x, TIMES)
    theirs.load_state_dict(ours.state_dict())
    torch.testing.assert_close(ours.eval()(x, TIMES), theirs.eval()(x))


@pytest.mark.parametrize("count", [0, 1])
def test_no_node_and_a_single_node_are_finite(count: int) -> None:
    norm = BatchNorm(4)
    x = torch.randn(3, 4, requires_grad=True)
    out = norm(x, torch.tensor([count, 0, 0]))
    out.sum().backward()
    assert out.isfinite().all()
    assert x.grad.isfinite().all()
    assert norm.running_var.isfinite().all()
    assert norm.num_batches_tracked == count
