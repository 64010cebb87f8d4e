"""New graphs are read as the model knows graphs, or refused."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gnn_vpa import UsageError
from gnn_vpa.graphs import GraphSet, features, read_tu
from gnn_vpa.trained import TrainedModel, encoding_of, train_model
from gnn_vpa.trained.batch import Part
from gnn_vpa.trained.encoding import Encoding
from gnn_vpa.training import Task

from .conftest import QUICK

PAIR = torch.tensor([[0, 1], [1, 0]])
Archive = Callable[..., GraphSet]


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """Write and read an archive of paths of two nodes with these labels."""

    def read(
        labels: list[int], classes: list[int], edge_labels: list[int] | None = None
    ) -> GraphSet:
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        nodes = range(1, len(labels) + 1)
        edges = [f"{n}, {n + 1}\n{n + 1}, {n}" for n in nodes if n % 2]
        parts = {
            "A": "\n".join(edges),
            "graph_indicator": "\n".join(str((n + 1) // 2) for n in nodes),
            "graph_labels": "\n".join(map(str, classes)),
            "node_labels": "\n".join(map(str, labels)),
        }
        if edge_labels is not None:
            parts["edge_labels"] = "\n".join(map(str, edge_labels))
        for part, text in parts.items():
            (folder / f"TOY_{part}.txt").write_text(text + "\n")
        return read_tu(folder)

    return read


def whole(graphs: GraphSet) -> Part:
    """Return all graphs as one batch."""
    return Part(graphs, 0, graphs.num_graphs)


@pytest.mark.parametrize("kind", ["auto", "ones", "degree", "labels"])
def test_known_graphs_have_the_features_that_they_were_trained_with(
    mutag: GraphSet, kind: str
) -> None:
    encoding = encoding_of(mutag, kind)  # type: ignore[arg-type]
    expected = features(mutag, kind).matrix()  # type: ignore[arg-type]
    assert torch.equal(encoding.apply(whole(mutag)).matrix(), expected)
    assert encoding.width == expected.shape[1]


def test_labels_mean_the_same_in_an_archive_that_begins_elsewhere(archive: Archive) -> None:
    known = encoding_of(archive([3, 4, 7, 3], [0, 1]))
    assert known.labels == ((3, 4, 7),)
    assert known.width == 5
    later = archive([7, 4], [0])  # counted from 4 by itself
    expected = torch.tensor([[0.0, 0, 0, 0, 1], [0, 1, 0, 0, 0]])
    assert torch.equal(known.apply(whole(later)).matrix(), expected)


def test_an_unknown_label_names_graph_and_node(archive: Archive) -> None:
    known = encoding_of(archive([3, 4, 7, 3], [0, 1]))
    for unknown in (2, 5, 8):  # below, in a gap, above
        with pytest.raises(
            UsageError, match=rf"graph 1, node 1: its label {unknown} .* trained on 3, 4, 7"
        ):
            known.apply(whole(archive([3, 3, 4, unknown], [0, 1])))


def test_an_unknown_degree_names_graph_and_node() -> None:
    known = encoding_of(GraphSet.from_pyg([Data(edge_index=PAIR, num_nodes=2, y=0)]), "degree")
    lonely = [
        Data(edge_index=PAIR, num_nodes=2),
        Data(edge_index=PAIR, num_nodes=3),
    ]
    with pytest.raises(UsageError, match="graph 1, node 2: its degree 0 is not known"):
        known.apply(whole(GraphSet.from_pyg(lonely, target="")))


def test_edge_labels_mean_the_same_in_an_archive_that_begins_elsewhere(archive: Archive) -> None:
    first = archive([0, 0, 0, 0], [0, 1], [1, 1, 3, 3])
    known = encoding_of(first, also=("edge_attr",))
    assert known.edge_labels == ((1, 3),)
    later = known.edges(whole(archive([0, 0], [0], [3, 3]))).attributes
    assert later is not None
    assert later.tolist() == [[0, 0, 1], [0, 0, 1]]
    with pytest.raises(UsageError, match="an edge has the label 4"):
        known.edges(whole(archive([0, 0], [0], [4, 4])))


def test_labels_may_be_one_hot_attributes_as_pyg_has_them(
    classifier: TrainedModel, mutag: GraphSet
) -> None:
    graphs = mutag.to_pyg()
    np.testing.assert_array_equal(classifier.outputs(graphs), classifier.outputs(mutag))
    graphs[5].x[2] = 0.5
    with pytest.raises(UsageError, match=r"graph 5, node 2: .* one 1 among zeros"):
        classifier.outputs(graphs)


@pytest.mark.parametrize("columns", [None, 6, 8])
def test_other_features_are_refused(classifier: TrainedModel, columns: int | None) -> None:
    x = None if columns is None else torch.ones(2, columns)
    graph = Data(x=x, edge_index=PAIR, num_nodes=2)
    with pytest.raises(UsageError, match=r"trained on 1 column.s. of node labels"):
        classifier.outputs([graph])


def test_labels_are_no_attributes(regressor: TrainedModel, mutag: GraphSet) -> None:
    with pytest.raises(UsageError, match=r"1 column.*labels.*trained on no node labels and 2 node"):
        regressor.outputs(mutag)


def test_a_model_of_ones_looks_at_edges_alone(mutag: GraphSet) -> None:
    model = train_model(mutag, Task("gin", "vpa", features="ones"), QUICK)
    bare = [Data(edge_index=g.edge_index, num_nodes=g.num_nodes) for g in mutag.to_pyg()]
    np.testing.assert_array_equal(model.outputs(bare), model.outputs(mutag))


def test_several_columns_of_labels_are_known_each_by_itself() -> None:
    labels = torch.tensor([[0, 2], [1, 0]])
    graphs = GraphSet(
        "two", torch.tensor([0, 2]), torch.tensor([0, 1, 2]),
        torch.tensor([1, 0], dtype=torch.int32), torch.tensor([0]), node_labels=labels,
    )  # fmt: skip
    known = encoding_of(graphs)
    assert known.labels == ((0, 1), (0, 2))
    assert torch.equal(known.apply(whole(graphs)).matrix(), features(graphs).matrix())


def test_edge_features_that_are_missing_or_wider_are_refused(
    own_model: TrainedModel, mutag: GraphSet
) -> None:
    graph = mutag.graph(0)
    bare = Data(x=graph.x, edge_index=graph.edge_index)
    with pytest.raises(UsageError, match=r"no edge features, .* trained on 4"):
        own_model.outputs([bare])
    graph.edge_attr = torch.ones(graph.num_edges, 5)
    with pytest.raises(UsageError, match=r"5 column.* of edge features, .*trained on 4"):
        own_model.outputs([graph])


def test_positions_that_are_missing_are_refused() -> None:
    new = whole(GraphSet.from_pyg([Data(edge_index=PAIR, num_nodes=2)], target=""))
    with pytest.raises(UsageError, match=r"0 coordinates .* trained on 3"):
        Encoding("ones", positions=3).positions_of(new)
    with pytest.raises(UsageError, match="no edge_weight"):
        Encoding("ones", edge_weights=True).edges(new)
