"""What a trained model says of new graphs, however they are given."""

import weakref
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gnn_vpa import GnnVpaError, UsageError
from gnn_vpa.graphs import GraphSet
from gnn_vpa.trained import Ensemble, TrainedModel, train_model
from gnn_vpa.training import Protocol, Task

from .conftest import QUICK, some_graphs


def test_outputs_are_those_that_the_training_saw(mutag: GraphSet) -> None:
    model = train_model(mutag, Task("gin", "vpa"), Protocol(epochs=3), seed=3)
    scores = model.evaluate(mutag)
    assert model.record.history["validation"][model.record.best_epoch] == pytest.approx(
        model.record.scores["accuracy"]
    )
    assert scores.keys() == model.record.scores.keys()


@pytest.mark.parametrize(("model", "aggr"), [("gin", "max"), ("gcn", "vpa"), ("gat", "vpa")])
def test_validation_graphs_are_scored_as_in_the_training(
    mutag: GraphSet, model: str, aggr: str
) -> None:
    """The training computes merged levels of lanes, the model plain graphs: the same numbers."""
    from gnn_vpa.trained import model_of, validation_split
    from gnn_vpa.training import Lane, fit

    split = validation_split(mutag.y, 0.2)
    lane, task, protocol = Lane(0, split._replace(test=split.valid)), Task(model, aggr), QUICK
    (outcome,) = fit(mutag, task, protocol, [lane], keep_weights=True)
    trained = model_of(mutag, task, protocol, lane, outcome, has_test=False)
    assert outcome.predictions is not None
    own = torch.from_numpy(trained.outputs(mutag))[split.valid]
    torch.testing.assert_close(own, outcome.predictions.valid, rtol=1e-4, atol=1e-5)


def test_numbers_are_in_the_units_of_the_data(numbers: GraphSet, regressor: TrainedModel) -> None:
    said = regressor.predict(numbers)
    assert said.shape == (60, 2)
    assert 100 < np.abs(said[:, 1]).mean() < 100_000  # thousands were learned, not deviations
    scores = regressor.evaluate(numbers)
    assert scores["mae"] < 3e4


@pytest.mark.parametrize("size", [1, 2_000, 20_000, 1 << 20])
def test_lists_iterators_and_data_sets_give_the_same_bits(
    classifier: TrainedModel, mutag: GraphSet, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TrainedModel, "size", size)
    whole, graphs = classifier.outputs(mutag), mutag.to_pyg()
    np.testing.assert_array_equal(classifier.outputs(graphs), whole)
    np.testing.assert_array_equal(classifier.outputs(iter(graphs)), whole)
    np.testing.assert_array_equal(np.concatenate(list(classifier.iter_outputs(graphs))), whole)


def test_an_iterator_is_read_no_further_than_a_batch(
    classifier: TrainedModel, mutag: GraphSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TrainedModel, "size", 20_000)
    read = 0

    def graphs() -> Iterator[Data]:
        nonlocal read
        for graph in mutag.to_pyg():
            read += 1
            yield graph

    first = next(classifier.iter_outputs(graphs()))
    assert len(first) < read <= len(first) + 1


def test_graphs_are_let_go_batch_by_batch(
    classifier: TrainedModel, mutag: GraphSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TrainedModel, "size", 20_000)
    seen: list[weakref.ref[Data]] = []
    most = 0

    def graphs() -> Iterator[Data]:
        nonlocal most
        for number in range(2 * 188):
            graph = mutag.graph(number % 188)
            seen.append(weakref.ref(graph))
            most = max(most, sum(each() is not None for each in seen))
            yield graph

    largest = max(len(part) for part in classifier.iter_outputs(graphs()))
    assert most <= 2 * largest + 2


def test_progress_is_told_to_the_last_graph(classifier: TrainedModel, mutag: GraphSet) -> None:
    told: list[int] = []
    classifier.predict(mutag, progress=told.append)
    assert told[-1] == 188
    assert told == sorted(told)


def test_graphs_without_nodes_are_refused_and_without_edges_computed(
    classifier: TrainedModel, mutag: GraphSet
) -> None:
    none = torch.empty(2, 0, dtype=torch.int64)
    lonely = Data(x=torch.eye(7)[:3], edge_index=none)
    said = classifier.outputs([lonely])
    expected = classifier.module(torch.eye(7)[:3], none, torch.zeros(3, dtype=torch.int64))
    torch.testing.assert_close(torch.from_numpy(said), expected.detach())
    empty = Data(x=torch.empty(0, 7), edge_index=none)
    with pytest.raises(UsageError, match="graph 1 has no nodes"):
        classifier.outputs([lonely, empty])


