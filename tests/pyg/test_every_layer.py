"""Every layer that PyTorch Geometric exports converts and runs, or is left for a reason."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing, conv
from torch_geometric.utils import to_torch_csr_tensor

from gnn_vpa.errors import UsageError
from gnn_vpa.pyg import convert, register
from gnn_vpa.pyg._forms import VPSum
from gnn_vpa.pyg._propagate import VPMessagePassing
from gnn_vpa.pyg._table import RULES

NODES, WIDTH = 6, 4

_generator = torch.Generator().manual_seed(0)


def _normal(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=_generator)


# Node 5 has no neighbours, 1 -> 0 is there twice, 2 has a self-loop.
EDGE_INDEX = torch.tensor([[1, 1, 2, 3, 0, 2, 4, 0], [0, 0, 0, 0, 1, 2, 3, 4]])
EDGES = EDGE_INDEX.shape[1]
X, POS, NORMAL = _normal(NODES, WIDTH), _normal(NODES, 3), _normal(NODES, 3)
EDGE_WEIGHT = torch.rand(EDGES, generator=_generator) + 0.5
EDGE_ATTR = _normal(EDGES, 3)
EDGE_TYPE = torch.tensor([0, 1, 0, 1, 0, 1, 0, 1])
PSEUDO = torch.rand(EDGES, 3, generator=_generator)
METADATA = (["n"], [("n", "to", "n")])
DEGREES = torch.tensor([1, 3, 1, 0, 1])
MESH = torch.stack([torch.arange(NODES).repeat_interleave(4), torch.arange(24) % NODES]).flip(0)


def mlp(inputs: int = WIDTH, outputs: int = WIDTH) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, 8), nn.ReLU(), nn.Linear(8, outputs))


@dataclass(frozen=True)
class Case:
    """A layer, and the arguments to call it with; ``needs`` is a package that may be missing."""

    make: Callable[..., nn.Module]  # by default, or with further options
    args: tuple[Any, ...] = (X, EDGE_INDEX)
    needs: str = ""


class Bare(conv.MessagePassing):
    """``MessagePassing`` as it is, with a ``forward``."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.propagate(edge_index, x=x)


def _(cls: Any, *args: Any, **kwargs: Any) -> Callable[..., nn.Module]:
    return lambda **more: cls(*(a() if callable(a) else a for a in args), **(kwargs | more))


W, A, T = (X, EDGE_INDEX, EDGE_WEIGHT), (X, EDGE_INDEX, EDGE_ATTR), (X, EDGE_INDEX, EDGE_TYPE)

