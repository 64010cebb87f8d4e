import math
from dataclasses import replace

import pytest
import torch

from gnn_vpa.experiments.depth import Training, Variant, variants
from gnn_vpa.experiments.depth.train import Outcome, train
from gnn_vpa.graphs import GraphSet, Split, splits

TRAINING = Training(epochs=3, width=8, batch_size=8)


@pytest.fixture
def split(graphs: GraphSet) -> Split:
    return splits(graphs.y, folds=4)[0]


def _train(
    graphs: GraphSet,
    split: Split,
    depth: int,
    chosen: list[Variant],
    how: Training = TRAINING,
    device: str = "cpu",
) -> list[Outcome]:
    return train(graphs, 0, split, depth, chosen, how, device=device)


def test_a_network_does_not_know_of_those_beside_it(graphs: GraphSet, split: Split) -> None:
    several = variants(("mean", "vpa"), ("default", "calibrated"))
    together = _train(graphs, split, 4, several)
    for variant, one in zip(several, together, strict=True):
        (alone,) = _train(graphs, split, 4, [variant])
        assert alone.variant == one.variant
        assert alone.trained.train_loss == pytest.approx(one.trained.train_loss, rel=1e-4)
        assert alone.signal == pytest.approx(one.signal, rel=1e-4)
        assert alone.gradient == pytest.approx(one.gradient, rel=1e-3)


def test_it_learns_what_can_be_learnt(graphs: GraphSet, split: Split) -> None:
    chosen = [Variant(aggr, "calibrated", True) for aggr in ("sum", "vpa")]
    outcomes = _train(graphs, split, 8, chosen, Training(epochs=60, width=16, batch_size=8))
    assert [outcome.trained.test_score for outcome in outcomes] == [1, 1]


@pytest.mark.parametrize("aggr", ["max", "vpa", "power(0.3)"])
def test_calibrated_networks_start_at_variance_one(
    graphs: GraphSet, split: Split, aggr: str
) -> None:
    wide = replace(TRAINING, width=32)  # of a width of 8 all ReLUs of a layer may be off
    one = _train(graphs, split, 30, variants((aggr,), ("calibrated",), (False,)), wide)[0]
    assert one.signal == pytest.approx([1] * 30, abs=0.011)
    assert one.gradient > 0
    assert not one.diverged


def test_a_loss_that_is_not_finite_is_noticed(graphs: GraphSet, split: Split) -> None:
    wild = Training(epochs=5, width=4, learning_rate=math.inf)
    one = _train(graphs, split, 2, variants(("sum",), ("default",), (False,)), wild)[0]
    assert one.diverged
    assert math.isnan(one.trained.test_score)


def test_the_random_state_is_left_alone(graphs: GraphSet, split: Split) -> None:
    state = torch.get_rng_state()
    _train(graphs, split, 2, variants(("vpa",)))
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("aggrs", [("max",), ("sum", "mean", "vpa")])
def test_a_gpu_gives_what_the_cpu_gives(
    graphs: GraphSet, split: Split, aggrs: tuple[str, ...]
) -> None:
    outcomes = [
        _train(graphs, split, 4, variants(aggrs), device=device) for device in ("cpu", "cuda")
    ]
    for here, there in zip(*outcomes, strict=True):
        assert there.signal == pytest.approx(here.signal, rel=1e-2)
        assert there.trained.train_loss == pytest.approx(here.trained.train_loss, rel=5e-2)
