import pytest
import torch
from torch_geometric.data import Data

from gnn_vpa.errors import GnnVpaError
from gnn_vpa.experiments import baselines
from gnn_vpa.experiments.baselines import fit_baseline, obstacle
from gnn_vpa.graphs import GraphSet, Split, load, splits
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
    with_labels, without = (baselines._colours(graphs, kind) for kind in ("auto", "ones"))
    assert (len(set(with_labels)), len(set(without))) == (7, 1)
    assert len(set(baselines._colours(graphs, "degree"))) == len(graphs.degree().unique())


def test_nothing_is_chosen_by_looking_at_the_test_graphs(toy: GraphSet) -> None:
    split = splits(toy.y, folds=4)[0]
    flipped = toy.y.clone()
    flipped[split.test] = 1 - flipped[split.test]
    other = GraphSet("other", toy.node_ptr, toy.rowptr, toy.col, flipped)
    (honest,), (reversed_,) = (
        fit_baseline("wl", graphs, "auto", [Lane(0, split, 0)]) for graphs in (toy, other)
    )
    assert reversed_.val_score == honest.val_score
    assert reversed_.test_score == 1 - honest.test_score


def test_a_missing_package_names_the_extra(toy: GraphSet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "find_spec", lambda _: None)
    assert obstacle("majority", toy) is None
    with pytest.raises(GnnVpaError, match=r"pip install 'gnn-vpa\[baselines\]'"):
        obstacle("wl", toy)


def test_a_data_set_that_is_too_large_says_so(
    toy: GraphSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baselines, "_MOST_EDGES", 10)
    assert obstacle("wl", toy) == "200 edges are more than grakel can hold (10)"


def test_a_graph_without_nodes_is_beyond_the_kernel() -> None:
    none = torch.empty(2, 0, dtype=torch.int64)
    hollow = GraphSet.from_pyg([Data(edge_index=none, num_nodes=n, y=0) for n in (0, 1)])
    assert obstacle("wl", hollow) == "1 graph(s) have no node, and grakel knows no such graph"
    assert obstacle("majority", hollow) is None


def test_equal_validation_accuracies_are_settled_by_the_first(toy: GraphSet) -> None:
    part = torch.arange(4)
    (outcome,) = fit_baseline("majority", toy, "auto", [Lane(0, Split(part, part, part), 0)])
    assert outcome.val_score == 0.5  # two of each class: class 0 is the first of the largest
