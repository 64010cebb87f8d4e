"""The attention layers against their parents in PyG."""

import copy
import pickle
import threading
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.nn import GATConv, GATv2Conv, TransformerConv

from gnn_vpa import UsageError
from gnn_vpa.pyg import VPGATConv, VPGATv2Conv, VPTransformerConv

PAIRS = [(VPGATConv, GATConv), (VPGATv2Conv, GATv2Conv), (VPTransformerConv, TransformerConv)]
pairs = pytest.mark.parametrize(("ours", "parent"), PAIRS, ids=lambda cls: cls.__name__)


def both(ours: Any, parent: Any, dtype: torch.dtype, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """Make our layer and its parent, the one with the state of the other."""
    torch.manual_seed(0)
    theirs = parent(*args, **kwargs).to(dtype)
    layer = ours(*args, **kwargs).to(dtype)
    assert layer.load_state_dict(theirs.state_dict(), strict=True).missing_keys == []
    return layer, theirs


def divided_by_norms(aggregated: Tensor, edges: Tensor, weight: Tensor) -> Tensor:
    """Divide ``[N, H, C]`` by the norms of attention weights ``[E, H]``."""
    mass = weight.new_zeros(len(aggregated), weight.shape[1]).index_add(0, edges[1], weight**2)
    return aggregated / torch.where(mass > 0, mass, 1).sqrt().unsqueeze(-1)


@pairs
@pytest.mark.parametrize("concat", [True, False])
@pytest.mark.parametrize("edge_dim", [None, 3])
def test_it_is_the_parent_over_the_norm_of_the_weights(
    ours: Any, parent: Any, concat: bool, edge_dim: int | None, x: Tensor, edge_index: Tensor
) -> None:
    kwargs = {"heads": 2, "edge_dim": edge_dim, "bias": False}
    kwargs |= {"root_weight": False} if parent is TransformerConv else {}
    layer, theirs = both(ours, parent, x.dtype, 4, 5, concat=concat, **kwargs)
    whole = parent(4, 5, concat=True, **kwargs).to(x.dtype)
    whole.load_state_dict(
        {k: v for k, v in layer.state_dict().items() if "skip" not in k}, strict=False
    )
    attr = None if edge_dim is None else torch.randn(8, 3, dtype=x.dtype)
    _, (_, expected_weight) = theirs(x, edge_index, attr, return_attention_weights=True)
    out, (edges, weight) = layer(x, edge_index, attr, return_attention_weights=True)
    torch.testing.assert_close(weight, expected_weight)
    expected = divided_by_norms(whole(x, edge_index, attr).view(6, 2, 5), edges, weight)
    expected = expected.flatten(1) if concat else expected.mean(1)
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(layer(x, edge_index, attr), out)


@pairs
def test_uniform_attention_is_the_sum_over_the_root_of_the_count(ours: Any, parent: Any) -> None:
    layer, theirs = both(ours, parent, torch.float64, 4, 4)
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            if "att" in name or "query" in name or "bias" in name or "skip" in name:
                parameter.zero_()
        theirs.load_state_dict(layer.state_dict())
    leaves = torch.arange(1, 10)
    star = torch.stack([leaves, torch.zeros_like(leaves)])
    x = torch.randn(10, 4, dtype=torch.float64)
    count = 9 if parent is TransformerConv else 10  # the others add a self-loop
    torch.testing.assert_close(layer(x, star)[0], theirs(x, star)[0] * count**0.5)


@pairs
def test_the_normaliser_takes_no_gradient_unless_asked(ours: Any, parent: Any) -> None:
    torch.manual_seed(0)
    layer = ours(4, 4, heads=2).double()
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    edge_index = torch.tensor([[0, 1, 2, 0], [1, 0, 0, 2]])
    asked = ours(4, 4, heads=2, normalizer_grad=True).double()
    asked.load_state_dict(layer.state_dict())
    torch.testing.assert_close(layer(x, edge_index), asked(x, edge_index))
    torch.autograd.gradcheck(lambda x: asked(x, edge_index), x)
    grads = [torch.autograd.grad(c(x, edge_index).sum(), x)[0] for c in (layer, asked)]
    assert not torch.allclose(grads[0], grads[1])
    layer.register_message_forward_hook(lambda *_: None)  # step by step it is the same
    torch.testing.assert_close(torch.autograd.grad(layer(x, edge_index).sum(), x)[0], grads[0])


@pairs
def test_the_weights_used_are_those_after_dropout(ours: Any, parent: Any) -> None:
    # At p = 0.5 the weights that stay double, and so would a result that is not normalised.
    layer = ours(4, 4, dropout=0.5)
    layer.load_state_dict(ours(4, 4).state_dict())
    edge_index = torch.tensor([[1], [0]])
    x = torch.randn(2, 4)
    layer.add_self_loops = False
    full = layer.eval()(x, edge_index)[0]
    none = layer(x, edge_index[:, :0])[0]
    torch.manual_seed(0)
    seen = [layer.train()(x, edge_index)[0] for _ in range(20)]
    kept = [torch.allclose(out, full, atol=1e-6) for out in seen]
    lost = [torch.allclose(out, none, atol=1e-6) for out in seen]
    assert any(kept)
    assert any(lost)
    assert all(a or b for a, b in zip(kept, lost, strict=True))


@pairs
def test_two_kinds_of_nodes(ours: Any, parent: Any, dtype: torch.dtype) -> None:
    layer, theirs = both(ours, parent, dtype, (4, 3), 5, heads=2)
    layer.add_self_loops = theirs.add_self_loops = False
    x = (torch.randn(5, 4, dtype=dtype), torch.randn(3, 3, dtype=dtype))
    single = torch.tensor([[4, 0], [2, 1]])  # at most one neighbour each: the parent
    torch.testing.assert_close(layer(x, single), theirs(x, single))
    two = torch.tensor([[4, 0, 1], [2, 1, 1]])
    assert layer(x, two).shape == (3, 10)
    assert not torch.allclose(layer(x, two)[1], theirs(x, two)[1])


def test_sizes_without_target_features() -> None:
    layer, theirs = both(VPGATConv, GATConv, torch.float32, (4, 4), 5, add_self_loops=False)
    x, edge_index = torch.randn(2, 4), torch.tensor([[1, 0], [3, 0]])
    out = layer((x, None), edge_index, size=(2, 4))
    torch.testing.assert_close(out, theirs((x, None), edge_index, size=(2, 4)))
    assert out.shape == (4, 5)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"residual": True},
        {"fill_value": 0.5, "edge_dim": 2},
        {"negative_slope": 0.5, "bias": False},
        {"flow": "target_to_source"},
    ],
    ids=str,
)
@pytest.mark.parametrize(("ours", "parent"), PAIRS[:2], ids=lambda cls: cls.__name__)
def test_options_mean_what_they_mean_to_the_parent(ours: Any, parent: Any, kwargs: Any) -> None:
    layer, theirs = both(ours, parent, torch.float64, 4, 4, **kwargs)
    layer.add_self_loops = theirs.add_self_loops = False
    x, cycle = torch.randn(3, 4).double(), torch.tensor([[0, 1, 2], [1, 2, 0]])
    attr = torch.randn(3, 2).double() if "edge_dim" in kwargs else None
    torch.testing.assert_close(layer(x, cycle, attr), theirs(x, cycle, attr))


