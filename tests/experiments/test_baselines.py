import pytest
import torch
from torch_geometric.data import Data

from gnn_vpa.baselines import BASELINES
from gnn_vpa.errors import UsageError
from gnn_vpa.experiments import baselines
from gnn_vpa.experiments.baselines import fit_baseline, obstacle
from gnn_vpa.graphs import FeatureKind, GraphSet, Split, load, splits
from gnn_vpa.training import Lane


def test_majority_is_the_share_of_the_largest_class() -> None:
    graphs = load("MUTAG")
    lanes = [Lane(fold, split, 0) for fold, split in enumerate(splits(graphs.y))]
    outcomes = fit_baseline("majority", graphs, "auto", lanes)
    right = sum(
        o.test_score * len(lane.split.test) for o, lane in zip(outcomes, lanes, strict=True)
    )
    assert right == pytest.approx(int(graphs.y.bincount().max()))


def test_the_kernel_tells_apart_what_colour_refinement_does(toy: GraphSet) -> None:
    lanes = [Lane(fold, split, 0) for fold, split in enumerate(splits(toy.y, folds=4))]
    for outcome in fit_baseline("wl", toy, "auto", lanes):
        assert (outcome.val_score, outcome.test_score) == (1.0, 1.0)
        assert len(outcome.curve_train_loss) == 0


def test_the_kernel_sees_the_node_labels_only_if_asked() -> None:
    graphs = load("MUTAG")
    kinds: list[FeatureKind] = ["auto", "ones", "degree"]
    seen = [len(baselines._colours(graphs, kind).unique()) for kind in kinds]
    assert seen == [7, 1, len(graphs.degree().unique())]


@pytest.mark.parametrize("name", ["wl", "no_features"])
def test_nothing_is_chosen_by_looking_at_the_test_graphs(toy: GraphSet, name: str) -> None:
    split = splits(toy.y, folds=4)[0]
    flipped = toy.y.clone()
    flipped[split.test] = 1 - flipped[split.test]
    other = GraphSet("other", toy.node_ptr, toy.rowptr, toy.col, flipped)
    (honest,), (reversed_,) = (
        fit_baseline(name, graphs, "auto", [Lane(0, split, 0)]) for graphs in (toy, other)
    )
    assert reversed_.val_score == honest.val_score
    assert reversed_.test_score == 1 - honest.test_score


def test_a_data_set_that_is_too_large_says_so(
    toy: GraphSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [obstacle(name, toy) for name in BASELINES] == [None] * 4
    monkeypatch.setattr(baselines, "_MOST_GRAPHS", 10)
    assert obstacle("wl", toy) == "40 graphs are too many for a kernel (10)"
    assert obstacle("no_edges", toy) is None
    monkeypatch.setattr(baselines, "_MOST_NUMBERS", 1000)
    assert obstacle("no_edges", load("MUTAG")) == (
        "188 graphs with 7 columns are too many for a forest"
    )


def test_what_sees_no_edges_knows_paths_from_triangles_no_better_than_by_guessing(
    toy: GraphSet,
) -> None:
    lanes = [Lane(fold, split, 0) for fold, split in enumerate(splits(toy.y, folds=4))]
    without, shapes = (
        [outcome.test_score for outcome in fit_baseline(name, toy, "auto", lanes)]
        for name in ("no_edges", "no_features")
    )
    assert without == [0.5] * 4
    assert shapes == [1.0] * 4


def test_a_graph_without_nodes_is_a_graph() -> None:
    none = torch.empty(2, 0, dtype=torch.int64)
    graphs = [Data(edge_index=none, num_nodes=n % 2, y=n % 2) for n in range(16)]
    hollow = GraphSet.from_pyg(graphs)
    lanes = [Lane(fold, split, 0) for fold, split in enumerate(splits(hollow.y, folds=4))]
    for name in BASELINES:
        for outcome in fit_baseline(name, hollow, "auto", lanes):
            assert outcome.test_score == (0.5 if name == "majority" else 1.0)


def test_an_unknown_baseline_is_refused(toy: GraphSet) -> None:
    with pytest.raises(UsageError, match="no baseline is called 'forest': use majority, no_edges"):
        fit_baseline("forest", toy, "auto", [])


def test_equal_validation_accuracies_are_settled_by_the_first(toy: GraphSet) -> None:
    part = torch.arange(4)
    (outcome,) = fit_baseline("majority", toy, "auto", [Lane(0, Split(part, part, part), 0)])
    assert outcome.val_score == 0.5  # two of each class: class 0 is the first of the largest
