from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from gnn_vpa.errors import UsageError
from gnn_vpa.graphs import Features, features, read_tu

LABELS = "3\n5\n3\n3\n4\n"
ATTRIBUTES = "0.5, 1\n1.5, 2\n2.5, 3\n3.5, 4\n4.5, 5\n"


def test_ones(write_tu: Callable[..., Path]) -> None:
    x = features(read_tu(write_tu()), "ones")
    assert x.width == 1
    assert torch.equal(x.matrix(), torch.ones(5, 1))


def test_degree_is_one_hot_over_the_degrees_that_occur(write_tu: Callable[..., Path]) -> None:
    # Node 2 has degree 4 by edges from all others of its graph; 2 and 3 do not occur.
    graphs = read_tu(
        write_tu(
            A="1,2\n3,2\n4,2\n5,2\n2,1\n2,3\n",
            graph_indicator="1\n1\n1\n1\n1\n2\n",
        )
    )
    x = features(graphs, "degree")
    assert graphs.degree().tolist() == [1, 4, 1, 0, 0, 0]
    assert x.width == 3
    assert x.codes is not None
    assert x.codes.tolist() == [1, 2, 1, 0, 0, 0]
    assert torch.equal(x.matrix(), torch.eye(3)[x.codes])


def test_labels_come_after_attributes(write_tu: Callable[..., Path]) -> None:
    graphs = read_tu(write_tu(node_labels=LABELS, node_attributes=ATTRIBUTES))
    x = features(graphs)
    assert x.width == 5
    assert x.matrix()[1].tolist() == [1.5, 2.0, 0.0, 0.0, 1.0]
    assert torch.equal(x.matrix(slice(3, 5)), x.matrix()[3:5])
    assert torch.equal(x.matrix(torch.tensor([4, 0])), x.matrix()[[4, 0]])
    assert torch.equal(torch.cat([data.x for data in graphs.to_pyg()]), x.matrix())


def test_codes_say_what_the_matrix_says(write_tu: Callable[..., Path]) -> None:
    x = features(read_tu(write_tu(node_labels=LABELS, node_attributes=ATTRIBUTES)))
    weight = torch.randn(7, x.width, generator=torch.Generator().manual_seed(0))
    assert x.codes is not None
    assert x.dense is not None
    lookup = x.dense @ weight[:, :2].T + weight[:, 2:].T[x.codes]
    torch.testing.assert_close(lookup, x.matrix() @ weight.T)


def test_auto_takes_what_there_is(write_tu: Callable[..., Path]) -> None:
    assert features(read_tu(write_tu("NONE"))).width == 1
    assert features(read_tu(write_tu("LABELS", node_labels=LABELS))).width == 3
    assert features(read_tu(write_tu("ATTRIBUTES", node_attributes=ATTRIBUTES))).width == 2


def test_labels_where_there_are_none(write_tu: Callable[..., Path]) -> None:
    with pytest.raises(UsageError, match=r"TINY has neither .* 'ones' or 'degree'"):
        features(read_tu(write_tu()), "labels")


def test_an_unknown_kind(write_tu: Callable[..., Path]) -> None:
    with pytest.raises(UsageError, match=r"'colour': use auto, ones, degree, labels"):
        features(read_tu(write_tu()), "colour")  # type: ignore[arg-type]


def test_degrees_of_the_wide_sets_are_never_written_out(tu_dir: Path) -> None:
    x = features(read_tu(tu_dir / "REDDIT-BINARY.zip"), "degree")
    assert x.dense is None
    assert x.codes is not None
    assert x.width == len(set(x.codes.tolist())) > 500


def test_features_of_nothing_but_codes() -> None:
    assert Features(num_codes=2, codes=torch.tensor([0, 1])).matrix().tolist() == [[1, 0], [0, 1]]
