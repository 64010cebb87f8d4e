import pytest

from gnn_vpa.analysis._published import is_social, published_average, published_cell, published_p
from gnn_vpa.analysis.style import DATASETS
from gnn_vpa.paper import published


def test_a_cell_of_each_table() -> None:
    assert published_cell("table1", "GIN", "vpa", "IMDB-B") == (72.0, 4.4)
    assert published_cell("table_a1", "GIN", "vpa", "IMDB-B") == (73.7, 3.7)


@pytest.mark.parametrize(
    ("table", "dataset"), [(None, "MUTAG"), ("table1", "mine"), ("table_a1", "MUTAG")]
)
def test_what_is_not_published(table: str | None, dataset: str) -> None:
    assert published_cell(table, "GIN", "vpa", dataset) is None


def test_average_is_the_printed_one_only_for_the_nine_sets() -> None:
    assert published_average("table1", "GCN", "max", DATASETS) == 47.8
    assert published_average("table1", "GIN", "vpa", ["MUTAG", "PTC"]) == pytest.approx(73.4)
    assert published_average("table1", "GIN", "vpa", ["MUTAG", "mine"]) is None
    assert published_average("table1", "GIN", "vpa", []) is None


def test_p_is_for_the_nine_sets() -> None:
    assert published_p("table1", "GIN", "sum", DATASETS) == 2.0e-5
    assert published_p("table1", "GIN", "vpa", DATASETS) is None
    assert published_p("table1", "GIN", "sum", ["MUTAG"]) is None
    assert published_p("table_a1", "GIN", "sum", DATASETS) is None


def test_social_sets_are_those_of_the_appendix() -> None:
    assert {name for name in DATASETS if is_social(name)} == set(published("table_a1")["dataset"])
    assert not is_social("mine")


def test_the_data_sets_are_those_of_table_1_in_its_order() -> None:
    assert tuple(published("table1")["dataset"].unique()) == DATASETS
