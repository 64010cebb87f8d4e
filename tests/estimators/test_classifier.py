"""The classifier: labels, parameters, and what is known after a fit."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import Tensor, nn
from torch_geometric.data import Batch, Data, InMemoryDataset
from torch_geometric.nn import GCNConv, global_add_pool

from gnn_vpa import GraphClassifier, UsageError, load_model
from gnn_vpa.graphs import GraphSet, Numbering, load, subset
from gnn_vpa.signal.probing import Report
from gnn_vpa.testing import check_graph_estimator
from gnn_vpa.trained import train_model, validation_split
from gnn_vpa.training import Protocol, Task


class Net(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, width: int = 8) -> None:
        super().__init__()
        self.conv, self.head = GCNConv(in_channels, width), nn.Linear(width, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        out: Tensor = self.head(global_add_pool(self.conv(x, edge_index).relu(), batch))
        return out


def test_it_passes_our_checks(classifier: GraphClassifier) -> None:
    check_graph_estimator(classifier)


def test_it_passes_our_checks_with_a_network_of_ones_own() -> None:
    check_graph_estimator(GraphClassifier(Net, None, epochs=2, device="cpu", random_state=0))


@pytest.mark.parametrize("missing", [None, np.nan])
@pytest.mark.parametrize("others", ["red", 1.0])
def test_a_class_that_is_missing_is_named(
    missing: object, others: object, classifier: GraphClassifier, graphs: list[Data]
) -> None:
    y = np.array([others] * 2 + [missing] + [others] * (len(graphs) - 3), object)
    with pytest.raises(UsageError, match=r"y: that of graph 2 is missing .* leave such graphs out"):
        classifier.fit(graphs, y)


def test_a_single_label_is_two_classes(classifier: GraphClassifier, graphs: list[Data]) -> None:
    labelled = [graph.clone() for graph in graphs]
    for number, graph in enumerate(labelled):
        graph.y = torch.tensor([float(number % 2)])  # as a loss of one logit would have it
    fitted = clone(classifier).fit(labelled)
    assert fitted.classes_.tolist() == [0, 1]
    said = fitted.predict(labelled)
    assert said.shape == (len(graphs),)
    assert fitted.predict_proba(labelled).shape == (len(graphs), 2)
    given = clone(classifier).fit(graphs, [number % 2 for number in range(len(graphs))])
    np.testing.assert_array_equal(said, given.predict(graphs))


def test_a_fit_is_one_lane_of_the_engine(
    classifier: GraphClassifier, graphs: list[Data], labels: np.ndarray
) -> None:
    """The same graphs, task and seed by the engine's own function: the same weights to the bit."""
    classifier.fit(graphs, labels)
    data = replace(GraphSet.from_pyg(graphs), seed_name="graphs")
    task = Task("gin", "vpa", options=(("width", 8), ("depth", 2)))
    protocol = Protocol(epochs=3, learning_rate=0.01)
    split = validation_split(data.y, 0.1, 0)
    model = train_model(data, task, protocol, split, seed=0, workers=1)
    for name, tensor in model.module.state_dict().items():
        assert torch.equal(tensor, classifier.module_.state_dict()[name]), name
    assert classifier.history_["train_loss"] == list(model.record.history["train_loss"])
    assert classifier.best_epoch_ == model.record.best_epoch


def test_it_learns(graphs: list[Data], labels: np.ndarray) -> None:
    classifier = GraphClassifier(
        width=16, dropout=0.0, features="degree", epochs=40, learning_rate=0.01,
        validation_fraction=0.2, random_state=0,
    )  # fmt: skip
    assert classifier.fit(graphs[:40], labels[:40]).score(graphs[40:], labels[40:]) > 0.9


@pytest.mark.parametrize(
    "pair",
    [("no", "yes"), (False, True), (-3, 7), (1.0, 2.0), (np.int8(1), np.int8(4))],
    ids=["text", "bool", "int", "float", "int8"],
)
def test_labels_keep_their_type(
    classifier: GraphClassifier, graphs: list[Data], pair: tuple[Any, Any]
) -> None:
    y = np.array([pair[number % 2] for number in range(60)])
    classifier.fit(graphs, y)
    assert classifier.classes_.dtype == y.dtype
    assert classifier.predict(graphs).dtype == y.dtype
    assert set(classifier.predict(graphs)) <= set(pair)


