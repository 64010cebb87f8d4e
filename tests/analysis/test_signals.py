"""The signal at the start of each method of a run."""

import math
from collections.abc import Callable

import pandas as pd
import pytest
import torch

import gnn_vpa
from gnn_vpa.analysis import initial_signals, render_report
from gnn_vpa.graphs import load
from gnn_vpa.signal.probing._subjects import papers_model

MakeFolds = Callable[..., pd.DataFrame]


def test_every_method_is_probed_once(make_folds: MakeFolds) -> None:
    accuracies = {("MUTAG", "GCN", aggr): [0.8, 0.9] for aggr in ("sum", "vpa")}
    accuracies |= {("MUTAG", "GIN", "mean"): [0.7], ("MUTAG", "SGC", "default"): [0.7]}
    signals = initial_signals(make_folds(accuracies))
    counts = signals.groupby(["model", "aggregation"]).size().to_dict()
    assert counts == {
        ("GCN", "sum"): 5, ("GCN", "vpa"): 5, ("GIN", "mean"): 4, ("SGC", "default"): 1,
    }  # fmt: skip
    assert (signals["variance"] > 0).all()


def test_the_numbers_are_those_of_the_probe(make_folds: MakeFolds) -> None:
    signals = initial_signals(make_folds({("MUTAG", "GCN", "sum"): [0.8]}), graphs=8)
    subject = papers_model(load("MUTAG"), "gcn", "sum", size=8)
    report = gnn_vpa.probe(subject.model, *subject.lessons[0].args)
    updates = [step for step in report.steps if step.step == "update"]
    assert signals["variance"].tolist() == [step.forward.variance for step in updates]
    assert signals["distance"].tolist() == [step.distance for step in updates]


def test_sum_grows_and_vpa_does_not(make_folds: MakeFolds) -> None:
    accuracies = {("MUTAG", "GCN", aggr): [0.8] for aggr in ("sum", "vpa")}
    signals = initial_signals(make_folds(accuracies))
    last = signals.groupby("aggregation")["variance"].last()
    first = signals.groupby("aggregation")["variance"].first()
    rates = (last / first) ** 0.25
    assert rates["sum"] > 1.5 * rates["vpa"]


def test_settings_of_a_variant_are_the_models(make_folds: MakeFolds) -> None:
    cell = {("MUTAG", "GCN", "vpa"): [0.8]}
    deep = initial_signals(make_folds(cell, variant="released, depth=7, 20 epochs"))
    assert len(deep) == 7
    printed = initial_signals(make_folds({("MUTAG", "GIN", "vpa"): [0.8]}, variant="printed"))
    assert len(printed) == 5


@pytest.mark.parametrize(
    "cell",
    [("MUTAG", "WL", ""), ("NOT-HERE", "GIN", "vpa"), ("MUTAG", "MINE", "vpa")],
    ids=["a baseline", "data that are not here", "a model of one's own"],
)
def test_what_cannot_be_probed_has_no_rows(
    cell: tuple[str, str, str], make_folds: MakeFolds
) -> None:
    assert initial_signals(make_folds({cell: [0.8]})).empty
    assert initial_signals(make_folds({cell: [0.8]})[:0]).empty


def test_random_numbers_of_others_are_left_alone(make_folds: MakeFolds) -> None:
    before = torch.get_rng_state()
    initial_signals(make_folds({("MUTAG", "GCN", "sum"): [0.8]}), graphs=4)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_page_shows_it_beside_the_accuracy(make_folds: MakeFolds) -> None:
    accuracies = {("MUTAG", "GCN", aggr): [0.8, 0.9] for aggr in ("sum", "vpa")}
    accuracies[("MUTAG", "SGC", "default")] = [0.7, 0.7]
    folds = make_folds(accuracies)
    page = render_report(folds, folds[:0], {}, initial_signals(folds, graphs=4))
    assert "The signal at the start, beside the accuracy" in page
    assert "vpa 85.0 %" in page
    assert "Variance by layer of GCN on MUTAG" in page
    assert "Variance by layer of SGC" not in page  # one layer makes no line
    without = render_report(folds, folds[:0], {})
    assert "The signal at the start" not in without


def test_a_training_that_diverged_leaves_the_others_accuracy(make_folds: MakeFolds) -> None:
    folds = make_folds({("MUTAG", "GCN", "sum"): [math.nan, 0.9]})
    page = render_report(folds, folds[:0], {}, initial_signals(folds, graphs=4))
    assert ">sum 90.0 %*</text>" in page
    assert "sum 90.0 % (1 of 2 folds), variance" in page
