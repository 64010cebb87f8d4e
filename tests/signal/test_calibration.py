import copy
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GAT, GCN, GIN, EdgeCNN, GraphConv, GraphSAGE, LGConv, RGCNConv
from torch_geometric.nn.dense import Linear as PyGLinear

import gnn_vpa
from gnn_vpa import Graph, UsageError, calibrate, init_
from gnn_vpa.graphs import load
from gnn_vpa.nn.deep import DeepGCN


@pytest.fixture(autouse=True)
def _same_weights() -> None:
    torch.manual_seed(0)


def _graphs(count: int = 12, channels: int = 5) -> list[Data]:
    draw = torch.Generator().manual_seed(0)
    graphs = []
    for n in range(4, 4 + count):
        ends = torch.randint(n, (2, 3 * n), generator=draw)
        x = torch.randn(n, channels, generator=draw)
        graphs.append(Data(x=x, edge_index=ends, y=torch.tensor([n % 2])))
    return graphs


PYG: dict[str, Callable[[], nn.Module]] = {
    "GCN": lambda: GCN(5, 16, num_layers=3),
    "GraphSAGE": lambda: GraphSAGE(5, 16, num_layers=3),
    "GIN": lambda: GIN(5, 16, num_layers=3, norm="BatchNorm", dropout=0.5),
    "GAT": lambda: GAT(5, 16, num_layers=3, heads=4, dropout=0.5),
    "EdgeCNN": lambda: EdgeCNN(5, 16, num_layers=2),
}
OURS: dict[str, Callable[[], nn.Module]] = {
    "gin": lambda: gnn_vpa.build_model("gin", 5, 2, "sum"),
    "gcn": lambda: gnn_vpa.build_model("gcn", 5, 2, "max"),
    "gat": lambda: gnn_vpa.build_model("gat", 5, 2, "vpa"),
    "sgc": lambda: gnn_vpa.build_model("sgc", 5, 2, "vpa", K=3),
    "deep": lambda: DeepGCN(5, 2, "vpa", depth=12, branch=0.1),
}


def _variances(model: nn.Module, run: Callable[[], object]) -> dict[str, list[float]]:
    """Measure by hand: the variances of what every layer gave, in the first training step."""
    found: dict[str, list[float]] = {}
    handles = []
    for path, module in model.named_modules():
        if isinstance(module, nn.Linear | PyGLinear) or type(module).__name__.endswith("Conv"):

            def hook(_: nn.Module, __: object, out: Tensor, path: str = path) -> None:
                found.setdefault(path, []).append(out.double().var(correction=0).item())

            handles.append(module.register_forward_hook(hook))
    model.eval()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.train()
    with torch.no_grad():
        run()
    for handle in handles:
        handle.remove()
    return found


@pytest.mark.parametrize("name", [*PYG, *OURS, *(f"converted {name}" for name in PYG)])
def test_every_layer_has_variance_one(name: str) -> None:
    model = (PYG | OURS)[name.removeprefix("converted ")]()
    if name.startswith("converted"):
        model, _ = gnn_vpa.convert(model)
    init_(model)
    loader = DataLoader(_graphs(), batch_size=5)
    report = calibrate(model, loader)
    batch = next(iter(DataLoader(_graphs(), batch_size=99)))
    inputs = (batch.x, batch.edge_index) + ((batch.batch,) if name in OURS else ())
    seen = _variances(model, lambda: model(*inputs))
    assert report.layers
    for layer in report.layers:
        assert layer.uses == pytest.approx(seen[layer.path], rel=1e-4), "what is said is so"
        assert layer.after == pytest.approx(_geometric_mean(seen[layer.path]), rel=1e-4)
        # Linear layers whose results are added share what the whole of them gives.
        if not layer.remark and not layer.rescaled_by:
            assert layer.after == pytest.approx(1, abs=0.011), layer
    wholes = [layer for layer in report.layers if not layer.remark and not layer.rescaled_by]
    assert wholes


def _geometric_mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