def test_labels_may_be_a_list_a_tensor_or_a_column_of_objects(
    classifier: GraphClassifier, graphs: list[Data], labels: np.ndarray
) -> None:
    said = classifier.fit(graphs, labels).predict_proba(graphs)
    for y in (labels.tolist(), labels.astype(object), torch.arange(60) % 2):
        assert np.array_equal(clone(classifier).fit(graphs, y).predict_proba(graphs), said)


def test_several_labels_at_once(classifier: GraphClassifier, graphs: list[Data]) -> None:
    y = np.stack([np.arange(60) % 2, np.arange(60) // 2 % 3 == 0, np.arange(60) % 3 > 0], 1)
    classifier.fit(graphs, y.astype(int))
    assert classifier.predict(graphs).shape == (60, 3)
    assert set(np.unique(classifier.predict(graphs))) <= {0, 1}
    assert classifier.predict_proba(graphs).shape == (60, 3)
    assert classifier.classes_.tolist() == [0, 1, 2]


def test_graphs_may_come_in_all_forms_and_bring_their_classes(
    classifier: GraphClassifier, graphs: list[Data]
) -> None:
    class Saved(InMemoryDataset):
        def __init__(self) -> None:
            super().__init__()
            self.data, self.slices = self.collate(graphs)

    said = classifier.fit(graphs).predict_proba(graphs)
    assert classifier.classes_.tolist() == [0, 1]
    for X in (GraphSet.from_pyg(graphs, "another name"), Saved(), tuple(graphs)):
        again = clone(classifier).fit(X)
        assert np.array_equal(again.predict_proba(graphs), said)
        assert np.array_equal(again.predict_proba(X), said)
        assert again.score(X) == classifier.score(graphs)
    assert classifier.score(iter(graphs)) == classifier.score(graphs)


def test_a_name_is_enough(classifier: GraphClassifier, tu_dir: Path) -> None:
    classifier.fit("MUTAG")
    assert classifier.classes_.tolist() == [-1, 1]
    assert classifier.model_.record.data.name == "MUTAG"
    assert classifier.n_features_in_ == 7
    assert classifier.predict("MUTAG").shape == (188,)
    with pytest.raises(UsageError, match="of class 0, and the model knows -1, 1"):
        classifier.score(load("MUTAG").to_pyg())  # which number their classes from 0


def test_the_module_is_called_as_those_of_pyg_are(
    classifier: GraphClassifier, graphs: list[Data], labels: np.ndarray
) -> None:
    module = classifier.fit(graphs, labels).module_
    batch = Batch.from_data_list(graphs)
    assert not module.training
    with torch.no_grad():
        shares = module(batch.x, batch.edge_index, batch.batch).softmax(1)
    np.testing.assert_allclose(shares, classifier.predict_proba(graphs), atol=1e-5)


def test_the_signal_is_a_probe_of_the_fitted_model(
    classifier: GraphClassifier, graphs: list[Data], labels: np.ndarray
) -> None:
    signal = classifier.fit(graphs, labels).signal_
    assert isinstance(signal, Report)
    assert {step.layer for step in signal.steps} >= {"convs.0", "convs.1"}


def test_transform_is_what_the_head_is_given(
    classifier: GraphClassifier, graphs: list[Data], labels: np.ndarray
) -> None:
    embedded = classifier.fit_transform(graphs, labels)
    assert embedded.shape == (60, 8)
    assert len(classifier.get_feature_names_out()) == 8
    frame = classifier.set_output(transform="pandas").transform(graphs)
    assert np.array_equal(frame.to_numpy(), embedded)


def test_a_saved_classifier_says_the_same(
    classifier: GraphClassifier, graphs: list[Data], labels: np.ndarray, tmp_path: Path
) -> None:
    classifier.fit(graphs, labels).save(tmp_path / "model")
    model = load_model(tmp_path / "model")
    assert np.array_equal(model.predict(graphs), classifier.predict(graphs))
    assert np.array_equal(model.predict_proba(graphs), classifier.predict_proba(graphs))


def test_a_seed_that_is_drawn_is_kept(graphs: list[Data], labels: np.ndarray) -> None:
    free = GraphClassifier(width=8, depth=2, epochs=2, device="cpu")
    one, other = clone(free).fit(graphs, labels), clone(free).fit(graphs, labels)
    assert one.seed_ != other.seed_
    again = clone(free).set_params(random_state=one.seed_).fit(graphs, labels)
    assert np.array_equal(again.predict_proba(graphs), one.predict_proba(graphs))


def test_numbers_of_numpy_are_the_numbers(
    classifier: GraphClassifier, graphs: list[Data], labels: np.ndarray
) -> None:
    said = classifier.fit(graphs, labels).predict_proba(graphs)
    other = clone(classifier).set_params(
        width=np.int64(8), depth=np.int32(2), epochs=np.int64(3), random_state=np.int64(0)
    )
    assert np.array_equal(other.fit(graphs, labels).predict_proba(graphs), said)


def test_parameters_reach_the_training(graphs: list[Data], labels: np.ndarray) -> None:
    classifier = GraphClassifier(
        "gcn", "sum", width=4, depth=3, dropout=0.25, epochs=9, learning_rate=0.5, batch_size=7,
        weight_decay=0.125, validation_fraction=0.25, patience=1, metric="macro_f1",
        class_weight="balanced", features="ones", device="cpu", random_state=3,
    ).fit(graphs, labels)  # fmt: skip
    model = classifier.model_
    options = (("depth", 3), ("dropout", 0.25), ("width", 4))
    assert model.task == Task("gcn", "sum", features="ones", options=options)
    assert model.protocol == Protocol(
        epochs=9, batch_size=7, learning_rate=0.5, weight_decay=0.125, patience=1,
        class_weight="balanced", metric="macro_f1",
    )  # fmt: skip
    assert (model.record.data.train, model.record.data.valid) == (45, 15)
    assert model.record.seed == classifier.seed_ == 3
    assert len(classifier.history_["validation"]) < 9  # the patience was over


def test_weights_of_graphs_change_what_is_learned(
    classifier: GraphClassifier, graphs: list[Data], labels: np.ndarray
) -> None:
    plain = classifier.fit(graphs, labels).predict_proba(graphs)
    even = clone(classifier).fit(graphs, labels, sample_weight=np.full(60, 2.0))
    np.testing.assert_allclose(even.predict_proba(graphs), plain, atol=1e-5)
    uneven = clone(classifier).fit(graphs, labels, sample_weight=np.where(labels == "star", 50, 1))
    assert np.abs(uneven.predict_proba(graphs) - plain).max() > 1e-4


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"model": "gim"}, "gim"),
    ({"aggr": "summ"}, "summ"),
    ({"width": 0}, "width: expected a whole number from 1 on"),
    ({"epochs": 2.5}, "epochs: expected a whole number"),
    ({"learning_rate": "fast"}, "learning_rate: expected a number"),
    ({"validation_fraction": 1.5}, "validation_fraction: expected between 0 and 1"),
    ({"metric": "mae"}, "mae"),
    ({"class_weight": {"star": 2}}, "class_weight: expected None or 'balanced'"),
    ({"features": "lables"}, "lables"),
    ({"device": "gpu"}, "gpu"),
    ({"random_state": -1}, "random_state: expected 0 to"),
]


