"""The record: what is kept is of the best epoch, of lanes that are alive."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gnn_vpa.errors import GnnVpaError
from gnn_vpa.graphs import Split
from gnn_vpa.training import METRICS, Lane
from gnn_vpa.training.record import Record

LANES = [Lane(fold, Split(*torch.arange(9).split([3, 2, 4]))) for fold in range(2)]
PARTS = torch.tensor([[True] * 2 + [False] * 4, [False] * 2 + [True] * 4])
PARTS = PARTS.unsqueeze(1).expand(2, 2, 6)
LOSS = st.sampled_from([0.5, 1.0, math.nan, math.inf])
SCORE = st.sampled_from([-1.0, 0.0, 0.5, 2.0, math.nan, math.inf])


def made(epochs: int, patience: int | None = None, unit: float = 1) -> tuple[Record, Tensor]:
    y = unit * torch.arange(12.0).view(2, 6, 1) / 6
    weight = torch.zeros(2, 3)
    record = Record(
        METRICS["mae"], patience, epochs, y, PARTS, 1, torch.float64, {"weight": weight}
    )
    return record, y


@settings(max_examples=200, deadline=None)
@given(
    drawn=st.lists(
        st.tuples(st.tuples(LOSS, LOSS), st.tuples(SCORE, SCORE)), min_size=1, max_size=8
    ),
    patience=st.none() | st.integers(1, 3),
)
def test_what_is_kept_is_of_the_first_best_epoch(
    drawn: list[tuple[tuple[float, float], tuple[float, float]]], patience: int | None
) -> None:
    record, y = made(len(drawn), patience)
    for epoch, (losses, scores) in enumerate(drawn):
        said = torch.tensor(scores, dtype=torch.float64).view(2, 1, 1).expand(2, 6, 1)
        weight = torch.full((2, 3), float(epoch))
        record.add(torch.tensor(losses, dtype=torch.float64), said, {"weight": weight})
    for row, outcome in enumerate(record.outcomes(LANES)):
        best, ended, broken = None, len(drawn), None
        for epoch, (losses, scores) in enumerate(drawn):
            if not math.isfinite(losses[row]):
                broken = epoch
                break
            value = float((torch.tensor(scores[row]) - y[row, :2]).abs().mean())
            if value < (math.inf if best is None else best[0]):
                best = value, epoch
            if patience is not None and epoch - (best[1] if best else 0) >= patience:
                ended = epoch + 1
                break
        grown = record.curves()[row]
        assert grown.shape == (3, ended if broken is None else broken + 1)
        assert math.isfinite(grown[0, -1]) == (broken is None)
        if broken is not None or best is None:
            assert outcome.diverged_epoch == (broken or 0)
            assert all(math.isnan(v) for both in outcome.scores.values() for v in both)
            assert outcome.weights is None
            continue
        assert (outcome.best_epoch, outcome.diverged_epoch) == (best[1], None)
        assert len(outcome.curve_val) == len(outcome.curve_train_loss) == ended
        assert outcome.val_score == pytest.approx(best[0])
        assert outcome.scores["mae"] == pytest.approx((outcome.val_score, outcome.test_score))
        assert outcome.weights is not None
        assert outcome.weights["weight"].tolist() == [float(best[1])] * 3
        assert outcome.predictions is not None
        assert outcome.predictions.test.tolist() == [[drawn[best[1]][1][row]]] * 4


@pytest.mark.parametrize("unit", [1.0, 1e-9])
def test_scores_of_another_epoch_are_found(unit: float) -> None:
    record, _ = made(2, unit=unit)
    for epoch in range(2):
        said = torch.full((2, 6, 1), epoch * unit, dtype=torch.float64)
        record.add(torch.ones(2, dtype=torch.float64), said, {"weight": torch.zeros(2, 3)})
    record.state["scores"][1] += 0.5 * unit
    with pytest.raises(GnnVpaError, match=r"fold 1: MAE .* a defect of gnn-vpa"):
        record.outcomes(LANES)


def test_a_state_goes_on() -> None:
    one, _ = made(3, patience=1)
    said = torch.full((2, 6, 1), 1.0, dtype=torch.float64)
    one.add(torch.ones(2, dtype=torch.float64), said, {"weight": torch.zeros(2, 3)})
    other, _ = made(3, patience=1)
    other.load_state_dict(one.state_dict())
    for record in (one, other):
        record.add(torch.ones(2, dtype=torch.float64), said, {"weight": torch.ones(2, 3)})
    for name, tensor in one.state.items():
        torch.testing.assert_close(other.state[name], tensor, rtol=0, atol=0, equal_nan=True)
    assert not one.state["alive"].any()