CASES: dict[str, Case] = {
    "MessagePassing": Case(_(Bare)),
    "SimpleConv": Case(_(conv.SimpleConv), W),
    "GCNConv": Case(_(conv.GCNConv, WIDTH, 5), W),
    "ChebConv": Case(_(conv.ChebConv, WIDTH, 5, 2)),
    "SAGEConv": Case(_(conv.SAGEConv, WIDTH, 5)),
    "CuGraphSAGEConv": Case(_(conv.CuGraphSAGEConv, WIDTH, 5), needs="pylibcugraphops"),
    "GraphConv": Case(_(conv.GraphConv, WIDTH, 5), W),
    "GravNetConv": Case(_(conv.GravNetConv, WIDTH, 5, 2, 3, 2), (X,), needs="pyg-lib"),
    "GatedGraphConv": Case(_(conv.GatedGraphConv, 5, 2), W),
    "ResGatedGraphConv": Case(_(conv.ResGatedGraphConv, WIDTH, 5)),
    "GATConv": Case(_(conv.GATConv, WIDTH, 5, heads=2)),
    "CuGraphGATConv": Case(_(conv.CuGraphGATConv, WIDTH, 5), needs="pylibcugraphops"),
    "FusedGATConv": Case(_(conv.FusedGATConv, WIDTH, 5, add_self_loops=False), needs="dgNN"),
    "GATv2Conv": Case(_(conv.GATv2Conv, WIDTH, 5, heads=2)),
    "TransformerConv": Case(_(conv.TransformerConv, WIDTH, 5, heads=2, edge_dim=3), A),
    "AGNNConv": Case(_(conv.AGNNConv)),
    "TAGConv": Case(_(conv.TAGConv, WIDTH, 5), W),
    "GINConv": Case(_(conv.GINConv, mlp)),
    "GINEConv": Case(_(conv.GINEConv, mlp, edge_dim=3), A),
    "ARMAConv": Case(_(conv.ARMAConv, WIDTH, 5, num_stacks=2, num_layers=2), W),
    "SGConv": Case(_(conv.SGConv, WIDTH, 5, K=2), W),
    "SSGConv": Case(_(conv.SSGConv, WIDTH, 5, alpha=0.1, K=2), W),
    "APPNP": Case(_(conv.APPNP, K=2, alpha=0.1), W),
    "MFConv": Case(_(conv.MFConv, WIDTH, 5)),
    "RGCNConv": Case(_(conv.RGCNConv, WIDTH, 5, 2), T),
    "FastRGCNConv": Case(_(conv.FastRGCNConv, WIDTH, 5, 2), T),
    "CuGraphRGCNConv": Case(_(conv.CuGraphRGCNConv, WIDTH, 5, 2), needs="pylibcugraphops"),
    "RGATConv": Case(_(conv.RGATConv, WIDTH, 5, 2), T),
    "SignedConv": Case(
        _(conv.SignedConv, WIDTH, 5, first_aggr=True), (X, EDGE_INDEX, EDGE_INDEX.flip(0))
    ),
    "DNAConv": Case(_(conv.DNAConv, WIDTH, heads=2), (X.view(NODES, 1, WIDTH), EDGE_INDEX)),
    "PointNetConv": Case(_(conv.PointNetConv, lambda: mlp(WIDTH + 3)), (X, POS, EDGE_INDEX)),
    "GMMConv": Case(_(conv.GMMConv, WIDTH, 5, dim=3, kernel_size=2), (X, EDGE_INDEX, PSEUDO)),
    "SplineConv": Case(
        _(conv.SplineConv, WIDTH, 5, dim=3, kernel_size=2), (X, EDGE_INDEX, PSEUDO), "pyg-lib"
    ),
    "NNConv": Case(_(conv.NNConv, WIDTH, 5, lambda: mlp(3, WIDTH * 5)), A),
    "CGConv": Case(_(conv.CGConv, WIDTH, dim=3), A),
    "EdgeConv": Case(_(conv.EdgeConv, lambda: mlp(2 * WIDTH))),
    "DynamicEdgeConv": Case(_(conv.DynamicEdgeConv, lambda: mlp(2 * WIDTH), k=2), (X,), "pyg-lib"),
    "XConv": Case(_(conv.XConv, WIDTH, 5, dim=3, kernel_size=2), (X, POS), "pyg-lib"),
    "PPFConv": Case(_(conv.PPFConv, lambda: mlp(WIDTH + 4)), (X, POS, NORMAL, EDGE_INDEX)),
    "FeaStConv": Case(_(conv.FeaStConv, WIDTH, 5, heads=2)),
    "PointTransformerConv": Case(_(conv.PointTransformerConv, WIDTH, 5), (X, POS, EDGE_INDEX)),
    "HypergraphConv": Case(_(conv.HypergraphConv, WIDTH, 5)),
    "LEConv": Case(_(conv.LEConv, WIDTH, 5), W),
    "PNAConv": Case(_(conv.PNAConv, WIDTH, 5, ["mean", "max"], ["identity"], DEGREES)),
    "ClusterGCNConv": Case(_(conv.ClusterGCNConv, WIDTH, 5)),
    "GENConv": Case(_(conv.GENConv, WIDTH, 5, aggr="add")),
    "GCN2Conv": Case(_(conv.GCN2Conv, WIDTH, alpha=0.1), (X, X, EDGE_INDEX, EDGE_WEIGHT)),
    "PANConv": Case(_(conv.PANConv, WIDTH, 5, filter_size=2), needs="torch_sparse"),
    "WLConv": Case(_(conv.WLConv), (torch.tensor([0, 1, 0, 1, 0, 1]), EDGE_INDEX)),
    "WLConvContinuous": Case(_(conv.WLConvContinuous), W),
    "FiLMConv": Case(_(conv.FiLMConv, WIDTH, 5)),
    "SuperGATConv": Case(_(conv.SuperGATConv, WIDTH, 5, heads=2)),
    "FAConv": Case(_(conv.FAConv, WIDTH), (X, X, EDGE_INDEX)),
    "EGConv": Case(_(conv.EGConv, WIDTH, 8, num_heads=2)),
    "PDNConv": Case(_(conv.PDNConv, WIDTH, 5, edge_dim=3, hidden_channels=4), A),
    "GeneralConv": Case(_(conv.GeneralConv, WIDTH, 5, in_edge_channels=3), A),
    "HGTConv": Case(
        _(conv.HGTConv, WIDTH, 4, METADATA, heads=2), ({"n": X}, {("n", "to", "n"): EDGE_INDEX})
    ),
    "HEATConv": Case(
        _(conv.HEATConv, WIDTH, 5, 2, 2, 3, 3, 3),
        (X, EDGE_INDEX, torch.tensor([0, 1, 0, 1, 0, 1]), EDGE_TYPE, EDGE_ATTR),
    ),
    "HeteroConv": Case(
        lambda: conv.HeteroConv({("n", "to", "n"): conv.SAGEConv(WIDTH, 5)}),
        ({"n": X}, {("n", "to", "n"): EDGE_INDEX}),
    ),
    "HANConv": Case(
        _(conv.HANConv, WIDTH, 4, METADATA, heads=2), ({"n": X}, {("n", "to", "n"): EDGE_INDEX})
    ),
    "LGConv": Case(_(conv.LGConv), W),
    "PointGNNConv": Case(
        _(conv.PointGNNConv, lambda: mlp(WIDTH, 3), lambda: mlp(WIDTH + 3), mlp),
        (X, POS, EDGE_INDEX),
    ),
    "GPSConv": Case(lambda: conv.GPSConv(WIDTH, conv.GINConv(mlp()), heads=2)),
    "AntiSymmetricConv": Case(_(conv.AntiSymmetricConv, WIDTH)),
    "DirGNNConv": Case(lambda: conv.DirGNNConv(conv.SAGEConv(WIDTH, 5))),
    "MixHopConv": Case(_(conv.MixHopConv, WIDTH, 5), W),
    "MeshCNNConv": Case(lambda: conv.MeshCNNConv(WIDTH, WIDTH), (X, MESH)),
}


