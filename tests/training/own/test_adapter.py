"""What a user's model may return."""

import pytest
import torch
from torch_geometric.nn import GIN

from gnn_vpa import UsageError
from gnn_vpa.training.own.adapter import Adapter

ADAPTER = Adapter.of(GIN(2, 4, 1), "mynets:make")


@pytest.mark.parametrize(
    ("shape", "graphs", "outputs"),
    [((3, 2), 3, 2), ((3,), 3, 1), ((2,), 1, 2), ((), 1, 1), ((1,), 1, 1)],
)
def test_scores_are_taken_as_squeeze_leaves_them(
    shape: tuple[int, ...], graphs: int, outputs: int
) -> None:
    out = torch.arange(6.0)[: graphs * outputs].reshape(shape)
    scores = ADAPTER.checked(out, graphs, outputs)
    assert scores.shape == (graphs, outputs)
    assert scores.flatten().tolist() == out.flatten().tolist()


@pytest.mark.parametrize(
    ("shape", "graphs", "outputs"),
    [((3,), 3, 2), ((6,), 3, 2), ((2, 3), 3, 2), ((1, 3), 3, 1), ((2,), 1, 3), ((), 3, 1)],
)
def test_other_shapes_are_refused(shape: tuple[int, ...], graphs: int, outputs: int) -> None:
    with pytest.raises(UsageError, match=r"mynets:make: for . graphs the model must return"):
        ADAPTER.checked(torch.zeros(shape), graphs, outputs)
