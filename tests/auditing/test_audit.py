"""Audits of known data sets, of benchmark data sets, and of what can hardly be audited."""

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

import gnn_vpa
from gnn_vpa.auditing import Audit
from gnn_vpa.auditing._twins import twins_of
from gnn_vpa.errors import UsageError
from gnn_vpa.graphs import GraphSet, alike, ceiling, load, splits
from gnn_vpa.graphs.alike import right_at_best

from .conftest import PATH, Make

# Exact 1-WL, five rounds, features as in Table 1, the paper's folds: data set, whether node
# attributes count, graphs, distinct ones, best accuracy and test graphs with a twin in percent.
# Two programs that knew nothing of each other gave these figures.
KNOWN = [
    ("IMDB-MULTI", True, 1500, 387, 63.3, 80.4),
    ("IMDB-BINARY", True, 1000, 537, 88.6, 57.3),
    ("COLLAB", True, 5000, 4068, 98.0, 21.2),
    ("MUTAG", True, 188, 175, 100.0, 11.2),
    ("PTC_FM", True, 349, 331, 98.3, 8.9),
    ("PROTEINS", True, 1113, 1110, 100.0, 0.5),
    ("PROTEINS", False, 1113, 1069, 99.7, 5.5),
    ("NCI1", True, 4110, 4039, 99.8, 2.9),
]


@pytest.mark.parametrize(
    ("name", "attributes", "graphs", "distinct", "best", "twins"),
    KNOWN,
    ids=[name if attributes else f"{name} without attribute" for name, attributes, *_ in KNOWN],
)
def test_the_known_figures_to_the_digit(
    real: Callable[[str], GraphSet],
    name: str,
    attributes: bool,
    graphs: int,
    distinct: int,
    best: float,
    twins: float,
) -> None:
    data = real(name)
    data = data if attributes else replace(data, node_attributes=None)
    kinds = alike(data, "auto", rounds=5)[-1]
    assert (data.num_graphs, int(kinds.max()) + 1) == (graphs, distinct)
    assert round(100 * right_at_best(kinds, data.y) / graphs, 1) == best
    assert round(100 * twins_of(kinds, data.y, splits(data.y)).share, 1) == twins


@pytest.mark.parametrize("name", ["MUTAG", "IMDB-MULTI", "PTC_FM"])
def test_an_audit_has_the_figures_of_the_functions(tu_dir: Path, name: str) -> None:
    data = load(name, tu_dir)
    found = gnn_vpa.audit(name, baselines=False, data_dir=tu_dir)
    assert [one.ceiling for one in found.rounds] == ceiling(data)
    kinds, folds = alike(data), splits(data.y)
    assert [one.twins for one in found.rounds] == [twins_of(k, data.y, folds) for k in kinds]
    assert found.content == data.checksum()


def names(found: Audit) -> list[str]:
    return [finding.name for finding in found.findings]


def test_a_data_set_of_which_everything_is_known(toys: Make) -> None:
    found = gnn_vpa.audit(toys(20), folds=4, baselines=True)
    assert [one.distinct for one in found.rounds] == [1, 2, 2, 2, 2, 2]
    assert [one.ceiling.accuracy for one in found.rounds] == [0.5, 1, 1, 1, 1, 1]
    assert [one.contradictory for one in found.rounds] == [40, 0, 0, 0, 0, 0]
    assert (found.last.twins.share, found.last.twins.accuracy) == (1, 1)
    assert found.classes == (20, 20)
    means = {one.name: one.mean for one in found.baselines}
    assert means == {"majority": 0.5, "no_edges": 0.5, "no_features": 1.0, "wl": 1.0}


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (None, "The graphs have no labels"),
        (torch.tensor([0.5]), "The labels are numbers, not classes"),
        (torch.tensor([[0.5, 0.1]]), "The labels are numbers, not classes"),
        (0, "All graphs are of one class"),
    ],
)
def test_without_classes_the_rest_is_told(
    toys: Make, caplog: pytest.LogCaptureFixture, labels: object, said: str
) -> None:
    graphs = toys(3)
    for graph in graphs:
        graph.y = labels
    with caplog.at_level(logging.WARNING, logger="gnn_vpa"):
        found = gnn_vpa.audit(graphs, baselines=True)
    assert found.findings[0].text.startswith(said)
    assert found.classes == ((6,) if isinstance(labels, int) else None)
    assert (found.last.ceiling, found.last.twins, found.baselines) == (None, None, ())
    assert found.last.distinct == 2
    assert found.structure.nodes.mean == 3
    assert list(found.variances) == ["sum", "mean", "max", "vpa"]
    assert caplog.messages == []
    assert graphs[0].y is labels  # the caller's graphs stay as they are
    json.loads(found.to_json())
    assert said in found.to_html()


