"""What is written in lists."""

import pytest

from gnn_vpa.errors import UsageError
from gnn_vpa.spelling import listed, whole_numbers


def test_names_with_commas_are_several() -> None:
    assert listed("gin, gcn ,") == listed(["gin", "gcn"]) == listed(["gin,gcn"]) == ["gin", "gcn"]
    assert listed("") == []


def test_numbers_in_all_forms() -> None:
    assert whole_numbers("3,1", "seeds") == whole_numbers([3, 1], "seeds") == [3, 1]
    assert whole_numbers(range(2), "seeds") == [0, 1]


@pytest.mark.parametrize("wrong", [True, 1.0, None, "1.0", ["a"]])
def test_what_is_no_whole_number_is_named(wrong: object) -> None:
    with pytest.raises(UsageError, match="seeds: "):
        whole_numbers(wrong, "seeds")  # type: ignore[arg-type]
