"""The regressor: numbers in the units that they were given in."""

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch_geometric.data import Batch, Data

from gnn_vpa import GraphRegressor, UsageError, load_model
from gnn_vpa.testing import check_graph_estimator


def test_it_passes_our_checks(regressor: GraphRegressor) -> None:
    check_graph_estimator(regressor)


def test_it_learns(graphs: list[Data], sizes: np.ndarray) -> None:
    regressor = GraphRegressor(
        aggr="sum", depth=2, dropout=0.0, features="ones", epochs=100, learning_rate=0.01,
        validation_fraction=0.2, random_state=0,
    )  # fmt: skip
    assert regressor.fit(graphs[:40], sizes[:40]).score(graphs[40:], sizes[40:]) > 0.9


def test_predictions_and_the_module_are_in_the_units_of_y(
    regressor: GraphRegressor, graphs: list[Data], sizes: np.ndarray
) -> None:
    y = 1000 + 50 * sizes
    said = regressor.fit(graphs, y).predict(graphs)
    assert said.shape == (60,)
    assert 1000 < said.mean() < 2000
    batch = Batch.from_data_list(graphs)
    with torch.no_grad():
        out = regressor.module_(batch.x, batch.edge_index, batch.batch)
    np.testing.assert_allclose(out[:, 0], said, rtol=1e-5)


def test_numbers_that_32_bits_do_not_tell_apart_are_refused(
    regressor: GraphRegressor, graphs: list[Data], sizes: np.ndarray
) -> None:
    with pytest.raises(UsageError, match=r"y: .* numbers around 1e.08 .* subtract a constant"):
        regressor.fit(graphs, 1e8 + sizes)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("tall", "y: GraphRegressor learns numbers, and could not convert string to float: 'tall'"),
        (np.nan, r"y: that of graph 3 is missing \(nan\): leave such graphs out"),
        (None, r"y: that of graph 3 is missing \(None\)"),
        (np.inf, "y: GraphRegressor learns numbers, and Input y contains infinity"),
    ],
)
def test_what_is_no_number_is_named(
    value: object, message: str, regressor: GraphRegressor, graphs: list[Data]
) -> None:
    y = np.array([1.0] * 3 + [value] + [2.0] * (len(graphs) - 4), object)
    with pytest.raises(UsageError, match=message):
        regressor.fit(graphs, y)


def test_several_numbers_at_once(
    regressor: GraphRegressor, graphs: list[Data], sizes: np.ndarray
) -> None:
    y = np.stack([sizes, -sizes], 1)
    assert regressor.fit(graphs, y).predict(graphs).shape == (60, 2)
    assert np.isfinite(regressor.score(graphs, y))


def test_graphs_may_bring_their_numbers(
    regressor: GraphRegressor, graphs: list[Data], sizes: np.ndarray
) -> None:
    own = [
        Data(x=g.x, edge_index=g.edge_index, y=int(n)) for g, n in zip(graphs, sizes, strict=True)
    ]
    said = regressor.fit(own).predict(graphs)
    assert np.array_equal(said, clone(regressor).fit(graphs, sizes).predict(graphs))
    assert regressor.score(own) == pytest.approx(regressor.score(graphs, sizes), abs=1e-6)


def test_a_saved_regressor_says_the_same(
    regressor: GraphRegressor, graphs: list[Data], sizes: np.ndarray, tmp_path: Path
) -> None:
    regressor.fit(graphs, sizes).save(tmp_path / "model")
    model = load_model(tmp_path / "model")
    assert np.array_equal(model.predict(graphs), regressor.predict(graphs))


def test_what_is_no_number_is_refused(regressor: GraphRegressor, graphs: list[Data]) -> None:
    for y in (np.full(60, np.nan), ["a"] * 60):
        with pytest.raises(ValueError):  # noqa: PT011 - scikit-learn's own words
            regressor.fit(graphs, y)
    with pytest.raises(UsageError, match="y are classes"):
        regressor.fit("MUTAG")
