import math

import pytest
import torch

from gnn_vpa.experiments.depth import Training, Variant, variants
from gnn_vpa.experiments.depth.lanes import train
from gnn_vpa.experiments.depth.material import Material
from gnn_vpa.graphs import GraphSet, Split, splits

TRAINING = Training(epochs=3, width=8, batch_size=8)


@pytest.fixture
def data(graphs: GraphSet) -> Material:
    return Material.of(graphs, "auto", 4, "cpu")


@pytest.fixture
def split(graphs: GraphSet) -> Split:
    return splits(graphs.y, folds=4)[0]


def test_a_network_does_not_know_of_those_beside_it(data: Material, split: Split) -> None:
    several = variants(("sum", "mean", "vpa"), ("default", "calibrated"))
    together = train(data, split, 4, several, TRAINING)
    for variant, one in zip(several, together, strict=True):
        (alone,) = train(data, split, 4, [variant], TRAINING)
        assert alone.variant == one.variant
        assert alone.loss == pytest.approx(one.loss, rel=1e-4)
        assert alone.signal == pytest.approx(one.signal, rel=1e-4)
        assert alone.gradient == pytest.approx(one.gradient, rel=1e-3)


def test_it_learns_what_can_be_learnt(data: Material, split: Split) -> None:
    chosen = [Variant(aggr, "calibrated", True) for aggr in ("sum", "vpa")]
    outcomes = train(data, split, 8, chosen, Training(epochs=60, width=16, batch_size=8))
    assert [outcome.test[outcome.best] for outcome in outcomes] == [1, 1]


@pytest.mark.parametrize("aggr", ["max", "vpa"])
def test_calibrated_networks_start_at_variance_one(data: Material, split: Split, aggr: str) -> None:
    one = train(data, split, 30, variants((aggr,), ("calibrated",), (False,)), TRAINING)[0]
    assert one.signal == pytest.approx([1] * 30, abs=0.011)
    assert one.gradient > 0
    assert not one.diverged


def test_a_loss_that_is_not_finite_ends_the_curves(split: Split, graphs: GraphSet) -> None:
    data = Material.of(graphs, "auto", 2, "cpu")
    wild = Training(epochs=5, width=4, learning_rate=math.inf)
    one = train(data, split, 2, variants(("sum",), ("default",), (False,)), wild)[0]
    assert one.diverged
    assert len(one.loss) == len(one.valid) <= 5
    assert all(math.isfinite(loss) for loss in one.loss[:-1])


def test_the_random_state_is_left_alone(data: Material, split: Split) -> None:
    state = torch.get_rng_state()
    train(data, split, 2, variants(("vpa",)), TRAINING)
    assert torch.equal(torch.get_rng_state(), state)


def test_the_epoch_is_chosen_by_validation_alone(data: Material, split: Split) -> None:
    one = train(data, split, 2, variants(("vpa",)), TRAINING)[0]
    assert one.valid[one.best] == max(one.valid)
    assert one.best == one.valid.index(max(one.valid))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("aggrs", [("max",), ("sum", "mean", "vpa")])
def test_a_gpu_gives_what_the_cpu_gives(
    graphs: GraphSet, split: Split, aggrs: tuple[str, ...]
) -> None:
    chosen = variants(aggrs)
    outcomes = [
        train(Material.of(graphs, "auto", 4, device), split, 4, chosen, TRAINING)
        for device in ("cpu", "cuda")
    ]
    for here, there in zip(*outcomes, strict=True):
        assert there.signal == pytest.approx(here.signal, rel=1e-2)
        assert there.loss == pytest.approx(here.loss, rel=5e-2)
