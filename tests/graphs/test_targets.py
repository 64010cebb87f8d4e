"""What is learned of a graph: classes, labels or numbers, from wherever they come."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Data

from gnn_vpa.errors import GnnVpaError, UsageError
from gnn_vpa.graphs import (
    GraphSet,
    kind_of,
    load,
    missing_remark,
    read_cached,
    read_tu,
    with_target,
)
from gnn_vpa.graphs.targets import targets_of

NAN = math.nan
PAIR = torch.tensor([[0, 1], [1, 0]])


def made(*values: object, name: str = "mine", **settings: str) -> GraphSet:
    """Graphs of two nodes (the first of three) with these as y."""
    graphs = [
        Data(edge_index=PAIR, num_nodes=3 if i == 0 else 2, y=y) for i, y in enumerate(values)
    ]
    return GraphSet.from_pyg(graphs, name, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "kind", "y"),
    [
        ((3, -1, 3), "classes", [1, 0, 1]),
        ((True, False), "classes", [1, 0]),
        ((torch.tensor([4]), torch.tensor([[2]])), "classes", [1, 0]),
        ((3, NAN, 1), "classes", [1, -1, 0]),
        (("b", "a", "b"), "classes", [1, 0, 1]),
        (("b", NAN, "a"), "classes", [1, -1, 0]),
        ((0.0, 1.0, NAN), "labels", [[0], [1], [-1]]),
        ((torch.tensor([[1, 0]]), torch.tensor([[0, 0]])), "labels", [[1, 0], [0, 0]]),
        ((torch.tensor([[1.0, NAN]]), torch.tensor([[0.0, 0]])), "labels", [[1, -1], [0, 0]]),
        ((0.5, 2.0), "regression", [[0.5], [2.0]]),
        (([0.5, 1.5], [2.0, 0.0]), "regression", [[0.5, 1.5], [2.0, 0.0]]),
    ],
)
def test_values_say_their_kind(values: tuple[object, ...], kind: str, y: list[object]) -> None:
    graphs = made(*values)
    assert graphs.kind == kind_of(graphs.y) == kind
    assert graphs.y.tolist() == y


@settings(max_examples=50, deadline=None)
@given(
    st.one_of(
        st.lists(st.integers(-3, 3), min_size=2, max_size=9),
        st.lists(st.sampled_from(["tox", "safe", ""]), min_size=2, max_size=9),
        st.lists(st.sampled_from([0.0, 1.0, NAN]), min_size=2, max_size=9),
        st.lists(st.floats(-9, 9, width=32) | st.just(NAN), min_size=2, max_size=9),
        st.lists(
            st.lists(st.floats(2, 9, width=32), min_size=3, max_size=3), min_size=2, max_size=9
        ).map(lambda rows: [torch.tensor([row]) for row in rows]),
    )
)
def test_there_and_back_through_pyg(values: list[object]) -> None:
    kind = "classes" if isinstance(values[0], int) else "auto"
    graphs = made(*values, kind=kind)
    again = GraphSet.from_pyg(graphs.to_pyg(), "again")
    assert again.checksum() == graphs.checksum()
    assert again.class_names == graphs.class_names


@pytest.mark.parametrize(
    ("values", "offered"),
    [
        ((-1, 0, 1), "--task classes or --task regression"),
        ((2, -1, 0, NAN, 1), "--task classes or --task regression"),
        ((-1.0, 0.0, 1.0), "--task classes or --task regression"),
        (([1.0, -1.0], [0.0, 1.0]), "--task regression"),
        (([1, -1], [0, 1]), "--task regression"),
    ],
)
def test_minus_one_beside_zero_and_one_may_be_a_missing_target(
    values: tuple[object, ...], offered: str
) -> None:
    with pytest.raises(UsageError, match=f"-1 may stand for a missing .* learned with {offered}"):
        made(*values)
    assert made(*values, kind="regression").kind == "regression"


def test_minus_one_is_a_class_beside_one_alone_or_where_classes_are_asked_for() -> None:
    assert made(-1, 1, -1).y.tolist() == [0, 1, 0]
    assert made(-1, 0, 1, kind="classes").numbering.classes == (-1, 0, 1)


def test_names_of_classes_are_kept_and_count() -> None:
    graphs = made("toxic", "safe", "toxic")
    assert graphs.class_names == ("safe", "toxic")
    assert graphs.graph(0).y == "toxic"
    assert graphs.checksum() != made("bad", "good", "bad").checksum()
    assert graphs.y.equal(made(1, 0, 1).y)


def test_the_number_of_outputs() -> None:
    assert (made(5, 7, 9).num_outputs, made(5, 7, 9).num_classes) == (3, 3)
    assert (made(0.0, 1.0).num_outputs, made(0.0, 1.0).num_classes) == (1, 0)
    assert repr(made(0.5, 1.0)) == "GraphSet('mine', graphs=2, targets=1, nodes=5, edges=4)"


@pytest.mark.parametrize(
    ("values", "settings", "message"),
    [
        ((0, 0.5), {}, "mine, graph 1: y must be one whole number or text .* but is 0.5"),
        ((0, "a"), {}, "mine, graph 1: y must be one whole"),
        (([1.0, 2.0], [1.0]), {}, r"mine, graph 1: y has 1 value\(s\), and 2 in graph 0"),
        (
            ([1, 2], [3, 4], [3, 4]),
            {},
            "mine, y: 2 whole numbers for each graph .*kind='regression",
        ),
        ((0.5, 1.0), {"kind": "classes"}, "mine, y: classes are whole numbers or text"),
        ((0.5, 1.0), {"kind": "labels"}, "mine, y: labels are 0 or 1, .* one is 0.5"),
        (("a", "b"), {"kind": "regression"}, "mine, y: text can only be the class"),
        ((0, 1), {"kind": "numbers"}, "mine, y: no kind is called 'numbers'"),
        ((2**60, 2**60 + 1), {}, "whole numbers from .* are not told apart"),
        ((0.5, 1e300), {}, "mine: y of graph 1, column 0 .* is inf"),
        ((1e8 + 0.5, 1e8 + 1), {}, "mine, y: numbers around 1e.08 .* are rounded by .* in 32 bits"),
        ((0, 1), {"target": "homo"}, "mine, graph 0: it has no homo, which is to be learned"),
    ],
)
def test_values_that_cannot_be_used_are_named(
    values: tuple[object, ...], settings: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        made(*values, **settings)


def test_numbers_far_from_zero_are_taken_where_32_bits_tell_them_apart() -> None:
    assert made(1e4 + 0.5, 1e4 + 7, float("nan")).y[:2].tolist() == [[10000.5], [10007.0]]
    assert made(1e8 + 1, 1e8 + 1, 1e8 + 1).kind == "regression"  # rounded, and still the same


def test_whole_numbers_can_be_regression() -> None:
    graphs = made(3, 7, kind="regression")
    assert graphs.y.tolist() == [[3.0], [7.0]]


@pytest.mark.parametrize("values", [torch.arange(5), torch.rand(5), torch.rand(5, 2)])
def test_values_of_nodes_say_what_can_be_done_instead(values: Tensor) -> None:
    nodes = [
        Data(edge_index=PAIR, num_nodes=n, y=values[:n]) for n in (3, 5, 2)
    ]  # as of a data set of nodes: one, or several graphs
    with pytest.raises(UsageError, match=r"mine, y has a value for every node.*k_hop_subgraph"):
        GraphSet.from_pyg(nodes, "mine")
    with pytest.raises(UsageError, match=r"a value for every node"):
        load(nodes[1:2])


def test_a_named_attribute_is_learned() -> None:
    some = [Data(edge_index=PAIR, num_nodes=2, y=0, homo=value) for value in (0.5, 1.5)]
    graphs = GraphSet.from_pyg(some, "QM9", target="homo")
    assert (graphs.name, graphs.y.tolist()) == ("QM9:homo", [[0.5], [1.5]])
    assert load(some, target="homo").name == "custom:homo"


def test_columns_of_tu_attributes(write_tu: Callable[..., Path]) -> None:
    folder = write_tu(graph_attributes="0.5, 1, 7\n1.5, 0, 8\n")
    graphs = read_cached(folder)
    assert graphs.kind == "classes"
    assert read_cached(folder).checksum() == graphs.checksum() == read_tu(folder).checksum()
    every = with_target(graphs, "attributes")
    assert (every.name, every.y.tolist()) == ("TINY:attributes", [[0.5, 1, 7], [1.5, 0, 8]])
    assert load(folder, target="attributes:1").y.tolist() == [[1], [0]]
    assert load(folder, target="attributes:1").kind == "labels"
    assert load(folder, target="attributes:2", kind="classes").y.tolist() == [0, 1]
    assert with_target(graphs) is graphs
    for column in ("attributes:3", "attributes:-1", "attributes:x"):
        with pytest.raises(UsageError, match=r"TINY: attributes has no column .* it has 3"):
            with_target(graphs, column)
    with pytest.raises(UsageError, match=r"there is no target 'homo', expected one of y, attrib"):
        with_target(graphs, "homo")
    with pytest.raises(UsageError, match=r"TINY: y are classes"):
        with_target(graphs, "y", "regression")


def test_an_attribute_that_32_bits_do_not_tell_apart_is_no_target(
    write_tu: Callable[..., Path],
) -> None:
    graphs = read_tu(write_tu(graph_attributes="0.5, 100000000\n1.5, 100000009\n"))
    assert graphs.kind == "classes"  # for which it does not matter
    assert with_target(graphs, "attributes:0").y.tolist() == [[0.5], [1.5]]
    with pytest.raises(UsageError, match=r"TINY, .*numbers around 1e.08 .* 32 bits"):
        with_target(graphs, "attributes:1", "regression")


def test_an_archive_without_targets_is_read_and_says_so(
    write_tu: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    folder = write_tu(graph_labels=None)
    assert load(folder).y.tolist() == [-1, -1]
    assert "TINY: no graph has a target, so that nothing can be learned" in caplog.text
    caplog.clear()
    assert load(folder, target="").num_graphs == 2
    assert caplog.text == ""


def test_tu_attributes_alone_are_what_is_learned(write_tu: Callable[..., Path]) -> None:
    folder = write_tu(graph_labels=None, graph_attributes="0.5\n-1e-3\n")
    graphs = read_cached(folder)
    assert (graphs.kind, graphs.num_outputs) == ("regression", 1)
    torch.testing.assert_close(graphs.y, torch.tensor([[0.5], [-1e-3]]))
    assert read_cached(folder).checksum() == graphs.checksum()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0.5\n", "ends with graph 2, but TINY_graph_attributes.txt has 1"),
        ("0.5\nx\n", "graph_attributes.txt, line 2: 'x' is not a number"),
        ("0.5\nnan\n", "graph_attributes.txt, line 2: 'nan' is not a finite number"),
        ("0.5\n1e300\n", "graph_attributes of graph 1, column 0"),
    ],
)
def test_tu_attributes_are_read_strictly(
    write_tu: Callable[..., Path], text: str, message: str
) -> None:
    with pytest.raises(GnnVpaError, match=message):
        read_tu(write_tu(graph_attributes=text))


def test_missing_targets_are_said(caplog: pytest.LogCaptureFixture) -> None:
    graphs = made(0, 1, NAN, NAN)
    sentence = "mine: 2 of 4 classes are missing: they are left out of the loss and of every metric"
    assert missing_remark(graphs) == sentence
    assert missing_remark(made(0, 1)) is None
    load(graphs)
    assert caplog.messages == [sentence]


def test_an_old_copy_without_attributes_is_made_again(
    write_tu: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_tu(graph_attributes="0.5\n1.5\n")
    monkeypatch.setattr("gnn_vpa.graphs.cache._FORMAT", "2")
    read_cached(folder)
    monkeypatch.undo()
    monkeypatch.setenv("GNN_VPA_CACHE", str(folder.parent.parent / "cache"))
    assert read_cached(folder).graph_attributes is not None


def test_targets_without_nodes_are_taken_as_they_are() -> None:
    assert targets_of([[0.5, 1.5], [2.5, 3.5]]).y.shape == (2, 2)