class _Recurrent(nn.Module):
    """A layer that is given its own output, and one that other layers share."""

    def __init__(
        self, times: int, act: Callable[[Tensor], Tensor], conv: bool, between: bool
    ) -> None:
        super().__init__()
        self.times, self.act = times, act
        self.first = nn.Linear(5, 12)
        self.again = GraphConv(12, 12) if conv else nn.Linear(12, 12)
        self.between = nn.Linear(12, 12) if between else nn.Identity()
        self.last = nn.Linear(12, 2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = self.first(x)
        for _ in range(self.times):
            given = (x, edge_index) if isinstance(self.again, GraphConv) else (x,)
            x = self.between(self.act(self.again(*given)))
        out: Tensor = self.last(x)
        return out


@settings(max_examples=25, deadline=None)
@given(
    times=st.integers(1, 6),
    act=st.sampled_from([torch.relu, torch.tanh, nn.Identity()]),
    conv=st.booleans(),
    between=st.booleans(),
    scale=st.sampled_from([1e-2, 1.0, 30.0]),
    seed=st.integers(0, 100),
)
def test_what_is_reported_is_what_a_fresh_measurement_gives(
    times: int,
    act: Callable[[Tensor], Tensor],
    conv: bool,
    between: bool,
    scale: float,
    seed: int,
) -> None:
    torch.manual_seed(seed)
    model = _Recurrent(times, act, conv, between)
    x, edge_index = scale * torch.randn(40, 5), torch.randint(40, (2, 150))
    report = calibrate(model, (x, edge_index))
    seen = _variances(model, lambda: model(x, edge_index))
    assert {layer.path for layer in report.layers} == set(seen)
    for layer in report.layers:
        assert layer.uses == pytest.approx(seen[layer.path], rel=1e-4)
        assert layer.after == pytest.approx(_geometric_mean(seen[layer.path]), rel=1e-4)
        if not layer.remark and not layer.rescaled_by:
            assert layer.after == pytest.approx(1, abs=0.011), layer
    again = next(layer for layer in report.layers if layer.path == "again")
    assert len(again.uses) == times
    if act is not torch.tanh:  # what is homogeneous can be scaled
        assert not again.remark


def test_a_layer_that_runs_four_times_says_what_each_run_gives() -> None:
    model = _Recurrent(4, torch.relu, conv=False, between=False)
    x, edge_index = torch.randn(200, 5), torch.randint(200, (2, 10))
    report = calibrate(model, (x, edge_index))
    again = next(layer for layer in report.layers if layer.path == "again")
    assert _geometric_mean(list(again.uses)) == pytest.approx(1, abs=0.011)
    assert again.uses[0] > again.uses[-1], "one number cannot suit all"
    assert f"4 uses: {again.uses[0]:.3g}, " in str(again)


def test_layers_that_share_their_weights_are_reported_as_they_are() -> None:
    model = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6))
    model[2].weight = model[0].weight
    x = 5 * torch.randn(100, 6)
    report = calibrate(model, (x,))
    seen = _variances(model, lambda: model(x))
    for layer in report.layers:
        assert [layer.after] == pytest.approx(seen[layer.path], rel=1e-4)
        assert layer.remark or abs(layer.after - 1) <= 0.011


def test_inputs_that_the_model_changes_are_the_same_in_every_pass() -> None:
    model = nn.Sequential(nn.Hardtanh(-0.5, 0.5, inplace=True), nn.Linear(6, 6))
    x = torch.randn(100, 6)
    before = x.clone()
    assert calibrate(model, (x,)).layers[0].after == pytest.approx(1, abs=0.011)
    assert torch.equal(x, before)


@pytest.mark.parametrize("aggr", ["sum", "mean", "max", "vpa"])
def test_real_data_with_constant_features(tu_dir: Path, aggr: str) -> None:
    """All messages are equal at first: nothing is as correlated as that."""
    graphs = [Data(x=torch.ones(g.num_nodes, 1), edge_index=g.edge_index)
              for g in load("IMDB-BINARY", tu_dir).to_pyg()[:40]]  # fmt: skip
    model = gnn_vpa.build_model("gcn", 1, 2, aggr, depth=8)
    report = calibrate(model, graphs)
    assert report.left == ()
    wholes = [layer.after for layer in report.layers if not layer.rescaled_by]
    assert wholes == pytest.approx([1] * len(wholes), abs=0.011)