def test_what_is_no_graph_is_named(classifier: TrainedModel, mutag: GraphSet) -> None:
    graphs = mutag.to_pyg()
    with pytest.raises(UsageError, match=r"graph 3: expected a torch_geometric.data.Data, got str"):
        classifier.outputs([*graphs[:3], "graph"])
    with pytest.raises(UsageError, match=r"expected a GraphSet, .* got int"):
        classifier.outputs(3)  # type: ignore[arg-type]
    assert classifier.outputs([]).shape == (0, 2)
    assert classifier.predict(graphs[0]).shape == (1,)


def test_a_fault_behind_the_first_batch_has_the_number_that_users_count(
    classifier: TrainedModel, mutag: GraphSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TrainedModel, "size", 20_000)
    graphs = mutag.to_pyg()
    graphs[100].x = torch.ones_like(graphs[100].x)
    with pytest.raises(UsageError, match="graph 100, node 0"):
        classifier.outputs(graphs)


def test_an_output_that_is_not_finite_is_refused(regressor: TrainedModel) -> None:
    graphs = some_graphs(3, lambda _: 0)
    graphs[1].x *= 1e38
    with pytest.raises(GnnVpaError, match="graph 1: the network's output is not finite"):
        regressor.outputs(graphs)


def test_classes_are_called_as_in_the_data(classifier: TrainedModel, mutag: GraphSet) -> None:
    assert set(classifier.predict(mutag).tolist()) <= {-1, 1}
    shares = classifier.predict_proba(mutag)
    np.testing.assert_allclose(shares.sum(1), 1, rtol=1e-6)


def test_labels_have_a_probability_each(labeller: TrainedModel) -> None:
    graphs = some_graphs(10, lambda _: 0, seed=2)
    said, shares = labeller.predict(graphs), labeller.predict_proba(graphs)
    assert said.shape == shares.shape == (10, 2)
    np.testing.assert_array_equal(said == 1, shares > 0.5)


def test_numbers_have_no_probabilities(regressor: TrainedModel, numbers: GraphSet) -> None:
    with pytest.raises(UsageError, match="no probabilities"):
        regressor.predict_proba(numbers)


def test_graphs_are_embedded_by_the_last_readout(
    classifier: TrainedModel, own_model: TrainedModel, mutag: GraphSet
) -> None:
    assert classifier.embed(mutag).shape == (188, 64)
    inner = own_model.embed(mutag)
    assert inner.shape == (188, 8)
    lin = own_model.module.lin
    scores = lin(torch.from_numpy(inner)).detach().numpy()
    np.testing.assert_allclose(scores, own_model.outputs(mutag), rtol=1e-4, atol=1e-5)


def test_own_models_are_called_as_they_were_trained(
    own_model: TrainedModel, mutag: GraphSet
) -> None:
    from torch_geometric.loader import DataLoader

    loader = DataLoader(mutag.to_pyg(), batch_size=188)
    (all_graphs,) = loader
    with torch.no_grad():
        expected = own_model.module(
            all_graphs.x, all_graphs.edge_index, all_graphs.batch, all_graphs.edge_attr
        )
    torch.testing.assert_close(
        torch.from_numpy(own_model.outputs(mutag)), expected, rtol=1e-4, atol=1e-5
    )


def test_classes_of_new_graphs_are_matched_by_name(
    classifier: TrainedModel, mutag: GraphSet
) -> None:
    graphs = mutag.to_pyg()
    for graph, label in zip(graphs, mutag.y.tolist(), strict=True):
        graph.y = torch.tensor([(-1, 1)[label]])
    positive = [graph for graph in graphs if graph.y == 1]  # by themselves they are class 0
    alone = GraphSet.from_pyg(positive)
    share = (classifier.predict(alone) == 1).mean()
    assert classifier.evaluate(alone)["accuracy"] == pytest.approx(share)
    for graph in positive:
        graph.y = torch.tensor([7])
    with pytest.raises(UsageError, match="knows no class 7"):
        classifier.evaluate(GraphSet.from_pyg(positive))


def test_targets_of_another_kind_are_refused(classifier: TrainedModel, numbers: GraphSet) -> None:
    with pytest.raises(UsageError, match=r"regression \(2\), and the model says classes \(2\)"):
        classifier.evaluate(numbers)


def test_an_ensemble_is_the_mean_of_numbers(numbers: GraphSet, regressor: TrainedModel) -> None:
    other = train_model(numbers, Task("gcn", "vpa"), QUICK, seed=1)
    together = Ensemble([regressor, other]).outputs(numbers)
    mean = (regressor.outputs(numbers) + other.outputs(numbers)) / 2
    np.testing.assert_allclose(together, mean, rtol=1e-5)


def test_models_that_say_different_things_are_no_ensemble(
    classifier: TrainedModel, regressor: TrainedModel
) -> None:
    with pytest.raises(UsageError, match="must say the same"):
        Ensemble([classifier, regressor])
