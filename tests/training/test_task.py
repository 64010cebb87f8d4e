"""Records of what is trained: equal ones look equal, and the epoch is chosen by validation."""

from enum import StrEnum

import numpy as np
import pytest

from gnn_vpa.training import Outcome, Task
from gnn_vpa.training.seeds import seed


class Variant(StrEnum):
    released = "released"


@pytest.mark.parametrize(
    "same",
    [
        Task("GIN", "vpa"),
        Task("gin", "VPA"),
        Task("gin", "vpa", Variant.released),
        Task("gin", "vpa", options=()),
    ],
)
def test_equal_tasks_have_equal_seeds(same: Task) -> None:
    plain = Task("gin", "vpa")
    assert same == plain
    assert seed(same) == seed(plain)


def test_options_in_any_order() -> None:
    one = Task("gin", "vpa", options=(("width", 8), ("depth", 2)))
    assert seed(one) == seed(Task("gin", "vpa", options=(("depth", 2), ("width", 8))))
    assert seed(one) != seed(Task("gin", "vpa"))


def test_the_first_epoch_of_the_highest_validation_accuracy() -> None:
    curves = ([3.0, 2.0, 1.0, 0.5], [0.5, 0.9, 0.9, 0.1], [0.1, 0.2, 0.3, 1.0])
    outcome = Outcome.of(4, 7, *(np.array(c, np.float32) for c in curves))
    assert (outcome.fold, outcome.seed, outcome.best_epoch) == (4, 7, 1)
    assert outcome.test_score == pytest.approx(0.2)
    assert outcome.train_loss == 2.0
    assert outcome.diverged_epoch is None


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_loss_that_is_not_finite_is_a_divergence(value: float) -> None:
    loss = np.array([1.0, 2.0, value, 1.0], np.float32)
    good = np.full(4, 0.9, np.float32)
    outcome = Outcome.of(0, 0, loss, good, good)
    assert outcome.diverged_epoch == 2
    assert np.isnan(outcome.test_score)
    assert np.isnan(outcome.val_score)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_scores_that_were_never_finite_are_a_divergence(value: float) -> None:
    fine, wild = np.ones(3, np.float32), np.full(3, value, np.float32)
    assert Outcome.of(0, 0, fine, wild, wild, higher_is_better=False).diverged_epoch == 0
    once = np.array([value, 0.5, value], np.float32)
    outcome = Outcome.of(0, 0, fine, once, once, higher_is_better=False)
    assert (outcome.best_epoch, outcome.val_score, outcome.diverged_epoch) == (1, 0.5, None)


def test_the_lowest_is_the_best_where_less_is_better() -> None:
    curves = ([3.0, 2.0, 1.0], [0.9, 0.5, 0.5], [0.1, 0.2, 0.3])
    made = (np.array(c, np.float32) for c in curves)
    assert Outcome.of(0, 0, *made, higher_is_better=False).best_epoch == 1
