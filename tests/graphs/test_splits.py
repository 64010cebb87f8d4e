from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedKFold, train_test_split

from gnn_vpa.errors import GnnVpaError, UsageError
from gnn_vpa.graphs import read_tu, splits


def test_as_the_released_code_splits(tu_dir: Path) -> None:
    y = read_tu(tu_dir / "MUTAG.zip").y
    folds = StratifiedKFold(n_splits=10, shuffle=True, random_state=42)
    released = list(folds.split(np.zeros(len(y)), y.numpy()))
    for split, (rest, test) in zip(splits(y), released, strict=True):
        train, valid = train_test_split(
            rest, train_size=0.888889, stratify=y[rest], random_state=42
        )
        assert split.train.tolist() == train.tolist()
        assert split.valid.tolist() == valid.tolist()
        assert split.test.tolist() == test.tolist()


@settings(max_examples=25, deadline=None)
@given(
    members=st.lists(st.integers(10, 40), min_size=2, max_size=4),
    folds=st.integers(3, 10),
    seed=st.integers(0, 99),
)
def test_every_graph_once_and_classes_in_proportion(
    members: list[int], folds: int, seed: int
) -> None:
    y = torch.repeat_interleave(torch.arange(len(members)), torch.tensor(members))
    parts = splits(y, folds, seed)
    assert torch.cat([part.test for part in parts]).sort().values.tolist() == list(range(len(y)))
    for part in parts:
        assert torch.cat(part).sort().values.tolist() == list(range(len(y)))
        for label, count in enumerate(members):
            assert abs(int((y[part.test] == label).sum()) - count / folds) < 1


def test_the_seed_decides() -> None:
    y = torch.arange(60) % 2
    assert splits(y, seed=1)[0].test.tolist() == splits(y, seed=1)[0].test.tolist()
    assert splits(y, seed=1)[0].test.tolist() != splits(y, seed=2)[0].test.tolist()


def test_a_class_that_is_too_small_is_named() -> None:
    y = torch.tensor([0] * 30 + [1] * 9)
    with pytest.raises(UsageError, match=r"class 1 has 9 member.s., too few for 10 folds"):
        splits(y)
    with pytest.raises(UsageError, match=r"class rare has 9 member.s., too few for 10 folds"):
        splits(y, classes=["common", "rare"])
    assert len(splits(y, folds=9)) == 9


@pytest.mark.parametrize(("count", "folds"), [(20, 1), (20, 0), (0, 10)])
def test_what_cannot_be_split(count: int, folds: int) -> None:
    with pytest.raises(UsageError, match=rf"{folds} fold.s. of {count} graph"):
        splits(torch.zeros(count, dtype=torch.int64), folds)


@settings(max_examples=100, deadline=None)
@given(y=st.lists(st.integers(0, 3), max_size=30), folds=st.integers(-1, 12))
def test_whatever_the_classes_are_there_are_splits_or_a_reason(y: list[int], folds: int) -> None:
    try:
        parts = splits(torch.tensor(y, dtype=torch.int64), folds)
    except UsageError:
        return
    assert len(parts) == folds


def test_a_single_class_is_split_too() -> None:
    assert [len(part) for part in splits(torch.zeros(50, dtype=torch.int64))[0]] == [40, 5, 5]


def test_targets_of_no_kind_are_refused() -> None:
    with pytest.raises(GnnVpaError, match=r"y must be int64 \[G\] \(classes\), int8"):
        splits(torch.tensor([0.0, float("nan")] * 20))


def test_too_few_graphs_for_a_validation_set() -> None:
    with pytest.raises(UsageError, match=r"too few to take a validation set"):
        splits(torch.arange(12) % 4, folds=3)


@pytest.mark.parametrize("width", [1, 3])
def test_numbers_and_labels_are_shuffled_and_graphs_without_any_left_out(width: int) -> None:
    numbers = torch.randn(50, width, generator=torch.Generator().manual_seed(0))
    numbers[[3, 8]] = float("nan")
    labels = (numbers > 0).to(torch.int8)
    labels[[3, 8]] = -1
    for y in (numbers, labels):
        parts = splits(y, folds=4)
        tested = torch.cat([part.test for part in parts]).sort().values.tolist()
        assert tested == [graph for graph in range(50) if graph not in (3, 8)]
        assert [len(torch.cat(part)) for part in parts] == [48] * 4


def test_a_graph_with_one_known_target_of_several_is_used() -> None:
    y = torch.randn(20, 2)
    y[5, 0] = float("nan")
    assert 5 in torch.cat([part.test for part in splits(y, folds=4)])


def test_graphs_of_an_unknown_class_are_in_no_part() -> None:
    y = torch.arange(60) % 2
    y[10] = -1
    for part in splits(y, folds=5):
        assert 10 not in torch.cat(part)


def test_too_few_graphs_with_a_target() -> None:
    y = torch.full((20, 1), float("nan"))
    y[:3] = 1.0
    with pytest.raises(UsageError, match=r"3 graph.s. with a target are too few for 4 folds"):
        splits(y, folds=4)
