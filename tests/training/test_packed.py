"""Packing: what comes out is what went in."""

from typing import NamedTuple

import torch

from gnn_vpa.training.packed import pack, unpack


class Pair(NamedTuple):
    first: torch.Tensor
    second: torch.Tensor | None


def test_steps_come_out_as_they_went_in() -> None:
    number = torch.arange(6).view(2, 3)
    tree = Pair(number, None), (torch.randn(2, 5, 4), Pair(number % 2 == 0, number[:, :1] + 7))
    packed = pack(tree, torch.float64)
    for step in range(2):
        (pair, (values, other)) = unpack(packed.layout, packed.step(step))
        assert isinstance(pair, Pair)
        assert pair.second is None
        assert torch.equal(pair.first, number[step].int())
        assert torch.equal(values, tree[1][0][step].double())
        assert torch.equal(other.first.bool(), number[step] % 2 == 0)
        assert torch.equal(other.second, (number[step, :1] + 7).int())


def test_a_step_is_handed_over_by_copying_its_rows() -> None:
    packed = pack((torch.tensor([[1, 2], [3, 4]]), torch.tensor([[0.5], [1.5]])), torch.float32)
    first, second = packed.step(0)
    inputs = (first.clone(), second.clone())
    views = unpack(packed.layout, inputs)
    for static, value in zip(inputs, packed.step(1), strict=True):
        static.copy_(value)
    assert views[0].tolist() == [3, 4]
    assert views[1].tolist() == [1.5]


def test_tensors_begin_at_multiples_of_128_bytes() -> None:
    packed = pack((torch.zeros(1, 3).int(), torch.ones(1, 5).int()), torch.float32)
    first, second = unpack(packed.layout, packed.step(0))
    assert (second.data_ptr() - first.data_ptr()) % 128 == 0
