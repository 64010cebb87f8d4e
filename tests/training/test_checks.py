"""What is refused before anything is trained."""

import pytest

from gnn_vpa.errors import UsageError
from gnn_vpa.graphs import GraphSet, splits
from gnn_vpa.training import Lane, Protocol, Task, fit
from gnn_vpa.training.checks import check_precision

HALF = Protocol(epochs=1, precision="bfloat16")


def test_rows_in_bfloat16_are_refused_on_the_cpu(toy: GraphSet) -> None:
    lane = Lane(0, splits(toy.y, 5)[0])
    with pytest.raises(UsageError, match="on a GPU alone: use device='cuda', or float32"):
        fit(toy, Task("gin", "vpa"), HALF, [lane])


def test_what_a_users_model_computes_in_is_its_own_matter() -> None:
    with pytest.raises(UsageError, match="what mynets:make computes in is for that model to say"):
        check_precision([(Task("mynets:make", ""), HALF)], is_gpu=True)
    check_precision([(Task("mynets:make", ""), Protocol())], is_gpu=True)