def outputs(result: Any) -> list[Tensor]:
    """Return the floating-point tensors of a layer's result, whatever holds them."""
    if isinstance(result, Tensor):
        return [result] if result.is_floating_point() else []
    parts = result.values() if isinstance(result, dict) else result
    return [tensor for part in parts for tensor in outputs(part)]


def made(name: str, **options: Any) -> nn.Module:
    """Make a layer with the same parameters every time."""
    torch.manual_seed(0)
    try:
        return CASES[name].make(**options)
    except ImportError:
        pytest.skip(f"{name} needs {CASES[name].needs}")


def called(name: str, layer: nn.Module) -> list[Tensor]:
    try:
        return outputs(layer(*CASES[name].args))
    except ImportError:
        pytest.skip(f"{name} needs {CASES[name].needs}")


def on_cycle(name: str) -> tuple[Any, ...]:
    """Return the arguments of a case for a graph in which every node has one neighbour."""
    cycle = torch.stack([torch.arange(NODES), (torch.arange(NODES) + 1) % NODES])

    def changed(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: changed(part) for key, part in value.items()}
        if value is EDGE_WEIGHT:
            return torch.ones(NODES)
        if value.dtype == torch.int64 and value.dim() == 2:
            return cycle
        return value[:NODES]

    return tuple(changed(value) for value in CASES[name].args)


def rule(name: str) -> object:
    return RULES.get(getattr(conv, name))


every_layer = pytest.mark.parametrize("name", CASES)
every_sum = pytest.mark.parametrize("name", [name for name in CASES if rule(name) is VPSum])
every_form = pytest.mark.parametrize(
    "name", [name for name in CASES if not isinstance(rule(name), str) and name != "MeshCNNConv"]
)  # MeshCNNConv takes four neighbours


def test_no_layer_is_forgotten() -> None:
    wrappers = {"HeteroConv", "DirGNNConv", "GPSConv", "AntiSymmetricConv", "MessagePassing"}
    assert set(CASES) == set(conv.__all__)
    assert {cls.__name__ for cls in RULES} == set(conv.__all__) - wrappers


@every_layer
def test_a_layer_converts_and_runs_or_is_left_for_a_reason(name: str) -> None:
    layer = made(name)
    converted, report = convert(layer)
    assert report.changed or report.left
    for entry in report.changed:
        assert isinstance(converted.get_submodule(entry.path), VPMessagePassing)
        assert entry.after == "VP" + entry.before
    for entry in report.left:
        assert entry.reason
    results = called(name, converted)
    for result in results:
        assert result.isfinite().all()
    parameters = [p for p in converted.parameters() if p.requires_grad]
    if results and parameters:
        sum(result.square().sum() for result in results).backward()
        grads = [p.grad for p in parameters if p.grad is not None]
        assert grads
        assert all(grad.isfinite().all() for grad in grads)


@every_layer
def test_made_by_name_a_layer_is_what_conversion_makes_of_it(name: str) -> None:
    register()
    plain = made(name)
    converted, report = convert(plain, include=[type(plain)])  # also one that takes the maximum
    refused = ""
    try:
        named = made(name, aggr="vpa")
    except TypeError:
        pytest.skip(f"{name} takes no aggregation")
    except UsageError as error:
        refused = str(error)
    if refused:
        assert report.left[0].reason in refused
        return
    named.load_state_dict(converted.state_dict())
    for result, wanted in zip(
        called(name, named.eval()), called(name, converted.eval()), strict=True
    ):
        torch.testing.assert_close(result, wanted)