def test_a_layer_gets_one_number_and_keeps_its_keys() -> None:
    model = gnn_vpa.build_model("gcn", 5, 2)
    before = copy.deepcopy(model.state_dict())
    calibrate(model, _graphs())
    after = model.state_dict()
    assert list(after) == list(before)
    for name, old in before.items():
        factor = (after[name] * old).sum() / old.square().sum()
        assert torch.allclose(after[name], factor * old, rtol=1e-4, atol=1e-6), name


def test_sums_of_different_size_stay_different() -> None:
    """One neighbour and nine: sum gives 9 times as much, vpa 3 times, before and after."""
    hub = torch.stack([torch.arange(2, 12), torch.tensor([0] + [1] * 9)])
    for aggr, times in (("sum", 9), ("vpa", 3)):
        layer = GraphConv(
            1, 64, aggr="sum" if aggr == "sum" else gnn_vpa.VPAggregation(), bias=False
        )
        calibrate(layer, (torch.ones(12, 1), hub))
        layer.lin_root.weight.data.zero_()
        out = layer(torch.ones(12, 1), hub)
        assert torch.allclose(out[1], times * out[0], atol=1e-4)


def test_nothing_but_weights_changes() -> None:
    model = GIN(5, 16, num_layers=2, norm="BatchNorm", dropout=0.5)
    model.train()
    model.convs[0].eval()
    modes = [module.training for module in model.modules()]
    buffers = [buffer.clone() for buffer in model.buffers()]
    state = torch.get_rng_state()
    calibrate(model, _graphs())
    assert [module.training for module in model.modules()] == modes
    assert all(map(torch.equal, model.buffers(), buffers))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(weight.grad is None and weight.requires_grad for weight in model.parameters())
    assert not any(module._forward_hooks for module in model.modules())


def test_what_a_cached_layer_remembers_is_forgotten() -> None:
    model = GCN(5, 8, num_layers=2, cached=True)
    calibrate(model, _graphs(1))
    assert model.convs[0]._cached_edge_index is None


def test_the_function_is_the_same_up_to_a_factor_where_it_is_homogeneous() -> None:
    model = nn.Sequential(nn.Linear(3, 8, bias=False), nn.ReLU(), nn.Linear(8, 2, bias=False))
    x = torch.randn(20, 3)
    before = model(x)
    report = calibrate(model, (x,))
    factor = report.layers[0].factor * report.layers[1].factor
    assert torch.allclose(model(x), factor * before, atol=1e-5)


def test_biases_are_scaled_with_the_weights() -> None:
    model = nn.Linear(3, 4)
    x = torch.randn(20, 3)
    before, report = model(x), calibrate(model, (x,))
    assert torch.allclose(model(x), report.layers[0].factor * before, atol=1e-5)


def test_data_may_come_in_any_form() -> None:
    graphs = _graphs(4)
    batch = next(iter(DataLoader(graphs, batch_size=4)))
    named = {"x": batch.x, "edge_index": batch.edge_index}
    forms = [graphs, DataLoader(graphs, batch_size=2), batch, (batch.x, batch.edge_index), named]
    torch.manual_seed(0)
    original = GraphSAGE(5, 8, num_layers=2)
    weights = []
    for data in forms:
        model = copy.deepcopy(original)
        calibrate(model, data)
        weights.append(model.convs[1].lin_l.weight)
    assert all(torch.allclose(weights[0], other, rtol=1e-4) for other in weights[1:])


