import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gnn_vpa.auditing._twins import Twins, twins_of
from gnn_vpa.graphs import Split, splits


def by_hand(kinds: list[int], y: list[int], folds: list[Split]) -> Twins:
    """Look up graph by graph, as the definition reads."""
    found = right = tested = 0
    for train, valid, test in ([part.tolist() for part in split] for split in folds):
        frequency = [sum(y[i] == c for i in train) for c in range(max(y) + 1)]
        for graph in test:
            labels = [y[i] for i in [*train, *valid] if kinds[i] == kinds[graph]]
            votes = [labels.count(c) for c in range(max(y) + 1)]
            answer = max(range(max(y) + 1), key=lambda c: (votes[c], frequency[c], -c))
            tested, found = tested + 1, found + bool(labels)
            right += answer == y[graph]
    return Twins(tested, found, right)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 1)), min_size=40, max_size=80),
    st.integers(0, 99),
)
def test_the_look_up_table_is_that_of_the_definition(
    graphs: list[tuple[int, int]], seed: int
) -> None:
    kinds = [kind for kind, _ in graphs]
    y = [c for _, c in graphs] + [0] * 8 + [1] * 8  # enough of each for four folds
    kinds += [10 + n % 5 for n in range(16)]
    folds = splits(torch.tensor(y), folds=4, seed=seed)
    assert twins_of(torch.tensor(kinds), torch.tensor(y), folds) == by_hand(kinds, y, folds)


def test_every_graph_is_tested_once() -> None:
    y = torch.arange(60) % 3
    assert twins_of(torch.arange(60), y, splits(y, folds=5)).tested == 60


def test_without_a_twin_the_majority_of_training_is_guessed() -> None:
    y = torch.tensor([1, 1, 0, 0, 0, 1])
    split = Split(torch.tensor([0, 1, 2]), torch.tensor([3, 4]), torch.tensor([5]))
    # Training has more of class 1, training and validation together more of class 0.
    assert twins_of(torch.arange(6), y, [split]) == Twins(tested=1, found=0, right=1)


def test_twins_that_disagree_evenly_are_settled_by_the_class_sizes_in_training() -> None:
    kinds, y = torch.tensor([0, 0, 1, 2, 0]), torch.tensor([0, 1, 1, 1, 1])
    split = Split(torch.tensor([0, 1, 2]), torch.tensor([3]), torch.tensor([4]))
    assert twins_of(kinds, y, [split]) == Twins(tested=1, found=1, right=1)
