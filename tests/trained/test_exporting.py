"""Programs that were exported run without gnn-vpa, and say the same."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, SAGEConv, TransformerConv, global_add_pool

from gnn_vpa import GnnVpaError, GraphClassifier, UsageError, build_model
from gnn_vpa.graphs import GraphSet
from gnn_vpa.nn import MODELS
from gnn_vpa.trained import TrainedModel, export_model, exporting, plain_form
from gnn_vpa.trained.batch import Part
from gnn_vpa.trained.plain_form import PlainForm

from .conftest import some_graphs

# PyTorch's exporter warns about its own code.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
    pytest.mark.filterwarnings("ignore:While compiling:UserWarning"),
]

ALONE = """
import sys
sys.modules["gnn_vpa"] = None  # importing it raises
from pathlib import Path
import torch
for folder in map(Path, sys.argv[1:]):
    program = torch.export.load(folder / "mine.pt2")
    operators = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    assert all("gnn_vpa" not in name for name in operators), operators
    batches = torch.load(folder / "batches.pt")
    torch.save([program.module()(*batch) for batch in batches], folder / "said.pt")
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


def test_programs_run_alone_for_any_number_of_graphs(
    mutag: GraphSet, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    others = GraphSet.from_pyg(some_graphs(30, lambda _: 0, seed=1))
    of_kind = {"classifier": mutag, "regressor": others, "labeller": others, "own_model": mutag}
    expected = []
    for kind, graphs in of_kind.items():
        model: TrainedModel = request.getfixturevalue(kind)
        folder = tmp_path / kind
        folder.mkdir()
        export_model(model, folder / "mine.pt2")
        ends = [(0, graphs.num_graphs), (0, 1), (3, 7)]
        torch.save([arguments(model, graphs, *pair) for pair in ends], folder / "batches.pt")
        outputs = torch.from_numpy(model.outputs(graphs))
        expected += [(kind, number, outputs[slice(*pair)]) for number, pair in enumerate(ends)]
    folders = [tmp_path / kind for kind in of_kind]
    subprocess.run([sys.executable, "-W", "ignore", "-c", ALONE, *folders], check=True)
    for kind, number, right in expected:
        said = torch.load(tmp_path / kind / "said.pt")[number]
        close = float((said - right).abs().max()) <= 1e-6 * max(1.0, float(right.abs().max()))
        assert close, (kind, number)


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
    classifier: TrainedModel, own_model: TrainedModel, mutag: GraphSet, tmp_path: Path
) -> None:
    """Also on several threads, where ONNX Runtime's ``ScatterND`` loses summands now and then."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    onnx = pytest.importorskip("onnx")
    for model, name in ((classifier, "mine.onnx"), (own_model, "theirs.onnx")):
        export_model(model, tmp_path / name, "onnx")
        kinds = {node.op_type for node in onnx.load(tmp_path / name).graph.node}
        assert "ScatterND" not in kinds
        session = onnxruntime.InferenceSession(tmp_path / name)
        names = [given.name for given in session.get_inputs()]
        for count in (1, 40, *[mutag.num_graphs] * 40):
            given = arguments(model, mutag, 0, count)
            inputs = {name: value.numpy() for name, value in zip(names, given, strict=True)}
            said = session.run(None, inputs)[0]
            right = model.outputs(mutag)[:count]
            np.testing.assert_allclose(said, right, rtol=1e-4, atol=1e-5)
    assert {path.name for path in tmp_path.iterdir()} == {"mine.onnx", "theirs.onnx"}


def test_sums_that_onnx_runtime_gets_wrong_are_refused(mutag: GraphSet, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")

    class Net(torch.nn.Module):
        def __init__(self, in_channels: int, out_channels: int) -> None:
            super().__init__()
            self.lin = torch.nn.Linear(in_channels, out_channels)

        def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
            x = x.index_add(0, edge_index[1], x[edge_index[0]])
            return global_add_pool(self.lin(x), batch)

    estimator = GraphClassifier(Net, aggr=None, epochs=1, random_state=0, device="cpu")
    model = estimator.fit(mutag).model_
    export_model(model, tmp_path / "mine.pt2")
    with pytest.raises(GnnVpaError, match="cannot be exported as onnx: it adds by ScatterND"):
        export_model(model, tmp_path / "mine.onnx", "onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.pt2"]


def test_onnx_says_what_it_lacks(
    classifier: TrainedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="onnx needs onnx and onnxscript"):
        export_model(classifier, tmp_path / "mine.onnx", "onnx")
    with pytest.raises(UsageError, match="'tflite' is unknown"):
        export_model(classifier, tmp_path / "mine", "tflite")  # type: ignore[arg-type]


def _net(conv: Callable[[int, int], torch.nn.Module]) -> Callable[[int, int], torch.nn.Module]:
    class Net(torch.nn.Module):
        def __init__(self, in_channels: int, out_channels: int) -> None:
            super().__init__()
            self.first, self.last = conv(in_channels, 4), conv(4, out_channels)

        def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
            x = self.first(x, edge_index).relu()
            return global_add_pool(self.last(x, edge_index), batch)

    return Net


@pytest.mark.parametrize("conv", [SAGEConv, GCNConv, GATConv])
def test_a_converted_network_is_made_of_pytorchs_operators(conv: Any, tmp_path: Path) -> None:
    graphs = some_graphs(20, lambda number: number % 2)
    estimator = GraphClassifier(_net(conv), aggr="vpa", epochs=1, random_state=0, device="cpu")
    model = estimator.fit(graphs).model_
    export_model(model, tmp_path / "mine.pt2")
    data = GraphSet.from_pyg(graphs)
    torch.save([arguments(model, data, 2, 7)], tmp_path / "batches.pt")
    subprocess.run([sys.executable, "-c", ALONE, tmp_path], check=True)
    (said,) = torch.load(tmp_path / "said.pt")
    torch.testing.assert_close(said.numpy(), model.outputs(data)[2:7], rtol=1e-5, atol=1e-5)


def test_a_network_that_needs_operators_of_ours_is_refused(tmp_path: Path) -> None:
    net = _net(lambda i, o: TransformerConv(i, o))
    estimator = GraphClassifier(net, aggr="vpa", epochs=1, random_state=0, device="cpu")
    model = estimator.fit(some_graphs(20, lambda number: number % 2)).model_
    with pytest.raises(GnnVpaError, match="cannot be exported: it would need gnn_vpa"):
        export_model(model, tmp_path / "mine.pt2")
    assert not list(tmp_path.iterdir())
