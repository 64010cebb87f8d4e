"""Every sentence: when it is said, what it says, and when it is not."""

import math
from dataclasses import replace
from typing import Any

import pytest

import gnn_vpa
from gnn_vpa.auditing import Audit, Baseline, Finding, Round
from gnn_vpa.auditing._columns import Columns
from gnn_vpa.auditing._findings import findings
from gnn_vpa.auditing._structure import Spread, Structure
from gnn_vpa.auditing._twins import Twins
from gnn_vpa.graphs import Ceiling
from gnn_vpa.signal import LayerSignal

_SPREAD = Spread(2, 3.0, 3.0, 4)
PLAIN = Structure(_SPREAD, _SPREAD, _SPREAD, 0, 0, 0, 0, 0, 0, 0, 0)
COLUMNS = Columns(width=3, dense=0, constant=(), kinds=3, largest=1.0, mean_square=1 / 3)


def rounds(
    *distinct: int, right: int = 1000, found: int = 0, copied: int = 500
) -> tuple[Round, ...]:
    return tuple(
        Round(n, count, 1000 - right, Ceiling(n, count, right, 1000), Twins(1000, found, copied))
        for n, count in enumerate(distinct)
    )


def audit(**changes: Any) -> Audit:
    """Return the audit of a data set about which nothing is to be said."""
    quiet = Audit(
        name="quiet",
        content="00",
        graphs=1000,
        features="auto",
        folds=10,
        classes=(500, 500),
        labels=None,
        rounds=rounds(900, 1000),
        structure=PLAIN,
        columns=COLUMNS,
        variances={},
        baselines=(),
        not_finite=(),
        untold=(),
    )
    return replace(quiet, **changes)


def signals(*variances: float, rho: float = 0.5) -> list[LayerSignal]:
    return [LayerSignal(f"convs.{n}", 1, v, v, v, rho) for n, v in enumerate(variances)]


def said(**changes: Any) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings(audit(**changes))}


def test_nothing_is_said_where_there_is_nothing_to_say() -> None:
    assert said() == {}


def test_a_ceiling_below_all_is_said_and_matters_below_95_percent() -> None:
    low = said(rounds=rounds(900, 1000, right=633))["ceiling"]
    assert low.matters
    assert low.text == (
        "No message-passing network of up to 1 round can be right about more than 63.3 % of the "
        "graphs: 367 of 1,000 cannot be told from a graph of another class."
    )
    assert not said(rounds=rounds(900, 1000, right=998))["ceiling"].matters
    with_edges = said(rounds=rounds(9, 10, right=9), structure=PLAIN._replace(edge_attributes=4))
    assert with_edges["ceiling"].text.endswith(
        "Edge attributes, which may tell more, do not count here."
    )


def test_twins_are_said_and_matter_from_5_percent_on() -> None:
    many = said(rounds=rounds(900, 1000, found=804, copied=480))["twins"]
    assert many.matters
    assert many.text == (
        "80.4 % of the test graphs have a twin in training or validation: a look-up table scores "
        "48.0 %, the majority class 50.0 %."
    )
    assert not said(rounds=rounds(900, 1000, found=49))["twins"].matters
    assert said(rounds=rounds(900, 1000, found=50))["twins"].matters


def test_uneven_classes() -> None:
    assert "classes" not in said(classes=(599, 401))
    assert said(classes=(600, 400))["classes"].text == (
        "The classes are uneven: the largest of 2 has 60.0 % of the graphs, the smallest 40.0 %."
    )


def test_few_graphs_to_test() -> None:
    assert "few graphs" not in said(graphs=500)
    assert said(graphs=188)["few graphs"].text == (
        "A test fold has about 19 graphs: one graph is 5.3 points of a fold's accuracy."
    )
    assert "few graphs" not in said(graphs=188, folds=None)


@pytest.mark.parametrize(
    ("best", "words"),
    [
        ("no_edges", "It sees no edges"),
        ("no_features", "It sees no features"),
        ("majority", "Nothing does better than guessing."),
        ("wl", "(wl)."),
    ],
)
def test_the_best_baseline(best: str, words: str) -> None:
    scores = {"majority": 0.5, "no_edges": 0.6, "no_features": 0.6, "wl": 0.6, best: 0.7}
    some = tuple(Baseline(name, name, mean, 0.1) for name, mean in scores.items())
    text = said(baselines=some)["baselines"].text
    assert text.startswith(f"The best baseline scores 70.0 % ({best}).")
    assert words in text


def test_features_that_tell_nothing_do_not_reproach_a_baseline_that_sees_none() -> None:
    best = (Baseline("no_features", "degrees", 0.7, 0.1),)
    text = said(baselines=best, columns=COLUMNS._replace(kinds=1))["baselines"].text
    assert "It sees no features" not in text


def test_large_data_sets_have_baselines_on_request() -> None:
    assert said(graphs=2001)["baselines"].text == (
        "With more than 2,000 graphs baselines are run on request alone."
    )
    assert "baselines" not in said(graphs=2000)
    assert "baselines" not in said(graphs=2001, folds=None)


def test_baselines_that_could_not_be_run_are_no_best_ones() -> None:
    assert "baselines" not in said(baselines=(Baseline("wl", "wl", None, None, "too many"),))