@pytest.mark.parametrize(
    "kwargs", [{"beta": True}, {"root_weight": False}, {"bias": False}], ids=str
)
def test_options_of_the_transformer(kwargs: Any) -> None:
    layer, theirs = both(VPTransformerConv, TransformerConv, torch.float64, 4, 4, **kwargs)
    x, cycle = torch.randn(3, 4).double(), torch.tensor([[0, 1, 2], [1, 2, 0]])
    torch.testing.assert_close(layer(x, cycle), theirs(x, cycle))


@pairs
def test_another_aggregation_is_refused(ours: Any, parent: Any) -> None:
    with pytest.raises(UsageError, match="aggr: 'mean' is not for VP"):
        ours(4, 4, aggr="mean")
    ours(4, 4, aggr="add")


@pairs
def test_lazy_copied_pickled_printed(ours: Any, parent: Any, edge_index: Tensor) -> None:
    layer = ours(-1, 4, heads=2)
    out = layer(torch.ones(6, 7), edge_index)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(other(torch.ones(6, 7), edge_index), out)
    assert repr(layer) == f"VP{parent.__name__}(-1, 4, heads=2)"


@pairs
def test_half_types(ours: Any, parent: Any, edge_index: Tensor) -> None:
    torch.manual_seed(0)
    layer, x = ours(4, 4), torch.randn(6, 4)
    expected = layer(x, edge_index)
    out = layer.bfloat16()(x.bfloat16(), edge_index)
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out.float(), expected, atol=0.05, rtol=0.05)


@pairs
def test_no_edges_at_all(ours: Any, parent: Any) -> None:
    layer = ours(4, 4)
    assert layer(torch.ones(3, 4), torch.empty(2, 0, dtype=torch.int64)).isfinite().all()
    assert layer(torch.ones(0, 4), torch.empty(2, 0, dtype=torch.int64)).shape == (0, 4)


def test_a_call_from_another_thread_in_the_middle_of_one_changes_nothing() -> None:
    torch.manual_seed(0)
    layer, x = VPGATConv(4, 5, heads=2), torch.randn(4, 4)
    edge_index = torch.tensor([[0, 1, 2, 2], [1, 0, 0, 3]])
    plain = layer(x, edge_index)
    expected, (_, attention) = layer(x, edge_index, return_attention_weights=True)
    meanwhile: list[Tensor] = []

    def interrupt(*_: object) -> None:
        handle.remove()
        other = threading.Thread(target=lambda: meanwhile.append(layer(x, edge_index)))
        other.start()
        other.join()

    handle = layer.lin.register_forward_hook(interrupt)
    found, (_, weight) = layer(x, edge_index, return_attention_weights=True)
    torch.testing.assert_close(meanwhile, [plain])
    torch.testing.assert_close((found, weight), (expected, attention))


def test_an_edge_updater_of_ones_own_is_asked(edge_index: Tensor) -> None:
    class Own(VPGATConv):
        def edge_updater(self, edge_index: Any, size: Any = None, **kwargs: Any) -> Tensor:
            return torch.ones(edge_index.shape[1], self.heads)

    layer, x = Own(4, 5), torch.ones(6, 4)
    _, (_, weight) = layer(x, edge_index, return_attention_weights=True)
    assert (weight == 1).all()
    loops = torch.cat(
        [edge_index[:, edge_index[0] != edge_index[1]], torch.arange(6).expand(2, 6)], 1
    )
    count = loops[1].bincount(minlength=6).unsqueeze(1)
    torch.testing.assert_close(layer(x, edge_index), count.sqrt() * layer.lin(x) + layer.bias)
