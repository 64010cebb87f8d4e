"""Programs that were exported run without gnn-vpa, and say the same."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from gnn_vpa import GnnVpaError, UsageError, build_model
from gnn_vpa.graphs import GraphSet
from gnn_vpa.nn import MODELS
from gnn_vpa.trained import TrainedModel, export_model, exporting, plain_form
from gnn_vpa.trained.batch import Part
from gnn_vpa.trained.plain_form import PlainForm

from .conftest import some_graphs

ALONE = """
import sys
sys.modules["gnn_vpa"] = None  # importing it raises
import torch
program = torch.export.load(sys.argv[1])
operators = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
assert all("gnn_vpa" not in name for name in operators), operators
batches = torch.load(sys.argv[2])
torch.save([program.module()(*batch) for batch in batches], sys.argv[3])
"""

METHODS = [(name, aggr) for name in MODELS for aggr in (*MODELS[name].aggregations(), "power(0.3)")]


@pytest.mark.parametrize(("name", "aggr"), METHODS)
def test_the_plain_form_computes_the_same(name: str, aggr: str) -> None:
    torch.manual_seed(0)
    depth: dict[str, Any] = {"depth": 3} if name == "deep" else {}
    model = build_model(name, 5, 3, aggr, **depth).double().eval()
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            torch.nn.init.normal_(module.running_mean)  # type: ignore[arg-type]
    # Self-loops, parallel edges, a node without neighbours.
    edges = torch.tensor([[0, 1, 2, 2, 3, 3, 5, 4, 4], [1, 0, 0, 1, 3, 2, 4, 5, 5]])
    batch, ptr = torch.tensor([0, 0, 0, 0, 1, 1, 1]), torch.tensor([0, 4, 7])
    x = torch.randn(7, 5, dtype=torch.float64)
    torch.testing.assert_close(
        PlainForm(model)(x, edges, batch, ptr), model(x, edges, batch), rtol=1e-12, atol=1e-12
    )


def arguments(model: TrainedModel, graphs: GraphSet, begin: int, end: int) -> tuple[Tensor, ...]:
    """Return a batch as a program takes it."""
    part = Part(graphs, begin, end)
    edge_attr = model.encoding.edges(part).attributes
    more = () if edge_attr is None else (edge_attr,)
    x = model.encoding.apply(part).matrix()
    return (x, part.edge_index(), part.batch(), part.ptr, *more)


@pytest.mark.parametrize("kind", ["classifier", "regressor", "labeller", "own_model"])
def test_a_program_runs_alone_for_any_number_of_graphs(
    kind: str, mutag: GraphSet, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    model: TrainedModel = request.getfixturevalue(kind)
    is_mutag = kind in ("classifier", "own_model")
    graphs = mutag if is_mutag else GraphSet.from_pyg(some_graphs(30, lambda _: 0, seed=1))
    export_model(model, tmp_path / "mine.pt2")
    ends = [(0, graphs.num_graphs), (0, 1), (3, 7)]
    torch.save([arguments(model, graphs, *pair) for pair in ends], tmp_path / "batches.pt")
    files = [tmp_path / name for name in ("mine.pt2", "batches.pt", "said.pt")]
    subprocess.run([sys.executable, "-W", "ignore", "-c", ALONE, *files], check=True)
    expected = torch.from_numpy(model.outputs(graphs))
    for said, (begin, end) in zip(torch.load(files[2]), ends, strict=True):
        right = expected[begin:end]
        assert float((said - right).abs().max()) <= 1e-6 * max(1.0, float(right.abs().max()))


def test_a_graph_of_one_node_without_edges_is_served(
    classifier: TrainedModel, tmp_path: Path
) -> None:
    export_model(classifier, tmp_path / "mine.pt2")
    program = torch.export.load(tmp_path / "mine.pt2").module()
    none, x = torch.empty(2, 0, dtype=torch.int64), torch.eye(7)[:1]
    said = program(x, none, torch.tensor([0]), torch.tensor([0, 1]))
    np.testing.assert_allclose(
        said.numpy(), classifier.outputs([Data(x=x, edge_index=none)]), rtol=1e-5, atol=1e-6
    )


def test_what_computes_something_else_is_not_written(
    classifier: TrainedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_form, "_power", lambda count, exponent: count.clamp(min=1).pow(-1))
    with pytest.raises(GnnVpaError, match="computes something else"):
        export_model(classifier, tmp_path / "mine.pt2")
    assert not (tmp_path / "mine.pt2").exists()


def test_what_cannot_be_exported_says_why(
    own_model: TrainedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("data-dependent\nand more")

    monkeypatch.setattr(torch.export, "export", fails)
    with pytest.raises(GnnVpaError, match=r"cannot be exported: torch.export says data-dependent$"):
        export_model(own_model, tmp_path / "mine.pt2")


def test_onnx_says_what_the_model_says(
    classifier: TrainedModel, mutag: GraphSet, tmp_path: Path
) -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    export_model(classifier, tmp_path / "mine.onnx", "onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.onnx"]  # with its weights
    session = onnxruntime.InferenceSession(tmp_path / "mine.onnx")
    names = [given.name for given in session.get_inputs()]
    for count in (1, 40):
        given = arguments(classifier, mutag, 0, count)
        inputs = {name: value.numpy() for name, value in zip(names, given, strict=True)}
        said = session.run(None, inputs)[0]
        right = classifier.outputs(mutag)[:count]
        np.testing.assert_allclose(said, right, rtol=1e-5, atol=1e-5)


def test_onnx_says_what_it_lacks(
    classifier: TrainedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="onnx needs onnx and onnxscript"):
        export_model(classifier, tmp_path / "mine.onnx", "onnx")
    with pytest.raises(UsageError, match="'tflite' is unknown"):
        export_model(classifier, tmp_path / "mine", "tflite")  # type: ignore[arg-type]
