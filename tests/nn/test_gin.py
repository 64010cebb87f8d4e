from collections.abc import Callable
from typing import Any

import torch

from gnn_vpa.nn import GIN

from .conftest import Batch


def test_every_level_is_scored(make_batch: Callable[..., Batch]) -> None:
    x, edge_index, batch = make_batch(0)
    model: Any = GIN(5, 2, depth=3).double().eval()
    total = model(x, edge_index, batch)
    assert len(model.head.lins) == 4
    for lin in model.head.lins:
        before = lin.weight.detach().clone()
        with torch.no_grad():
            lin.weight.zero_()
        assert not torch.allclose(model(x, edge_index, batch), total)
        with torch.no_grad():
            lin.weight.copy_(before)


def test_vpa_and_sum_differ_by_the_roots_of_the_counts() -> None:
    # One layer deep, before any weight: level 0 pools the input alone.
    x, none = torch.ones(9, 1), torch.empty(2, 0, dtype=torch.int64)
    batch = torch.zeros(9, dtype=torch.int64)
    scores = {}
    for aggr in ("sum", "mean", "vpa"):
        torch.manual_seed(0)
        model = GIN(1, 2, aggr).eval()
        for lin in model.head.lins[1:]:
            torch.nn.init.zeros_(lin.weight)
            torch.nn.init.zeros_(lin.bias)
        torch.nn.init.zeros_(model.head.lins[0].bias)
        scores[aggr] = model(x, none, batch)
    torch.testing.assert_close(scores["sum"], 9 * scores["mean"])
    torch.testing.assert_close(scores["vpa"], 3 * scores["mean"])
