import re
from collections.abc import Callable
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from gnn_vpa.aggregations import AGGREGATIONS
from gnn_vpa.analysis import learning_curves
from gnn_vpa.errors import UsageError

NAMESPACE = "{http://www.w3.org/2000/svg}"
KEYS = {"dataset": "MUTAG", "model": "GIN", "variant": "released", "features": "auto"}


def curves(losses: dict[str, np.ndarray], seed: int = 0) -> pd.DataFrame:
    """Training losses [folds, epochs] by aggregation, as a frame."""
    return pd.DataFrame(
        {
            **KEYS,
            "aggregation": name,
            "seed": seed,
            "fold": fold,
            "epoch": epoch,
            "train_loss": loss,
        }
        for name, table in losses.items()
        for (fold, epoch), loss in np.ndenumerate(table)
    )


def points(svg: str, css_class: str) -> np.ndarray:
    """Coordinates of the first path of a class [points, 2]."""
    node = next(n for n in ElementTree.fromstring(svg).iter() if n.get("class") == css_class)
    numbers = re.findall(r"-?[\d.]+", node.attrib["d"])
    return np.array(numbers, dtype=float).reshape(-1, 2)


def test_a_line_and_a_band_for_each_aggregation_in_its_colour() -> None:
    svg = learning_curves(curves({name: np.ones((3, 5)) for name in AGGREGATIONS}))
    for name, entry in AGGREGATIONS.items():
        nodes = list(ElementTree.fromstring(svg).iter())
        assert (
            next(n for n in nodes if n.get("class") == f"line {name}").get("stroke") == entry.colour
        )
        assert (
            next(n for n in nodes if n.get("class") == f"area {name}").get("fill") == entry.colour
        )


def test_a_line_falls_with_its_loss_and_a_constant_one_is_level() -> None:
    svg = learning_curves(curves({"sum": np.ones((2, 4)), "vpa": np.array([[4.0, 3.0, 2.0, 1.0]])}))
    assert np.ptp(points(svg, "line sum")[:, 1]) == 0
    heights = np.diff(points(svg, "line vpa")[:, 1])
    assert heights == pytest.approx([heights[0]] * 3, abs=0.11)
    assert heights[0] > 0  # y grows downwards


def test_the_band_is_one_standard_deviation_on_each_side() -> None:
    """Folds at 1 and 3: mean 2, standard deviation sqrt(2). The axis starts at 0."""
    svg = learning_curves(curves({"vpa": np.array([[1.0, 1.0], [3.0, 3.0]])}))
    middle = points(svg, "line vpa")[0, 1]
    upper, lower = points(svg, "area vpa")[[0, -1], 1]
    assert middle - upper == pytest.approx(lower - middle, abs=0.2)
    zero = 230 - 36
    assert (lower - upper) / (zero - middle) == pytest.approx(2 * np.sqrt(2) / 2, abs=0.01)


def test_seeds_are_averaged_within_a_fold() -> None:
    """Two seeds far apart and one fold: no spread over folds."""
    frame = pd.concat([curves({"vpa": np.full((1, 3), 1.0 + 2 * seed)}, seed) for seed in (0, 1)])
    band = points(learning_curves(frame), "area vpa")
    assert np.ptp(band[:, 1]) == 0


def test_a_diverged_fold_is_left_out_from_there_on() -> None:
    losses = np.array([[1.0, np.nan, np.inf], [1.0, 1.0, 1.0]])
    assert np.ptp(points(learning_curves(curves({"vpa": losses})), "line vpa")[:, 1]) == 0


def test_nothing_finite_is_said() -> None:
    assert "No finite training loss" in learning_curves(curves({"vpa": np.full((2, 3), np.nan)}))


def test_large_spans_are_logarithmic() -> None:
    wide = {"sum": np.array([[1000.0, 10.0, 0.1]])}
    assert "log scale" in learning_curves(curves(wide))
    assert "log scale" not in learning_curves(curves({"sum": np.array([[2.0, 1.0, 0.1]])}))
    heights = np.diff(points(learning_curves(curves(wide)), "line sum")[:, 1])
    assert heights[0] == pytest.approx(heights[1], abs=0.2)


def test_a_loss_of_zero_is_drawn() -> None:
    assert "<path" in learning_curves(curves({"vpa": np.zeros((2, 3))}))
    assert "log scale" in learning_curves(curves({"vpa": np.array([[100.0, 1.0, 0.0]])}))


def test_one_epoch_is_drawn() -> None:
    assert "line vpa" in learning_curves(curves({"vpa": np.ones((2, 1))}))


def test_long_trainings_are_thinned_out() -> None:
    svg = learning_curves(curves({"vpa": np.ones((1, 5000))}))
    assert len(points(svg, "line vpa")) <= 200


def test_the_description_has_the_last_losses() -> None:
    svg = learning_curves(curves({"sum": np.array([[2.0, 0.5]]), "vpa": np.array([[1.0, 0.25]])}))
    assert "at the last epoch: sum 0.5 and vpa 0.25." in svg


def test_several_data_sets_are_refused() -> None:
    frame = pd.concat([curves({"vpa": np.ones((1, 2))}).assign(dataset=name) for name in "ab"])
    with pytest.raises(UsageError, match="one data set and model, got 2"):
        learning_curves(frame)


def test_names_of_the_legend_do_not_overlap(
    make_folds: Callable[..., pd.DataFrame], make_curves: Callable[..., pd.DataFrame]
) -> None:
    names = [f"power(0.{n:03})" for n in range(1, 31)]
    folds = make_folds({("MUTAG", "GIN", name): [0.5, 0.6] for name in ["sum", "vpa", *names]})
    svg = learning_curves(make_curves(folds))
    height = float(re.search(r'viewBox="0 0 340 ([\d.]+)"', svg)[1])
    found = re.findall(r'<text x="([\d.]+)" y="([\d.]+)">([a-z][^<]*)</text>', svg)
    places: dict[float, list[tuple[float, float]]] = {}
    for x, y, label in found:
        places.setdefault(float(y), []).append((float(x), float(x) + 6 * len(label)))
    assert len(found) == 32
    assert max(places) + 28 + 100 < height  # room for the plot is left below it
    for row in places.values():
        ends = [end for place in sorted(row) for end in place] + [341.0]
        assert ends == sorted(ends)
