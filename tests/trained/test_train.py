"""From graphs to a trained model."""

import pytest
import torch

from gnn_vpa import GnnVpaError, UsageError
from gnn_vpa.graphs import GraphSet, Split
from gnn_vpa.trained import train_model, validation_split
from gnn_vpa.training import Protocol, Task

from .conftest import QUICK


def test_validation_graphs_are_stratified() -> None:
    y = torch.tensor([0] * 80 + [1] * 20)
    train, valid, test = validation_split(y, 0.1)
    assert (len(train), len(valid), len(test)) == (90, 10, 0)
    assert y[valid].bincount().tolist() == [8, 2]
    assert not set(train.tolist()) & set(valid.tolist())


def test_graphs_without_a_target_are_in_no_part() -> None:
    y = torch.tensor([0, 1] * 20 + [-1] * 5)
    train, valid, _ = validation_split(y)
    assert max(*train.tolist(), *valid.tolist()) < 40


@pytest.mark.parametrize("fraction", [0.0, 1.0, -1.0, float("nan")])
def test_a_fraction_that_is_no_share_is_refused(fraction: float) -> None:
    with pytest.raises(UsageError, match="between 0 and 1"):
        validation_split(torch.tensor([0, 1] * 20), fraction)


def test_too_few_graphs_are_refused() -> None:
    with pytest.raises(UsageError, match="cannot be divided"):
        validation_split(torch.tensor([0, 0, 1]))


def test_the_same_seed_gives_the_same_model(mutag: GraphSet) -> None:
    first, again, other = (
        train_model(mutag, Task("gin", "vpa"), QUICK, seed=seed) for seed in (0, 0, 1)
    )
    assert (first.outputs(mutag) == again.outputs(mutag)).all()
    assert (first.outputs(mutag) != other.outputs(mutag)).any()


def test_test_graphs_are_judged_and_change_nothing(mutag: GraphSet) -> None:
    every = torch.randperm(188, generator=torch.Generator().manual_seed(0))
    split = Split(every[:100], every[100:140], every[140:])
    with_test = train_model(mutag, Task("gin", "vpa"), QUICK, split)
    without = train_model(mutag, Task("gin", "vpa"), QUICK, split._replace(test=every[:0]))
    assert (with_test.outputs(mutag) == without.outputs(mutag)).all()
    assert (with_test.record.judged, without.record.judged) == ("test", "validation")
    assert with_test.record.data.test == 48
    own = with_test.predict(mutag)[split.test] == torch.tensor([-1, 1])[mutag.y[split.test]].numpy()
    assert with_test.record.score == pytest.approx(own.mean())


def test_a_training_that_diverges_is_no_model(mutag: GraphSet) -> None:
    with pytest.raises(GnnVpaError, match="diverged in epoch"):
        train_model(
            mutag, Task("gcn", "sum"), Protocol(epochs=3, learning_rate=1e30, optimizer="sgd")
        )