class _TakesData(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(5, 3)

    def forward(self, data: Data) -> Tensor:
        return self.lin(data.x)


def test_a_model_may_take_the_data_itself() -> None:
    assert calibrate(_TakesData(), _graphs(2)).layers[0].after == pytest.approx(1, abs=0.011)


def test_only_as_many_batches_as_needed_are_read() -> None:
    read = 0

    def loader() -> object:
        nonlocal read
        for graph in _graphs():
            read += 1
            yield graph

    calibrate(GCN(5, 8, num_layers=1), loader(), max_nodes=10)
    assert read == 3, "graphs of 4, 5 and 6 nodes"


def test_merged_nodes_count_as_often_as_they_occur() -> None:
    star = torch.tensor([[1, 2, 3, 0, 0, 0], [0, 0, 0, 1, 2, 3]])
    merged = Graph(torch.tensor([[1, 0], [0, 1]]), 2, torch.tensor([3, 1]))
    nodes = torch.tensor([1, 3])
    readout = Graph.readout(torch.tensor([0, 0]), multiplicity=nodes)
    whole, small = (copy.deepcopy(m) for m in [gnn_vpa.build_model("gcn", 1, 2)] * 2)
    first = calibrate(whole, (torch.ones(4, 1), star, torch.zeros(4, dtype=torch.int64)))
    second = calibrate(small, (torch.ones(2, 1), merged, readout), nodes=nodes)
    for one, other in zip(first.layers, second.layers, strict=True):
        assert other.before == pytest.approx(one.before, rel=1e-3)


def test_what_cannot_be_scaled_is_left_and_says_why() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.spread = LGConv()
            self.shared = nn.Linear(5, 5)
            self.zero = nn.Linear(5, 5, bias=False)
            self.conv = GraphSAGE(5, 5, num_layers=1, normalize=True)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            x = self.shared(self.shared(self.spread(x, edge_index)))
            return self.conv(x, edge_index) + self.zero(torch.zeros_like(x))

    model = Model()
    report = calibrate(model, _graphs())
    reasons = {layer.path: layer.remark for layer in report.left}
    assert reasons == {
        "spread": "it has no weights",
        "zero": "its output is the same everywhere",
        "conv.convs.0": "its output does not follow its weights",
    }
    (shared,) = (layer for layer in report.layers if layer.path == "shared")
    assert len(shared.uses) == 2
    assert shared.after == pytest.approx(1, abs=0.011)
    assert "3 left" in str(report)


def test_weights_of_a_layer_without_linear_modules_are_scaled() -> None:
    layer = RGCNConv(5, 8, num_relations=2)
    x, edges = torch.randn(10, 5), torch.randint(10, (2, 40))
    report = calibrate(layer, (x, edges, torch.arange(40) % 2))
    assert layer(x, edges, torch.arange(40) % 2).var().item() == pytest.approx(1, abs=0.02)
    assert report.left == ()


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # importing the compiler
def test_a_compiled_model_is_calibrated_by_what_it_wraps() -> None:
    model = nn.Sequential(nn.Linear(3, 16), nn.ReLU())
    x = torch.randn(30, 3)
    calibrate(torch.compile(model), (x,))  # type: ignore[arg-type]
    assert model[0](x).var(correction=0).item() == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(
    ("model", "data", "message"),
    [
        ("a string", [], "model: expected a torch.nn.Module, got str"),
        (nn.ReLU(), (torch.ones(3),), "no Linear or message-passing layer ran"),
        (GCN(7, 8, 1), _graphs(1), "data: GCN does not run on it: RuntimeError"),
        (GCN(5, 8, 1), [], "data: the loader is empty"),
        (GCN(5, 8, 1), 3, "data: expected a loader of PyG Data.* got int"),
        (GCN(5, 8, 1), [(1, 2)], "data: expected PyG Data from the loader, got tuple"),
        (
            GCN(5, 8, 1),
            [Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2)],
            r"forward asks for 'x'.*transforms.Constant\(\)",
        ),
        (nn.Linear(2, 2), (torch.full((3, 2), torch.nan),), "output is not finite"),
        (nn.ModuleList([PyGLinear(-1, 4)]), (), "0 does not know its input size yet"),
    ],
)
def test_wrong_use_is_named(model: nn.Module, data: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        calibrate(model, data)


def test_after_an_error_the_weights_are_as_before() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(5, 6))
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(UsageError, match="does not run"):
        calibrate(model, (torch.randn(8, 3),))
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_data_follow_the_model_to_its_device() -> None:
    model = GraphSAGE(5, 16, num_layers=3).cuda()
    report = calibrate(model, _graphs())
    wholes = [layer.after for layer in report.layers if not layer.rescaled_by]
    assert wholes == pytest.approx([1] * 3, abs=0.02)


def test_layers_that_free_their_inputs_are_refused() -> None:
    from torch_geometric.nn import GCNConv, GroupAddRev

    model = GroupAddRev(GCNConv(4, 4), num_groups=2)
    pair = torch.tensor([[0, 1], [1, 0]])
    with pytest.raises(UsageError, match="free their inputs"):
        calibrate(model, (torch.randn(2, 8), pair))