def test_labels_are_counted_one_by_one(toys: Make) -> None:
    graphs = toys(3)
    for number, graph in enumerate(graphs):
        graph.y = torch.tensor([[number % 2, float("nan") if number == 0 else 1.0]])
    found = gnn_vpa.audit(graphs)
    assert found.labels == ((3, 3, 0), (0, 5, 1))
    assert found.findings[0].text.startswith("The targets are labels of yes or no, not classes")
    assert "label  0  1  missing\n0      3  3        0\n1      0  5        1" in str(found)
    assert json.loads(found.to_json())["labels"][1] == {"zeros": 0, "ones": 5, "missing": 1}


def test_a_value_for_every_node_is_refused_as_a_run_refuses_it(toys: Make) -> None:
    (graph, *_) = toys(1, y=torch.tensor([0, 1, 1]), train_mask=torch.ones(3, dtype=torch.bool))
    with pytest.raises(UsageError, match=r"y has a value for every node.*k_hop_subgraph"):
        gnn_vpa.audit([graph])


def test_minus_one_beside_zero_and_one_is_what_somebody_says_it_is(toys: Make) -> None:
    graphs = toys(6)
    for number, graph in enumerate(graphs):
        graph.y = number % 3 - 1
    with pytest.raises(UsageError, match="-1 may stand for a missing target"):
        gnn_vpa.audit(graphs)
    assert gnn_vpa.audit(graphs, task="classes", baselines=False).classes == (4, 4, 4)
    assert gnn_vpa.audit(graphs, task="regression").classes is None


@pytest.mark.parametrize(("count", "said"), [(6, "The graphs have no"), (1, "Some graphs have no")])
def test_graphs_of_a_set_may_lack_classes(toys: Make, count: int, said: str) -> None:
    graphs = GraphSet.from_pyg(toys(3), "some")
    y = graphs.y.clone()
    y[:count] = -1
    found = gnn_vpa.audit(replace(graphs, y=y), baselines=True)
    assert found.findings[0].text.startswith(said)
    assert (found.classes, found.last.ceiling, found.baselines) == (None, None, ())


def test_a_label_may_be_any_whole_number(toys: Make) -> None:
    graphs = toys(12)
    for graph in graphs:
        graph.y = torch.tensor(5 - 3 * graph.y)  # without a dimension, and from 2 to 5
    assert gnn_vpa.audit(graphs, folds=2, baselines=False).classes == (12, 12)


def test_a_class_that_is_too_small_for_the_folds_leaves_the_ceiling(toys: Make) -> None:
    found = gnn_vpa.audit(toys(4), folds=5, baselines=True)
    assert found.folds is None
    assert found.last.ceiling.accuracy == 1
    assert (found.last.twins, found.baselines) == (None, ())
    assert "class 0 has 4 member(s), too few for 5 folds" in found.findings[0].text


def test_one_graph_is_told(toys: Make) -> None:
    found = gnn_vpa.audit(toys(1)[:1])
    assert (found.graphs, found.last.distinct, found.classes) == (1, 1, (1,))
    assert str(found).startswith("custom: 1 graph\n")
    assert "1 graphs" not in str(found) + found.to_html() + found._repr_html_()


def test_graphs_whose_features_are_not_finite_are_named_and_left_out(toys: Make) -> None:
    graphs = toys(10)
    for number, graph in enumerate(graphs):
        graph.x = torch.ones(3, 2)
        if number in (3, 4):
            graph.x[1, 0] = float("nan") if number == 3 else float("inf")
    found = gnn_vpa.audit(graphs, folds=3, baselines=False)
    assert found.not_finite == (3, 4)
    assert found.graphs == 18
    first = found.findings[0]
    assert first.name == "not finite"
    assert first.text.startswith("2 graphs have features that are not finite (number 3 and 4)")
    assert bool(torch.isnan(graphs[3].x).any())  # the caller's graphs stay as they are


