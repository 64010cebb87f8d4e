from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from gnn_vpa import UsageError, build_model

from .conftest import Batch


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.randn(23, 4), r"x: expected shape \[nodes, 5\], got \[23, 4\].*in_channels=5"),
        (torch.randn(23), r"x: expected shape \[nodes, 5\], got \[23\]"),
        (torch.ones(23, 5, dtype=torch.int64), r"codes of one-hot features.*got torch.int64"),
        (torch.ones(23, 2, dtype=torch.int64), r"codes of one-hot features.*got torch.int64"),
        (torch.ones(23, dtype=torch.bool), r"codes of one-hot features.*got torch.bool"),
        (torch.full((23,), 5), "x: code 5 is out of range: expected 0 to 4"),
        (torch.full((23,), -1), "x: code -1 is out of range: expected 0 to 4"),
        ([[1.0] * 5] * 23, "x: expected a tensor, got list"),
    ],
)
def test_wrong_features_are_named(
    kind: tuple[str, str], x: Tensor, message: str, make_batch: Callable[..., Batch]
) -> None:
    _, edge_index, batch = make_batch(0)
    with pytest.raises(UsageError, match=message):
        build_model(kind[0], 5, 2, kind[1])(x, edge_index, batch)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (torch.ones(22), r"nodes: expected shape \[23\], one for each row of x, got \[22\]"),
        (torch.ones(23, 1), r"nodes: expected shape \[23\].*got \[23, 1\]"),
        (torch.ones(23, device="meta"), "nodes: is on meta, the graph on cpu"),
        ([1] * 23, "nodes: expected a tensor, got list"),
    ],
)
def test_wrong_numbers_of_nodes_are_named(
    kind: tuple[str, str], nodes: object, message: str, make_batch: Callable[..., Batch]
) -> None:
    x, edge_index, batch = make_batch(0)
    with pytest.raises(UsageError, match=message):
        build_model(kind[0], 5, 2, kind[1]).double()(x, edge_index, batch, nodes)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_codes_are_one_hot_features(
    kind: tuple[str, str], dtype: torch.dtype, make_batch: Callable[..., Batch]
) -> None:
    x, edge_index, batch = make_batch(0)
    codes = x.argmax(1).to(dtype)
    model = build_model(kind[0], 5, 2, kind[1]).double().eval()
    written_out = model(torch.eye(5, dtype=torch.float64)[codes], edge_index, batch)
    torch.testing.assert_close(model(codes, edge_index, batch), written_out)


def test_a_batch_without_nodes_has_no_scores(kind: tuple[str, str]) -> None:
    model = build_model(kind[0], 5, 2, kind[1]).eval()
    edge_index, batch = torch.empty(2, 0, dtype=torch.int64), torch.empty(0, dtype=torch.int64)
    assert model(torch.empty(0, 5), edge_index, batch).shape == (0, 2)
    assert model(torch.empty(0, dtype=torch.int64), edge_index, batch).shape == (0, 2)
