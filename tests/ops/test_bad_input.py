"""Wrong arguments are named before any kernel runs."""

import pytest
import torch

from gnn_vpa.errors import GnnVpaError, UsageError
from gnn_vpa.ops import Graph, aggregate, attend, backend, use_backend

EDGES = torch.tensor([[0, 1], [1, 0]])
X = torch.ones(2, 3)

MISTAKES = {
    "unknown aggregation": (lambda: aggregate(X, EDGES, "vpp"), "aggr: 'vpp'"),
    "unknown attention": (lambda: attend(X, EDGES, torch.ones(2), "mean"), "aggr: 'mean'"),  # type: ignore[arg-type]
    "integer features": (lambda: aggregate(X.long(), EDGES), "x: .*torch.int64"),
    "complex features": (lambda: aggregate(X.to(torch.complex64), EDGES), "x: .*complex64"),
    "features of no axis": (lambda: aggregate(torch.tensor(1.0), EDGES), "x: expected shape"),
    "features as a list": (lambda: aggregate([1.0], EDGES), "x: .*list"),  # type: ignore[arg-type]
    "too few rows": (lambda: aggregate(X[:1], Graph(EDGES, 2)), "x: expected 2 rows"),
    "short weight": (lambda: aggregate(X, EDGES, "sum", torch.ones(1)), "weight: .*2 edges"),
    "weight of no axis": (lambda: aggregate(X, EDGES, "sum", torch.tensor(1.0)), "weight: "),
    "weight of three axes": (
        lambda: aggregate(X, EDGES, "sum", torch.ones(2, 3, 1)),
        "weight: expected shape",
    ),
    "wrong heads": (lambda: aggregate(X, EDGES, "sum", torch.ones(2, 2)), "weight: 2 heads"),
    "complex weight": (
        lambda: aggregate(X, EDGES, "sum", torch.ones(2) * 1j),
        "weight: .*complex",
    ),
    "long logits": (lambda: attend(X, EDGES, torch.ones(3)), "logits: .*2 edges"),
    "short multiplicity": (
        lambda: aggregate(X, EDGES, "sum", None, torch.ones(1)),
        "multiplicity: .*2 edges",
    ),
    "flat edges": (lambda: aggregate(X, EDGES.flatten()), r"edge_index: .*\[4\]"),
    "edges the other way": (lambda: Graph(torch.zeros(3, 2).long(), 3), r"edge_index: .*\[3, 2\]"),
    "float edges": (lambda: aggregate(X, EDGES.float()), "edge_index: .*float32"),
    "no tensor": (lambda: aggregate(X, [[0, 1], [1, 0]]), "graph: .*list"),  # type: ignore[arg-type]
    "index too large": (lambda: aggregate(X, EDGES + 1), "source index 2|target index 2"),
    "index negative": (lambda: aggregate(X, EDGES - 1), "index -1 is out of range"),
    "source too large": (lambda: Graph(torch.tensor([[5], [0]]), (5, 9)), "source index 5"),
    "target too large": (lambda: Graph(torch.tensor([[0], [5]]), (9, 5)), "target index 5"),
    "sorted and too large": (lambda: Graph(torch.tensor([[0, 0], [0, 7]]), 2), "target index 7"),
    "negative size": (lambda: Graph(EDGES, -1), "num_nodes: .*-1"),
    "sizes in threes": (lambda: Graph(EDGES, (2, 2, 2)), "num_nodes: "),  # type: ignore[arg-type]
    "batch of two axes": (lambda: Graph.readout(EDGES), "batch: "),
    "batch beyond the graphs": (lambda: Graph.readout(torch.tensor([0, 4]), 2), "index 4"),
    "unknown backend": (lambda: use_backend("gpu").__enter__(), "backend 'gpu'"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("mistake", list(MISTAKES))
def test_a_mistake_is_named(mistake: str) -> None:
    call, message = MISTAKES[mistake]
    with pytest.raises(UsageError, match=message) as error:
        call()
    assert isinstance(error.value, GnnVpaError)


def test_an_index_beyond_int32_does_not_wrap_around() -> None:
    with pytest.raises(UsageError, match="4294967296"):
        Graph(torch.tensor([[2**32], [0]]), 2)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.parametrize(
    ("pointer", "index", "message"),
    [([0, 1, 2], [0, 9], "source index 9"), ([0, 5, 2], [0, 1], "compressed index")],
)
def test_a_sparse_tensor_that_points_outside(
    pointer: list[int], index: list[int], message: str
) -> None:
    adj_t = torch.sparse_csr_tensor(
        torch.tensor(pointer), torch.tensor(index), torch.ones(2), (2, 2), check_invariants=False
    )
    with pytest.raises(UsageError, match=message):
        aggregate(X, adj_t)


def test_sizes_that_contradict_a_sparse_tensor() -> None:
    with pytest.raises(UsageError, match=r"num_nodes: 3 sources.*has 2"):
        Graph(torch.eye(2).to_sparse_coo(), 3)


def test_out_of_range_inside_a_compiled_function() -> None:
    compiled = torch.compile(
        lambda x, e: aggregate(x, e), fullgraph=True, dynamic=True, backend="aot_eager"
    )
    with pytest.raises(UsageError, match="out of range"):
        compiled(X, EDGES + 1)


def test_mixed_devices() -> None:
    graph = Graph(EDGES, 2)
    with pytest.raises(UsageError, match="x: is on meta, the graph on cpu"):
        aggregate(X.to("meta"), graph)
    with pytest.raises(UsageError, match="weight: is on meta"):
        aggregate(X, graph, "sum", torch.ones(2, device="meta"))


@pytest.mark.gpu
def test_mixed_devices_cpu_and_cuda() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    with pytest.raises(UsageError, match="x: is on cuda:0, the graph on cpu"):
        aggregate(X.cuda(), Graph(EDGES, 2))
    with pytest.raises(UsageError, match="out of range"):
        aggregate(X.cuda(), EDGES.cuda() + 1)


def test_one_call_tells_the_backend() -> None:
    assert backend("cpu") == backend(X) == "cpu"
    assert backend("meta") == "reference"
    with use_backend("reference"):
        assert backend("cpu") == "reference"
    assert backend("cpu") == "cpu"