def test_a_number_that_32_bits_cannot_hold_is_not_finite(toys: Make) -> None:
    graphs = toys(3, x=torch.ones(3, 1, dtype=torch.float64))
    graphs[2].x = torch.full((3, 1), 1e300, dtype=torch.float64)
    assert gnn_vpa.audit(graphs, baselines=False).not_finite == (2,)


def test_where_no_graph_is_finite_nothing_is_left_to_audit(toys: Make) -> None:
    with pytest.raises(UsageError, match="every graph has a feature that is not finite"):
        gnn_vpa.audit(toys(2, x=torch.full((3, 1), float("nan"))))


def test_other_faults_name_the_graph_by_its_own_number(toys: Make) -> None:
    graphs = toys(3, x=torch.ones(3, 1))
    graphs[0].x = torch.full((3, 1), float("nan"))
    graphs[4].x = torch.ones(2, 1)
    with pytest.raises(UsageError, match="graph 4: x must have 3 rows, but has 2"):
        gnn_vpa.audit(graphs)


def test_graphs_without_edges_are_told() -> None:
    none = torch.empty(2, 0, dtype=torch.int64)
    graphs = [Data(edge_index=none, num_nodes=1 + n % 2, y=n % 2) for n in range(20)]
    found = gnn_vpa.audit(graphs, folds=4)
    assert (found.last.ceiling.accuracy, found.variances) == (1, {})
    assert found.structure.edgeless_graphs == 20
    assert "edges" in names(found)


def test_a_module_may_return_graphs_without_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import torch\nfrom torch_geometric.data import Data\n"
    code += "def graphs():\n    e = torch.tensor([[0, 1], [1, 0]])\n"
    code += "    return [Data(edge_index=e, num_nodes=2)] * 3\n"
    (tmp_path / "unlabelled_graphs.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    found = gnn_vpa.audit("unlabelled_graphs:graphs")
    assert (found.name, found.graphs, found.last.distinct) == ("unlabelled_graphs:graphs", 3, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"data": "MUTAGG"}, "did you mean MUTAG"),
        ({"data": 7}, "expected a name, a path, module:function"),
        ({"data": []}, "there is no graph in it"),
        ({"data": ["x", "y"]}, r"expected a torch_geometric.data.Data, got str"),
        ({"rounds": -1}, "rounds: expected a whole number from 0 on, got -1"),
        ({"rounds": 2.5}, "rounds: expected a whole number"),
        ({"folds": 1}, "folds: expected a whole number from 2 on, got 1"),
        ({"features": "colour"}, "features: expected one of auto, ones, degree, labels"),
        ({"baselines": "wl"}, "baselines: expected True, False or None"),
        ({"data": [Data(edge_index=PATH, num_nodes=3, y=0), Data(edge_index=PATH, num_nodes=3)]},
         "graph 1: it has no y, which is to be learned"),
    ],
)  # fmt: skip
def test_wrong_use_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        gnn_vpa.audit(**{"data": "MUTAG", **arguments})  # type: ignore[arg-type]


def test_no_rounds_is_a_network_without_message_passing(toys: Make) -> None:
    found = gnn_vpa.audit(toys(5), rounds=0, folds=2, baselines=False)
    assert [one.distinct for one in found.rounds] == [1]
    assert found.variances == {}


def test_baselines_come_by_default_with_few_graphs_alone(
    toys: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gnn_vpa.auditing import _audit

    assert gnn_vpa.audit(toys(12), folds=2).baselines
    monkeypatch.setattr(_audit, "MOST_GRAPHS", 23)
    assert not gnn_vpa.audit(toys(12), folds=2).baselines
    assert gnn_vpa.audit(toys(12), folds=2, baselines=True).baselines


def test_the_same_audit_twice_is_the_same(toys: Make) -> None:
    one, two = (gnn_vpa.audit(toys(8), folds=3, baselines=True).to_json() for _ in range(2))
    assert one == two