@pytest.mark.parametrize(("wrong", "message"), REFUSED, ids=lambda value: str(value)[:30])
def test_a_wrong_parameter_is_refused_in_fit(
    classifier: GraphClassifier,
    graphs: list[Data],
    labels: np.ndarray,
    wrong: dict[str, Any],
    message: str,
) -> None:
    with pytest.raises(UsageError, match=message):
        classifier.set_params(**wrong).fit(graphs, labels)


def test_wrong_targets_are_refused(classifier: GraphClassifier, graphs: list[Data]) -> None:
    for y, message in (
        (["a"] * 60, "all graphs are of class 'a'"),
        (np.linspace(0, 1, 60), "y is continuous.*use GraphRegressor"),
        (["a", "b"], "y has 2 entries, and X has 60 graphs"),
    ):
        with pytest.raises(UsageError, match=message):
            classifier.fit(graphs, y)
    numbers = [Data(edge_index=g.edge_index, x=g.x, y=0.5 * i) for i, g in enumerate(graphs)]
    with pytest.raises(UsageError, match=r"its targets are numbers.*use GraphRegressor"):
        classifier.fit(numbers)


def test_wrong_weights_are_refused(
    classifier: GraphClassifier, graphs: list[Data], labels: np.ndarray
) -> None:
    for weights in (np.ones(59), np.full(60, -1.0), np.full(60, np.nan), np.zeros(60)):
        with pytest.raises(UsageError, match="sample_weight"):
            classifier.fit(graphs, labels, sample_weight=weights)