@pytest.mark.parametrize(
    ("distinct", "text"),
    [
        ((5, 7, 9), "Round 2 still tells graphs apart: more rounds may tell more."),
        ((5, 7, 7), "1 round of message passing tells as many graphs apart as 2."),
        ((5, 7, 9, 9), "2 rounds of message passing tell as many graphs apart as 3."),
        ((7, 7), "Edges tell no graphs apart that node features and sizes do not."),
        ((1000, 1000), "Node features and sizes alone tell all graphs apart."),
        ((5, 1000), None),
        ((5,), None),
    ],
)
def test_how_many_rounds_are_enough(distinct: tuple[int, ...], text: str | None) -> None:
    found = said(rounds=rounds(*distinct)).get("rounds")
    assert (found.text if found else None) == text
    assert found is None or found.matters == (distinct == (7, 7))


def test_variances_name_the_aggregation_that_keeps_it_best() -> None:
    found = said(variances={"sum": signals(9, 81), "vpa": signals(1.5, 2.25)})["variance"]
    assert found.matters
    assert found.text == (
        "From a variance of 1, 2 layers are expected to lead to 81 with sum and 2.25 with vpa "
        "(messages into a node have a correlation of 0.50 at first): vpa stays nearest to 1."
    )
    assert not said(variances={"vpa": signals(1.5, 2.25)})["variance"].matters


@pytest.mark.parametrize(
    ("last", "end"),
    [
        ((0.95, 0.95, 0.95), "sum, mean and vpa stay as near to 1 as each other."),
        ((0.95, 0.95 * (1 + 1e-15), 0.95), "sum, mean and vpa stay as near to 1 as each other."),
        ((math.inf,) * 3, "sum, mean and vpa stay as near to 1 as each other."),
        ((9.0, 0.5, 2.0), "mean and vpa stay nearest to 1."),
        ((9.0, 0.5, 1.999), "vpa stays nearest to 1."),
    ],
)
def test_several_that_keep_a_variance_alike_are_all_named(
    last: tuple[float, ...], end: str
) -> None:
    """With one neighbour each, all aggregations are the same."""
    names = ("sum", "mean", "vpa")
    variances = {name: signals(value) for name, value in zip(names, last, strict=True)}
    assert said(variances=variances)["variance"].text.endswith(f"at first): {end}")


def test_one_that_is_alone_is_the_nearest() -> None:
    text = said(variances={"vpa": signals(2.0)})["variance"].text
    assert text.endswith("vpa stays nearest to 1.")


def test_where_all_nodes_are_equal_mean_and_max_are_no_advice() -> None:
    variances = {"sum": signals(81), "mean": signals(1), "max": signals(1), "vpa": signals(9)}
    text = said(variances=variances, columns=COLUMNS._replace(kinds=1))["variance"].text
    assert text.endswith("vpa of those that count neighbours stays nearest to 1.")


def test_a_table_that_knows_less_may_score_more() -> None:
    first, last = rounds(900, 1000, found=804, copied=480)
    first = first._replace(twins=Twins(1000, 990, 612))
    assert said(rounds=(first, last))["twins"].text.endswith(
        " A coarser one, after 0 rounds, scores 61.2 %."
    )


def test_features() -> None:
    assert said(columns=COLUMNS._replace(kinds=1))["features"].text == (
        "All nodes have the same features, and mean and max keep them equal wherever there is a "
        "neighbour: only aggregations that count, like sum and vpa, see the edges."
    )
    assert said(columns=COLUMNS._replace(constant=(1,)))["features"].text == (
        "1 column of 3 of the node features (number 1, from 0) is the same for all nodes."
    )
    large = COLUMNS._replace(dense=1, largest=800.0, mean_square=1234.0)
    assert said(columns=large)["scale"].matters
    assert "scale" not in said(columns=large._replace(mean_square=10.0))


@pytest.mark.parametrize(
    ("field", "count", "text"),
    [
        ("empty_graphs", 1, "There is 1 graph without any node."),
        ("edgeless_graphs", 2, "There are 2 graphs without any edge."),
        ("self_loops", 3, "There are 3 self-loops."),
        ("parallel", 1, "There is 1 parallel edge beyond the first between the same nodes."),
        ("one_way", 2, "There are 2 pairs of nodes with edges in one direction alone."),
        (
            "without_messages",
            2,
            "There are 2 nodes that no edge leads to: aggregations give 0 there.",
        ),
    ],
)
def test_odd_edges(field: str, count: int, text: str) -> None:
    changes: dict[str, Any] = {field: count}
    if field == "empty_graphs":
        changes["edgeless_graphs"] = count  # a graph without nodes has no edges either
    assert [f.text for f in findings(audit(structure=PLAIN._replace(**changes)))] == [text]


def test_isolated_nodes_are_said_once() -> None:
    structure = PLAIN._replace(isolated=2, without_messages=2)
    texts = [finding.text for finding in findings(audit(structure=structure))]
    assert texts == ["There are 2 nodes without any edge."]


def test_what_matters_comes_first() -> None:
    found = findings(
        audit(
            rounds=rounds(5, 7, right=998, found=804),
            not_finite=(3,),
            untold=("no folds: too few",),
            structure=PLAIN._replace(self_loops=1),
        )
    )
    assert [finding.name for finding in found][:3] == ["not finite", "not told", "twins"]
    matters = [finding.matters for finding in found]
    assert matters == sorted(matters, reverse=True)
    assert found[0].text.startswith("1 graph has a feature that is not finite (number 3)")


def test_an_audit_says_what_its_numbers_are() -> None:
    found = gnn_vpa.audit("MUTAG", baselines=False)
    text = next(finding.text for finding in found.findings if finding.name == "twins")
    assert text.startswith("11.2 % of the test graphs have a twin")
