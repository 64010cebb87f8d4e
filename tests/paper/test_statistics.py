from dataclasses import replace

import pytest

from gnn_vpa.paper import Statistics, archive_names, published_statistics

STATISTICS = Statistics(100, 2, 10.0, 20.0, 3, 1)


def test_every_archive_of_the_paper_has_published_statistics() -> None:
    assert all(published_statistics(archive) for archive in archive_names())
    assert published_statistics("ENZYMES") is None


@pytest.mark.parametrize(
    "field", ["graphs", "classes", "nodes", "edges", "node_labels", "node_attributes"]
)
def test_each_field_is_compared(field: str) -> None:
    other = replace(STATISTICS, **{field: getattr(STATISTICS, field) + 1})
    assert field in STATISTICS.differences(other)
    assert STATISTICS.differences(STATISTICS) == []


def test_averages_agree_to_the_published_digits_alone() -> None:
    assert STATISTICS.differences(replace(STATISTICS, nodes=10.0009)) == []
    assert STATISTICS.differences(replace(STATISTICS, nodes=10.0011)) == ["nodes"]


def test_published_self_loops_do_not_count_as_a_difference() -> None:
    published = replace(STATISTICS, edges=20.5, self_loops=50)
    assert STATISTICS.differences(published) == []
    assert STATISTICS.differences(replace(published, self_loops=0)) == ["edges"]
