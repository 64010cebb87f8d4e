"""What a model calls its classes, beside what graphs call theirs."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from gnn_vpa.errors import UsageError
from gnn_vpa.graphs import GraphSet, Numbering, subset
from gnn_vpa.trained import Target, target_of

PAIR = torch.tensor([[0, 1], [1, 0]])
UNSURE = "PyG numbers those of an archive from 0"


def listed(*labels: int) -> GraphSet:
    """Graphs of PyG with these labels."""
    return GraphSet.from_pyg([Data(edge_index=PAIR, num_nodes=2, y=label) for label in labels])


def archive(classes: tuple[int, ...], *labels: int) -> GraphSet:
    """Graphs with these labels of an archive that has more classes."""
    whole = listed(*range(len(classes)))
    whole = replace(whole, numbering=Numbering(classes=classes))
    return subset(whole, torch.tensor([classes.index(label) for label in labels]))


def model_of(graphs: GraphSet, *classes: Any) -> Target:
    """What a model says that learned from graphs, and whose classes these are."""
    return replace(target_of(graphs), outputs=len(classes), classes=classes)


def test_a_part_of_a_list_may_have_pygs_numbers_of_an_archive() -> None:
    """PyG's classes 1 and 2 are the archive's 2 and 3, and nobody can tell."""
    part = model_of(listed(1, 2), 1, 2)
    assert part.from_list
    for there in (archive((1, 2, 3), 1, 2), archive((1, 2), 1, 2), archive((1, 2, 3), 1)):
        with pytest.raises(UsageError, match=UNSURE):
            part.y_of(there)


def test_where_both_ways_of_numbering_agree_nothing_is_refused() -> None:
    whole = model_of(listed(0, 1, 2), 0, 1, 2)
    assert whole.y_of(archive((0, 1, 2), 1, 2)).tolist() == [1, 2]
    assert whole.y_of(archive((0, 1, 5), 0, 1)).tolist() == [0, 1]  # up to the last that is there
    assert model_of(listed(1, 2), 1, 2).y_of(listed(2, 1)).tolist() == [1, 0]
    ours = model_of(archive((1, 2, 3), 1, 2, 3), 1, 2, 3)
    assert ours.y_of(archive((1, 2, 3), 2)).tolist() == [1]


@pytest.mark.parametrize("classes", [(-1, 1), ("a", "b"), (0.5, 1.5), (float("inf"), 1.0)])
def test_what_pyg_calls_no_class_is_not_taken_for_its_numbers(classes: tuple[Any, ...]) -> None:
    model_of(listed(0, 1), *classes).check_names(archive((-1, 1), -1, 1), (-1, 1))


def test_a_model_of_an_old_file_is_not_asked_where_its_classes_are_from() -> None:
    old = Target("classes", 2, (1, 2))
    assert old.from_list is None
    assert old.y_of(listed(2, 1)).tolist() == [1, 0]
    assert old.y_of(archive((1, 2, 3), 2, 1)).tolist() == [1, 0]


def test_where_classes_are_from_is_no_part_of_what_a_model_says() -> None:
    """Models of a list and of an archive are an ensemble, if their outputs are called the same."""
    assert model_of(listed(1, 2), 1, 2) == model_of(archive((1, 2), 1, 2), 1, 2)
    assert model_of(archive((1, 2), 1, 2), 1, 2).from_list is False
    numbers = GraphSet.from_pyg(
        [Data(edge_index=PAIR, num_nodes=2, y=torch.tensor([0.5])) for _ in range(2)]
    )
    assert target_of(numbers).from_list is None
