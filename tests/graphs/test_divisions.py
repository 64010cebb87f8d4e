"""Splits of one's own, and groups that stay together."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from gnn_vpa.errors import UsageError
from gnn_vpa.graphs import Division, GraphSet, GroupsAsked, SplitsAsked, division, load, splits
from gnn_vpa.graphs.divisions import GroupedDivision

PAIR = torch.tensor([[0, 1], [1, 0]])


def _graphs(count: int = 12, **columns: Any) -> GraphSet:
    """Graphs of two classes, with a value of each column."""
    return GraphSet.from_pyg(
        [
            Data(
                edge_index=PAIR,
                num_nodes=2,
                y=graph % 2,
                **{name: values[graph] for name, values in columns.items()},
            )
            for graph in range(count)
        ],
        "toy",
    )


def _lists(made: Division, graphs: GraphSet) -> list[list[list[int]]]:
    return [[part.tolist() for part in split] for split in made.splits(graphs.y, 1)]


ONE = [[0, 1, 2], [3, 4], [5]]
NAMED = {"train": ONE[0], "validation": ONE[1], "test": ONE[2]}
FAIR = {"test": ONE[2], "model_selection": [{"train": ONE[0], "validation": ONE[1]}]}
MASKS = {name: [graph in part for graph in range(12)] for name, part in NAMED.items()}


@pytest.mark.parametrize("content", [[ONE], ONE, NAMED, [NAMED], [FAIR], FAIR, MASKS, [MASKS]])
def test_a_split_may_be_written_in_several_ways_and_is_the_same(
    content: object, tmp_path: Path
) -> None:
    graphs = _graphs()
    (tmp_path / "mine.json").write_text(json.dumps(content))
    made = division(splits=content).of(graphs)
    read = division(splits=tmp_path / "mine.json").of(graphs)
    assert _lists(made, graphs) == _lists(read, graphs) == [ONE]
    assert made == read == division(splits=[ONE]).of(graphs)  # by its name: the content counts
    assert made.folds == 1


def test_tensors_and_arrays_are_splits_too() -> None:
    graphs = _graphs()
    made = division(splits=[[torch.tensor(ONE[0]), np.array(ONE[1]), ONE[2]]]).of(graphs)
    assert _lists(made, graphs) == [ONE]


def test_other_splits_have_another_name() -> None:
    graphs = _graphs()
    swapped = [ONE[0], ONE[2], ONE[1]]
    reordered = [[1, 0, 2], *ONE[1:]]  # the order of batches follows from that of the graphs
    names = {division(splits=[s]).of(graphs).name for s in (ONE, swapped, reordered)}
    assert len(names) == 3


def test_the_fair_comparison_is_read_and_each_graph_is_tested_once(tu_dir: Path) -> None:
    folder = tu_dir.parent / "fair" / "splits"
    if not folder.exists():
        pytest.skip("the splits of the fair comparison are not here")
    graphs = load("ENZYMES", tu_dir)
    made = division(splits=folder).of(graphs)  # a folder has a file for each data set
    parts = made.splits(graphs.y, 10)
    tested = torch.cat([split.test for split in parts])
    assert tested.sort().values.tolist() == list(range(600))
    published = json.loads((folder / "ENZYMES.json").read_text())
    assert parts[3].valid.tolist() == published[3]["model_selection"][0]["validation"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([ONE, [[0, 1], [1], [2]]], "fold 1: graph 1 is in train and in validation"),
        ([[[0, 0], [1], [2]]], "fold 0: graph 0 is in train twice"),
        ([ONE, [[0], [1], [12]]], "fold 1, test: there is no graph 12, toy has 12, from 0"),
        ([[[0], [1], [-1]]], "fold 0, test: there is no graph -1"),
        ([[[0], [], [1]]], "fold 0, validation: there are no graphs in it"),
        ([{"train": [0], "test": [1]}], "fold 0: there is no validation part"),
        ([{"train": [0], "val": [1], "valid": [2], "test": [3]}], "are there twice"),
        ([{"training": [0]}], "fold 0: 'training' is unknown: use train, validation and test"),
        ([{"test": [1], "model_selection": []}], "model_selection must be a list of one"),
        ([[[0.5], [1], [2]]], "fold 0, train: 0.5 is not the number of a graph"),
        ([["0", [1], [2]]], "fold 0, train: expected the numbers of graphs, got '0'"),
        ([[[True], [False], [True]]], "fold 0, train: a mask of 1 for 12 graphs"),
        ([[0, 1]], "fold 0: expected train, validation and test by name, or a list of the three"),
        ([], r"expected a list of folds, got \[\]"),
        (7, "expected a list of folds, got 7"),
    ],
)
def test_what_does_not_fit_is_refused_and_the_fold_named(content: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        division(splits=content).of(_graphs())


@pytest.mark.parametrize(
    ("text", "message"), [(None, "cannot be read"), ("{", "is no JSON file"), ("3", "of folds")]
)
def test_a_file_that_cannot_be_read_is_named(
    text: str | None, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError, match=rf"mine\.json.*{message}"):
        division(splits=path).of(_graphs())


def test_masks_of_the_graphs_are_one_split() -> None:
    part = ["train"] * 6 + ["val"] * 3 + ["test"] * 3
    names = ("train", "val", "test")
    masks: Any = {f"{name}_mask": [own == name for own in part] for name in names}
    graphs = _graphs(**masks)
    made = division(splits="masks").of(graphs)
    assert _lists(made, graphs) == [[[0, 1, 2, 3, 4, 5], [6, 7, 8], [9, 10, 11]]]
    with pytest.raises(UsageError, match="toy has no column 'train_mask'"):
        division(splits="masks").of(_graphs())


# Groups -----------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    groups=st.lists(st.integers(0, 9), min_size=30, max_size=80),
    folds=st.integers(2, 4),
    repeat=st.integers(0, 3),
    kind=st.sampled_from(["classes", "regression"]),
)
def test_groups_stay_together_and_every_graph_is_tested_once(
    groups: list[int], folds: int, repeat: int, kind: str
) -> None:
    classes = torch.arange(len(groups)) % 2
    y = classes if kind == "classes" else classes[:, None].float()
    try:
        parts = splits(y, folds, 42 + repeat, np.array(groups))
    except UsageError:
        return
    tested = torch.cat([split.test for split in parts]).sort().values.tolist()
    assert tested == list(range(len(groups)))
    for split in parts:
        of_part = [{groups[graph] for graph in part.tolist()} for part in split]
        assert all(of_part)
        assert not of_part[0] & of_part[1]
        assert not of_part[0] & of_part[2]
        assert not of_part[1] & of_part[2]


def test_groups_are_a_column_a_file_or_a_list(tmp_path: Path) -> None:
    scaffold = [f"s{graph // 2}" for graph in range(12)]
    graphs = _graphs(scaffold=scaffold)
    (tmp_path / "groups.txt").write_text("\n".join(scaffold))
    (tmp_path / "groups.json").write_text(json.dumps(scaffold))
    asked = ("scaffold", scaffold, tmp_path / "groups.txt", tmp_path / "groups.json")
    made = [division(groups=each).of(graphs) for each in asked]
    folds = [[part.tolist() for split in m.splits(graphs.y, 3) for part in split] for m in made]
    assert folds[0] == folds[1] == folds[2] == folds[3]
    assert made[0].name.startswith("groups scaffold ")
    assert len({m.name.rpartition(" ")[2] for m in made}) == 1  # the content is the same


def test_other_groups_have_another_name() -> None:
    one, other = (_graphs(group=[graph // n for graph in range(12)]) for n in (2, 3))
    asked = division(groups="group")
    assert asked.of(one) != asked.of(other)
    assert asked.of(one) == asked.of(one)


def test_a_column_of_graph_attributes_has_groups() -> None:
    from dataclasses import replace

    graphs = replace(_graphs(), graph_attributes=torch.arange(12).float()[:, None] // 2)
    one, other = (division(groups=name).of(graphs) for name in ("attributes", "attributes:0"))
    assert one.name.rpartition(" ")[2] == other.name.rpartition(" ")[2]
    with pytest.raises(UsageError, match=r"no column 'attributes:1': did you mean attributes:0"):
        division(groups="attributes:1").of(graphs)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("scafold", "toy has no column 'scafold': did you mean scaffold?"),
        ([1, 2, 3], "groups: there are 3, but toy has 12 graphs"),
        ([*range(11), None], "groups: a graph has none"),
        ([*range(11), float("nan")], "groups: a graph has none"),
        (5, "groups: expected a column, a file or a list, got 5"),
        ("no/such.txt", "cannot be read"),
    ],
)
def test_groups_that_cannot_be_used_are_named(asked: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        division(groups=asked).of(_graphs(scaffold=["a"] * 12))


def test_too_few_groups_are_refused() -> None:
    graphs = _graphs(group=[0, 1] * 6)
    with pytest.raises(UsageError, match=r"2 group.s. that stay together are too few for 2 folds"):
        division(groups="group").of(graphs).splits(graphs.y, 2)


def test_splits_and_groups_exclude_each_other() -> None:
    with pytest.raises(UsageError, match="splits and groups: give one of them"):
        division(splits=[ONE], groups="scaffold")


# Repeats ----------------------------------------------------------------------------------------


def test_the_first_repeat_is_the_papers_division_and_others_are_not() -> None:
    y = torch.arange(60) % 2
    first, second = (Division().splits(y, 3, repeat) for repeat in (0, 1))
    assert [s.test.tolist() for s in first] == [s.test.tolist() for s in splits(y, 3)]
    assert [s.test.tolist() for s in second] != [s.test.tolist() for s in first]


def test_columns_are_no_part_of_the_content() -> None:
    assert _graphs(scaffold=[0] * 12).checksum() == _graphs().checksum()


def test_two_that_are_asked_for_are_not_taken_for_one() -> None:
    first, second = (SplitsAsked(asked=path) for path in ("a.json", "b.json"))
    assert first != second
    assert len({first, second, GroupsAsked(asked="a"), GroupsAsked(asked="b")}) == 4


def test_a_mask_that_is_neither_true_nor_false_is_refused() -> None:
    parts = ["train"] * 6 + ["val"] * 2 + ["test"] * 4
    masks: Any = {f"{n}_mask": [float(own == n) for own in parts] for n in ("train", "val", "test")}
    masks["train_mask"][0] = float("nan")
    with pytest.raises(UsageError, match="train_mask: nan of a graph is neither True nor False"):
        division(splits="masks").of(_graphs(**masks))


def test_one_group_is_one_however_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"g{n // 2}{' ' * (n % 2)}\n" for n in range(12)))
    (tmp_path / "b.json").write_text(
        json.dumps([n // 2 + (0.0 if n % 2 else 0) for n in range(12)])
    )
    for name in ("a.txt", "b.json"):
        made = division(groups=tmp_path / name).of(_graphs())
        assert isinstance(made, GroupedDivision)
        assert made.groups is not None
        assert made.groups.tolist() == [n // 2 for n in range(12)]


def test_spaces_around_a_groups_name_are_no_part_of_it(tmp_path: Path) -> None:
    names = [f"{' ' * (n % 3)}g{n // 2}{' ' * (n % 2)}" for n in range(12)]
    (tmp_path / "a.txt").write_text("\n".join(names))
    (tmp_path / "a.json").write_text(json.dumps(names))
    for asked in (names, np.array(names), tmp_path / "a.txt", tmp_path / "a.json", "scaffold"):
        made = division(groups=asked).of(_graphs(scaffold=names))
        assert isinstance(made, GroupedDivision)
        assert made.groups is not None
        assert made.groups.tolist() == [n // 2 for n in range(12)]
    with pytest.raises(UsageError, match="groups: a graph has none"):
        division(groups=[*names[:-1], " "]).of(_graphs())


def test_a_number_and_its_text_are_two_groups() -> None:
    made = division(groups=[1, "1", 1.0, "1.0"] * 3).of(_graphs())
    assert isinstance(made, GroupedDivision)
    assert made.groups is not None
    assert made.groups.tolist() == [0, 1, 0, 2] * 3
