"""TorchScript is refused in words that say what to use instead."""

import pytest
import torch
from torch import nn
from torch_geometric.nn import GAT, GCN, GIN

from gnn_vpa import UsageError, convert
from gnn_vpa.pyg import VPAggregation

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning"),  # of what is refused later
]
EDGES = torch.tensor([[0, 1, 2], [1, 2, 0]])


@pytest.mark.parametrize("model", [GIN, GCN, GAT], ids=lambda model: model.__name__)
def test_a_converted_model_is_not_scripted(model: type[nn.Module]) -> None:
    converted, _ = convert(model(4, 8, num_layers=2))
    with pytest.raises(UsageError, match=r"TorchScript .* not supported.*torch\.compile"):
        torch.jit.script(converted)


@pytest.mark.parametrize("model", [GIN, GCN, GAT], ids=lambda model: model.__name__)
def test_nor_traced_even_with_edges_that_it_knows(model: type[nn.Module]) -> None:
    converted, _ = convert(model(4, 8, num_layers=2))
    x = torch.ones(3, 4)
    converted(x, EDGES)
    with pytest.raises(UsageError, match="TorchScript"):
        torch.jit.trace(converted, (x, EDGES))


def test_nor_is_an_aggregation() -> None:
    with pytest.raises(UsageError, match="TorchScript"):
        torch.jit.script(nn.Sequential(VPAggregation()))


def test_convert_says_so() -> None:
    assert "TorchScript" in (convert.__doc__ or "")