def test_pygs_numbers_of_classes_are_not_taken_for_an_archives() -> None:
    """PyG numbers from 0: a part without its class 0 could be the archive's classes 1 and 2."""
    pairs = [
        Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2, y=n % 3) for n in range(30)
    ]
    given = GraphSet.from_pyg(pairs)
    archive = replace(given, numbering=Numbering(classes=(1, 2, 3)))
    ours = GraphClassifier(width=4, depth=1, epochs=1, random_state=0).fit(archive)
    assert ours.classes_.tolist() == [1, 2, 3]
    part = torch.tensor([n for n in range(30) if n % 3])
    assert 0 <= ours.score(subset(archive, part)) <= 1
    listed = [pairs[n] for n in part.tolist()]
    with pytest.raises(UsageError, match="PyG numbers those of an archive from 0"):
        ours.score(listed)
    with pytest.raises(UsageError, match="PyG numbers those of an archive from 0"):
        ours.model_.evaluate(GraphSet.from_pyg(listed))
    assert 0 <= ours.score(listed, [1 + graph.y for graph in listed]) <= 1
    own = GraphClassifier(width=4, depth=1, epochs=1, random_state=0)
    own.fit(pairs)
    assert 0 <= own.score(listed) <= 1
    with pytest.raises(UsageError, match="PyG numbers those of an archive from 0"):
        own.score(subset(archive, torch.tensor([n for n in range(30) if n % 3 < 2])))
    own.fit(listed)  # and the other way round: these classes 1 and 2 may be the archive's 2 and 3
    assert own.classes_.tolist() == [1, 2]
    there = subset(archive, torch.tensor([n for n in range(30) if n % 3 < 2]))
    with pytest.raises(UsageError, match="PyG numbers those of an archive from 0"):
        own.score(there)
    with pytest.raises(UsageError, match="PyG numbers those of an archive from 0"):
        own.model_.evaluate(there)
    assert 0 <= own.score(there, [n % 3 + 1 for n in range(30) if n % 3 < 2]) <= 1


def test_probabilities_add_to_1_in_double_precision(
    classifier: GraphClassifier, graphs: list[Data], labels: np.ndarray
) -> None:
    shares = clone(classifier).fit(graphs, labels).predict_proba(graphs)
    np.testing.assert_allclose(shares.sum(1), 1, rtol=0, atol=1e-15)


def test_numbers_of_classes_are_not_taken_for_labels() -> None:
    mutag = load("MUTAG")
    options: dict[str, Any] = {"width": 4, "depth": 1, "epochs": 1, "random_state": 0}
    by_label = GraphClassifier(**options).fit(mutag)
    with pytest.raises(UsageError, match="numbers of classes, which are -1, 1: leave y away"):
        by_label.score(mutag, mutag.y)
    by_number = GraphClassifier(**options).fit(mutag, mutag.y)
    labels = np.where(mutag.y.numpy() == 1, 1, -1)
    assert by_label.score(mutag) == by_label.score(mutag, labels) == by_number.score(mutag, mutag.y)
    with pytest.raises(UsageError, match="expected a GraphSet, got list"):
        by_label.model_.evaluate(mutag.to_pyg())  # type: ignore[arg-type]
