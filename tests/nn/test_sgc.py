from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from gnn_vpa.nn import SGC, with_self_loops

from .conftest import Batch


def _dense_operator(edge_index: Tensor, num_nodes: int, power: float) -> Tensor:
    """Write the propagation out as a matrix, from the definition."""
    edge_index = edge_index[:, edge_index[0] != edge_index[1]]
    matrix = torch.eye(num_nodes, dtype=torch.float64)
    matrix.index_put_((edge_index[1], edge_index[0]), torch.tensor(1.0).double(), accumulate=True)
    scale = matrix.sum(1) ** power
    return scale.unsqueeze(1) * matrix * scale


@pytest.mark.parametrize(("aggr", "power"), [("default", -0.5), ("vpa", -0.25)])
@pytest.mark.parametrize("hops", [1, 5])
def test_propagation_is_a_power_of_the_operator(
    aggr: str, power: float, hops: int, make_batch: Callable[..., Batch]
) -> None:
    x, edge_index, _ = make_batch(0)
    operator = torch.matrix_power(_dense_operator(edge_index, len(x), power), hops)
    model = SGC(5, 2, aggr, K=hops).double()
    torch.testing.assert_close(model.propagate(x, edge_index), operator @ x)


@pytest.mark.parametrize("aggr", ["default", "vpa"])
def test_propagation_once_trains_as_propagation_in_every_step(
    aggr: str, make_batch: Callable[..., Batch]
) -> None:
    x, edge_index, batch = make_batch(0)
    model = SGC(5, 2, aggr, K=3, dropout=0).double()
    codes = x.argmax(1)
    scores, gradients = [], []
    for features in (codes, torch.eye(5, dtype=torch.float64)[codes]):
        once = model.propagate(features, with_self_loops(edge_index, len(x)))
        for arguments in ((once, None), (features, edge_index)):
            model.zero_grad()
            scores.append(model(*arguments, batch))
            scores[-1].square().sum().backward()
            gradients.append([parameter.grad.clone() for parameter in model.parameters()])
    for k in range(1, 4):
        torch.testing.assert_close(scores[0], scores[k])
        torch.testing.assert_close(gradients[0], gradients[k])
