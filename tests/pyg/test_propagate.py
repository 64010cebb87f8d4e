"""At once through the operators or step by step through PyG: always the same numbers."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import EdgeIndex
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.nn import GINConv, GraphConv, MessagePassing, SAGEConv, SimpleConv

from gnn_vpa import UsageError
from gnn_vpa.pyg import (
    VPGATConv,
    VPGATv2Conv,
    VPGCNConv,
    VPSGConv,
    VPTransformerConv,
    _propagate,
    convert,
)

MAKERS: dict[str, Callable[[], nn.Module]] = {
    "GIN": lambda: convert(GINConv(nn.Linear(4, 3)))[0],
    "SAGE": lambda: convert(SAGEConv(4, 3))[0],
    "GraphConv": lambda: convert(GraphConv(4, 3))[0],
    "GAT": lambda: VPGATConv(4, 3, heads=2),
    "GATv2": lambda: VPGATv2Conv(4, 3, heads=2),
    "Transformer": lambda: VPTransformerConv(4, 3, heads=2),
    "GCN": lambda: VPGCNConv(4, 3),
    "SGC": lambda: VPSGConv(4, 3, K=2),
}
every_layer = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record which way each propagation takes."""
    seen: list[str] = []

    def watched(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            seen.extend([name] if result is not None else [])  # None: it was not the way
            return result

        return call

    for name in ("_ends", "_plain_ends"):
        step = getattr(_propagate.VPMessagePassing, name)
        monkeypatch.setattr(_propagate.VPMessagePassing, name, watched("at once", step))
    monkeypatch.setattr(MessagePassing, "_collect", watched("steps", MessagePassing._collect))
    return seen


def gradients(layer: Any, x: Tensor, edge_index: Tensor) -> list[Tensor]:
    x = x.clone().requires_grad_()
    layer.zero_grad()
    layer(x, edge_index).square().sum().backward()
    assert x.grad is not None
    return [x.grad, *(p.grad for p in layer.parameters() if p.grad is not None)]


@every_layer
@pytest.mark.parametrize("step", ["message", "aggregate", "propagate"])
def test_a_hook_sees_the_steps_and_changes_no_number(
    make: Callable[[], Any], step: str, x: Tensor, edge_index: Tensor
) -> None:
    layer = make().to(x.dtype)
    expected = [layer(x, edge_index), *gradients(layer, x, edge_index)]
    seen: list[Any] = []
    register = getattr(layer, f"register_{step}_forward_hook")
    handle = register(lambda *args: seen.append(args[-1]))
    found = [layer(x, edge_index), *gradients(layer, x, edge_index)]
    assert seen
    # Gradients that cancel are as exact as what they are made of.
    largest = max(float(wanted.detach().abs().max()) for wanted in expected)
    exact = 1e-5 if x.dtype == torch.float32 else 1e-13
    for result, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(result, wanted, rtol=10 * exact, atol=exact * max(largest, 1.0))
    handle.remove()
    seen.clear()
    layer(x, edge_index)
    assert not seen


@every_layer
def test_unwatched_no_message_is_made(
    make: Callable[[], Any], calls: list[str], edge_index: Tensor
) -> None:
    layer = make()
    layer.message = None  # would fail if it were called
    layer(torch.ones(6, 4), edge_index)
    assert "at once" in calls


def test_edge_hooks_see_the_attention(edge_index: Tensor) -> None:
    layer, x = VPGATConv(4, 3), torch.randn(6, 4)
    before = layer(x, edge_index)
    layer.register_edge_update_forward_hook(lambda _, __, out: torch.ones_like(out))
    layer.register_edge_update_forward_pre_hook(lambda _, inputs: inputs)
    _, (_, weight) = layer(x, edge_index, return_attention_weights=True)
    assert (weight == 1).all()
    assert not torch.allclose(layer(x, edge_index), before)


def formats(edge_index: Tensor, num_nodes: int) -> Iterator[tuple[str, Tensor]]:
    """Yield the same edges, parallel ones included, in every format."""
    yield "EdgeIndex", EdgeIndex(edge_index, sparse_size=(num_nodes, num_nodes))
    weight = torch.ones(edge_index.shape[1])
    yield "COO", torch.sparse_coo_tensor(edge_index.flip(0), weight, (num_nodes, num_nodes))
    for name, major, make in (
        ("CSR", 1, torch.sparse_csr_tensor),
        ("CSC", 0, torch.sparse_csc_tensor),
    ):
        order = edge_index[major].argsort(stable=True)
        counts = torch.bincount(edge_index[major], minlength=num_nodes)
        pointer = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        yield name, make(pointer, edge_index[1 - major][order], weight, (num_nodes, num_nodes))


@every_layer
def test_formats_agree(make: Callable[[], Any], edge_index: Tensor) -> None:
    layer, x = make(), torch.randn(6, 4)
    expected = layer(x, edge_index)
    for name, edges in formats(edge_index, 6):
        named = f"{name}: {{}}".format
        torch.testing.assert_close(layer(x, edges), expected, msg=named)
        handle = layer.register_message_forward_hook(lambda *_: None)
        torch.testing.assert_close(layer(x, edges), expected, msg=named)
        handle.remove()


def test_a_sparse_matrix_of_attention_weights_is_returned_on_request(edge_index: Tensor) -> None:
    layer, x = VPGATConv(4, 3), torch.randn(6, 4)
    simple = edge_index.unique(dim=1)
    adj_t = torch.sparse_coo_tensor(simple.flip(0), torch.ones(7), (6, 6)).to_sparse_csr()
    out, (matrix, weight) = layer(x, adj_t, return_attention_weights=True)
    torch.testing.assert_close(out, layer(x, simple))
    assert matrix.layout == torch.sparse_csr
    assert matrix.values().shape == weight.shape


@pytest.mark.parametrize("cls", [VPGATConv, VPGCNConv, VPTransformerConv])
def test_a_sparse_matrix_has_one_flow(cls: Any) -> None:
    adj_t = torch.eye(6).to_sparse_csr()
    with pytest.raises(ValueError, match="transpose"):
        cls(4, 3, flow="target_to_source")(torch.ones(6, 4), adj_t)


def test_the_values_of_a_sparse_matrix_are_weights_where_the_layer_takes_weights() -> None:
    adj_t = torch.sparse_coo_tensor(
        torch.tensor([[0, 0], [1, 2]]), torch.tensor([3.0, 4.0]), (3, 3)
    )
    x = torch.tensor([[0.0], [1.0], [2.0]])
    weighted, plain = convert(SimpleConv())[0], convert(SimpleConv())[0]
    assert weighted(x, adj_t)[0].item() == pytest.approx(11 / 5)
    edge_index = torch.tensor([[1, 2], [0, 0]])
    assert plain(x, edge_index)[0].item() == pytest.approx(3 / 2**0.5)
    assert plain(x, edge_index, adj_t._values())[0].item() == pytest.approx(11 / 5)


def test_two_kinds_of_nodes_and_sizes() -> None:
    layer = convert(SAGEConv((2, 3), 4))[0]
    edge_index = torch.tensor([[0, 4, 1], [2, 2, 0]])
    source, target = torch.randn(5, 2), torch.randn(3, 3)
    out = layer((source, target), edge_index)
    total = (source[0] + source[4]) / 2**0.5
    torch.testing.assert_close(out[2], layer.lin_l(total) + layer.lin_r(target[2]))
    alone = layer((source, None), edge_index, size=(5, 7))
    assert alone.shape == (7, 4)
    torch.testing.assert_close(alone[2], layer.lin_l(total))
    with pytest.raises(ValueError, match="expected size 4"):
        layer((source, None), edge_index, size=(4, 7))


@every_layer
def test_against_the_flow(make: Callable[[], Any], edge_index: Tensor) -> None:
    layer, x = make(), torch.randn(6, 4)
    expected = layer(x, edge_index.flip(0))
    layer.flow = "target_to_source"
    torch.testing.assert_close(layer(x, edge_index), expected)
    layer.register_message_forward_hook(lambda *_: None)
    torch.testing.assert_close(layer(x, edge_index), expected)


def test_static_graphs_and_decomposed_features_go_step_by_step(edge_index: Tensor) -> None:
    layer, x = convert(GraphConv(4, 3))[0], torch.randn(2, 6, 4)
    both = layer(x, edge_index)
    for copy in range(2):
        torch.testing.assert_close(both[copy], layer(x[copy], edge_index))
    decomposed = VPGCNConv(4, 4, decomposed_layers=2)
    whole = VPGCNConv(4, 4)
    whole.load_state_dict(decomposed.state_dict())
    torch.testing.assert_close(decomposed(x[0], edge_index), whole(x[0], edge_index))


@every_layer
@pytest.mark.sampled(3)
def test_compiled_without_a_break(make: Callable[[], Any], edge_index: Tensor) -> None:
    layer, x = make(), torch.randn(6, 4)
    expected = [layer(x, edge_index), *gradients(layer, x, edge_index)]
    torch.compiler.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    found = [compiled(x, edge_index), *gradients(compiled, x, edge_index)]
    for result, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(result, wanted)


@every_layer
def test_an_explainer_can_mask_the_edges(make: Callable[[], Any], edge_index: Tensor) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = make()

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.conv(x, edge_index)

    torch.manual_seed(0)
    model, x = Model(), torch.randn(6, 4)
    before = model(x, edge_index)
    explainer = Explainer(
        model,
        GNNExplainer(epochs=3),
        explanation_type="model",
        edge_mask_type="object",
        model_config={"mode": "regression", "task_level": "node", "return_type": "raw"},
    )
    explanation = explainer(x, edge_index, index=0)
    # Node 5 is nobody's neighbour: only edges that lead to the node explained can matter to it.
    assert explanation.edge_mask.shape == (8,)
    assert (explanation.edge_mask[edge_index[1] == 0] > 0).any()
    assert torch.equal(model(x, edge_index), before)


@every_layer
def test_an_index_out_of_range_is_refused(make: Callable[[], Any]) -> None:
    for bad in (-1, 6):
        edge_index = torch.tensor([[0, bad], [1, 1]])
        with pytest.raises((UsageError, IndexError)):
            make()(torch.ones(6, 4), edge_index)


def test_the_same_edges_are_grouped_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from gnn_vpa.ops import _csr, _graph

    once, count = _csr.ends_of, []
    monkeypatch.setattr(_graph, "ends_of", lambda *args: (count.append(1), once(*args))[1])
    layers = [VPGCNConv(4, 4), VPGATConv(4, 4), VPGATConv(4, 4), VPGCNConv(4, 4)]
    edge_index = torch.tensor([[0, 1, 2, 2], [1, 0, 0, 2]])
    for _ in range(2):
        x = torch.ones(3, 4)
        for layer in layers:
            x = layer(x, edge_index)
    assert len(count) == 1  # the self-loop that is there is kept by one, replaced by the other
    edge_index[0, 0] = 2  # changed in place: what was remembered no longer holds
    expected = layers[1](x, edge_index.clone())
    torch.testing.assert_close(layers[1](x, edge_index), expected)
