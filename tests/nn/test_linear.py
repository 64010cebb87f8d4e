from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

from gnn_vpa.nn._linear import Linear


@pytest.fixture(params=[True, False], ids=["bias", "no bias"])
def layers(request: pytest.FixtureRequest, dtype: torch.dtype) -> list[Linear]:
    return [Linear(5, 4, bias=request.param, dtype=dtype) for _ in range(3)]


def _halve_pairs(rows: Tensor) -> Tensor:
    """A linear map of rows, from 6 (of each lane) to 3."""
    return (rows[0::2] + rows[1::2]) / 2


def test_one_layer_is_torch_bit_for_bit(layers: list[Linear], dtype: torch.dtype) -> None:
    x = torch.randn(6, 5, dtype=dtype)
    assert torch.equal(layers[0](x), nn.Linear.forward(layers[0], x))


def test_codes_are_one_hot_features(layers: list[Linear], dtype: torch.dtype) -> None:
    codes = torch.tensor([4, 0, 2, 2, 1, 0])
    x = torch.eye(5, dtype=dtype)[codes]
    for mix in (None, _halve_pairs):
        torch.testing.assert_close(layers[0](codes, mix), layers[0](x, mix))


@pytest.mark.parametrize("mix", [None, _halve_pairs])
@pytest.mark.parametrize("coded", [False, True])
def test_lanes_are_layers_side_by_side(
    layers: list[Linear], dtype: torch.dtype, mix: Callable[[Tensor], Tensor] | None, coded: bool
) -> None:
    x = torch.randint(5, (18,)) if coded else torch.randn(18, 5, dtype=dtype)
    out = functional_call(layers[0], stack_module_state(layers), (x, mix))
    alone = [layer(part, mix) for layer, part in zip(layers, x.split(6), strict=True)]
    torch.testing.assert_close(out, torch.cat(alone))


def test_codes_may_come_with_their_lanes_in_any_order(
    layers: list[Linear], dtype: torch.dtype
) -> None:
    lanes, codes = torch.tensor([2, 0, 2, 1]), torch.tensor([4, 0, 1, 1])
    out = functional_call(
        layers[0], stack_module_state(layers), (torch.stack([lanes, codes], 1),), {"bias": False}
    )
    expected = [layers[lane].weight[:, code] for lane, code in zip(lanes, codes, strict=True)]
    torch.testing.assert_close(out, torch.stack(expected))


def test_features_need_not_be_contiguous(layers: list[Linear], dtype: torch.dtype) -> None:
    x = torch.randn(5, 18, dtype=dtype)
    stacked = functional_call(layers[0], stack_module_state(layers), (x.t(),))
    torch.testing.assert_close(stacked[:6], layers[0](x.t().contiguous()[:6]))