def test_made_by_name_a_layer_takes_the_form_of_its_options() -> None:
    register("power(0.3)")
    attention = conv.GeneralConv(WIDTH, 5, attention=True, aggr="vpa")
    plain = conv.GeneralConv(WIDTH, 5, attention=True)
    converted, _ = convert(plain)
    attention.load_state_dict(plain.state_dict())
    torch.testing.assert_close(attention(X, EDGE_INDEX), converted(X, EDGE_INDEX))
    with pytest.raises(UsageError, match="'vpa' is not for GCNConv: normalize=False"):
        conv.GCNConv(WIDTH, 5, normalize=False, aggr="vpa")
    with pytest.raises(UsageError, match=r"'power\(0.3\)' is not for GATConv"):
        conv.GATConv(WIDTH, 5, aggr="power(0.3)")
    assert copy.deepcopy(attention)(X, EDGE_INDEX).shape == (NODES, 5)


@every_layer
def test_conversion_keeps_weights_and_leaves_the_given_layer_alone(name: str) -> None:
    layer = made(name)
    before = called(name, layer.eval())
    converted, _ = convert(layer)
    after = called(name, layer)
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert converted.state_dict().keys() == layer.state_dict().keys()
    for key, value in layer.state_dict().items():
        # PyG leaves a weight of RGATConv as memory was, which may hold NaN.
        kept = converted.state_dict()[key]
        torch.testing.assert_close(kept, value, rtol=0, atol=0, equal_nan=True)


@every_form
def test_with_one_neighbour_each_the_form_is_the_layer(name: str) -> None:
    layer = made(name).eval()
    for module in layer.modules():  # a self-loop would be a second neighbour
        if isinstance(getattr(module, "add_self_loops", None), bool):
            module.add_self_loops = False  # type: ignore[assignment]
    converted, _ = convert(layer)
    args = on_cycle(name)
    try:
        expected, results = outputs(layer(*args)), outputs(converted(*args))
    except ImportError:
        pytest.skip(f"{name} needs {CASES[name].needs}")
    for result, wanted in zip(results, expected, strict=True):
        torch.testing.assert_close(result, wanted)


@every_sum
def test_a_sum_of_messages_is_divided_by_the_root_of_their_number(name: str) -> None:
    layer = made(name)
    converted, _ = convert(layer, include=[type(layer)])  # also those that take the maximum
    messages: list[Tensor] = []
    sums: list[tuple[Tensor, Tensor]] = []
    converted.register_message_forward_hook(lambda _, __, out: messages.append(out))
    converted.register_aggregate_forward_hook(
        lambda _, inputs, out: sums.append((inputs[0]["index"], out))
    )
    called(name, converted)
    index, result = sums[0]
    total = torch.zeros_like(result).index_add(0, index, messages[0])
    count = torch.bincount(index, minlength=NODES).clamp(min=1).view(-1, *[1] * (result.dim() - 1))
    torch.testing.assert_close(result, total / count.sqrt())


@every_form
def test_computed_at_once_or_step_by_step_a_layer_is_the_same(name: str) -> None:
    converted, _ = convert(made(name))
    converted.eval()
    at_once = called(name, converted)
    for module in converted.modules():
        if isinstance(module, MessagePassing):
            module.register_message_forward_hook(lambda *_: None)
    for result, wanted in zip(called(name, converted), at_once, strict=True):
        torch.testing.assert_close(result, wanted)


def test_after_all_conversions_the_layers_of_pyg_are_as_before() -> None:
    makers: list[Callable[[], nn.Module]] = [
        lambda: conv.GINConv(mlp()),
        lambda: conv.GraphConv(WIDTH, 5),
        lambda: conv.SAGEConv(WIDTH, 5),
        lambda: conv.GCNConv(WIDTH, 5),
        lambda: conv.GATConv(WIDTH, 5),
        lambda: conv.SGConv(WIDTH, 5),
    ]
    simple = EDGE_INDEX[:, 1:]  # without the parallel edge, which a sparse matrix cannot hold
    adj_t = to_torch_csr_tensor(simple.flip(0), size=(NODES, NODES))

    def results() -> list[Tensor]:
        torch.manual_seed(0)
        return [make()(X, edges) for make in makers for edges in (simple, adj_t)]

    before = results()
    for name in CASES:
        try:
            convert(CASES[name].make())
        except ImportError:
            continue
    for result, wanted in zip(results(), before, strict=True):
        assert torch.equal(result, wanted)
