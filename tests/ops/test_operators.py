"""The registered operators under everything PyTorch does to operators."""

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vmap
from torch.library import opcheck

from gnn_vpa.ops import Graph, aggregate, attend
from gnn_vpa.ops import _operators as operators

from .conftest import Case

LINEAR = ("sum", "mean", "vpa")


@pytest.fixture
def graph(random_case: Case, device: str) -> Graph:
    return Graph(random_case.edge_index.to(device), random_case[1:])


def leaf(*shape: int, device: str, dtype: torch.dtype = torch.float64) -> Tensor:
    draw = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=draw, dtype=dtype).to(device).requires_grad_()


@pytest.mark.parametrize("both", [False, True], ids=["by target", "both ways"])
def test_operators_keep_their_word(graph: Graph, device: str, both: bool) -> None:
    x, w = leaf(30, 2, 3, device=device), leaf(200, 2, device=device)
    a, b = (torch.rand(30, n, dtype=torch.float64, device=device) for n in (1, 2))
    operands = graph.as_operands(both)
    opcheck(operators._spmm, (x, w, a, b, *operands))
    opcheck(operators._sddmm, (x, x.detach() * 2, a, None, *operands))
    flat = leaf(30, 4, device=device)
    opcheck(operators._segmax, (flat, None, *operands))
    opcheck(operators._winners, (flat.detach(), flat.detach(), flat, None, *operands))


@pytest.mark.parametrize("aggr", [*LINEAR, "max"])
def test_vmap_over_features(graph: Graph, device: str, aggr: str) -> None:
    x = leaf(4, 30, 5, device=device).detach()
    expected = torch.stack([aggregate(one, graph, aggr) for one in x])
    torch.testing.assert_close(vmap(lambda x: aggregate(x, graph, aggr))(x), expected)
    last = vmap(lambda x: aggregate(x, graph, aggr), in_dims=2)(x.permute(1, 2, 0))
    torch.testing.assert_close(last, expected)


@pytest.mark.parametrize("aggr", LINEAR)
def test_vmap_over_weights(graph: Graph, device: str, aggr: str) -> None:
    x, w = leaf(4, 30, 5, device=device).detach(), leaf(4, 200, device=device).detach().abs()
    expected = torch.stack([aggregate(x[0], graph, aggr, one) for one in w])
    torch.testing.assert_close(vmap(lambda w: aggregate(x[0], graph, aggr, w))(w), expected)
    expected = torch.stack([aggregate(a, graph, aggr, b) for a, b in zip(x, w, strict=True)])
    both = vmap(lambda x, w: aggregate(x, graph, aggr, w))(x, w)
    torch.testing.assert_close(both, expected)


def test_vmap_over_graphs(device: str) -> None:
    draw = torch.Generator().manual_seed(0)
    edges = torch.randint(6, (3, 2, 9), generator=draw).to(device)
    graphs = [Graph(e, 6) for e in edges]
    parts = zip(*(g.as_operands(True) for g in graphs), strict=True)
    stacked = [torch.stack(t) if isinstance(t[0], torch.Tensor) else 9 for t in parts]
    x = leaf(6, 1, 2, device=device).detach()
    dims = tuple(0 if isinstance(t, torch.Tensor) else None for t in stacked)
    run = vmap(lambda *ops: operators.spmm(x, None, None, None, *ops), in_dims=dims)
    out = run(*stacked)
    expected = [operators.spmm(x, None, None, None, *g.as_operands(True)) for g in graphs]
    torch.testing.assert_close(out, torch.stack(expected))


@pytest.mark.parametrize("aggr", [*LINEAR, "max"])
def test_grad_and_per_sample_grad(graph: Graph, device: str, aggr: str) -> None:
    x = leaf(4, 30, 5, device=device)

    def loss(x: Tensor) -> Tensor:
        return aggregate(x, graph, aggr).square().sum()

    expected = torch.stack([torch.autograd.grad(loss(one), one)[0] for one in x.unbind()])
    single = torch.stack([grad(loss)(one) for one in x.detach()])
    torch.testing.assert_close(single, expected)
    torch.testing.assert_close(vmap(grad(loss))(x.detach()), expected)


def test_grad_by_weight_through_vmap_and_back(graph: Graph, device: str) -> None:
    x, w = leaf(30, 2, device=device).detach(), leaf(4, 200, device=device).detach()

    def loss(w: Tensor) -> Tensor:
        return aggregate(x, graph, "vpa", w).sin().sum()

    inside = vmap(grad(loss))(w)
    outside = grad(lambda w: vmap(loss)(w).sum())(w)
    torch.testing.assert_close(inside, outside)
    ordinary = w.clone().requires_grad_()
    sum(loss(one) for one in ordinary).backward()
    torch.testing.assert_close(inside, ordinary.grad)


def test_jacobian_and_hessian(device: str) -> None:
    edge_index = torch.tensor([[0, 1, 2, 2], [1, 0, 0, 2]], device=device)
    graph = Graph(edge_index, 3)
    x = leaf(3, device=device).detach()
    dense = torch.zeros(3, 3, dtype=torch.float64, device=device)
    dense[edge_index[1], edge_index[0]] = 1
    dense /= dense.sum(1, keepdim=True).clamp(min=1).sqrt()
    torch.testing.assert_close(jacrev(lambda x: aggregate(x, graph))(x), dense)
    second = jacrev(jacrev(lambda x: aggregate(x, graph).square().sum()))(x)
    torch.testing.assert_close(second, 2 * dense.T @ dense)


@pytest.mark.parametrize("aggr", [*LINEAR, "power(0.3)"])
def test_a_linear_aggregation_is_its_own_forward_derivative(
    graph: Graph, device: str, aggr: str
) -> None:
    x, v = leaf(30, 5, device=device).detach(), leaf(30, 5, device=device).detach() + 1
    out, tangent = jvp(lambda x: aggregate(x, graph, aggr), (x,), (v,))[:2]
    torch.testing.assert_close(out, aggregate(x, graph, aggr))
    torch.testing.assert_close(tangent, aggregate(v, graph, aggr))
    with forward_ad.dual_level():
        dual = aggregate(forward_ad.make_dual(x, v), graph, aggr)
        torch.testing.assert_close(forward_ad.unpack_dual(dual).tangent, tangent)


def test_forward_over_reverse_is_reverse_over_reverse(graph: Graph, device: str) -> None:
    x, w = leaf(30, 2, device=device).detach(), leaf(200, device=device).detach()

    def of_features(x: Tensor) -> Tensor:
        return aggregate(x, graph, "vpa").pow(3).sum()

    def of_weights(w: Tensor) -> Tensor:
        return aggregate(x, graph, "vpa", w).pow(3).sum()

    torch.testing.assert_close(hessian(of_features)(x), jacrev(jacrev(of_features))(x))
    torch.testing.assert_close(hessian(of_weights)(w), jacrev(jacrev(of_weights))(w))
    torch.testing.assert_close(jacfwd(of_weights)(w), grad(of_weights)(w))
    # What a transform made must not stay behind in the graph.
    torch.testing.assert_close(aggregate(x, graph, "mean"), aggregate(x, graph, "mean"))


def test_the_short_way_has_derivatives_of_every_order(graph: Graph, device: str) -> None:
    x = leaf(30, 3, device=device)

    def short(x: Tensor) -> Tensor:
        return aggregate(x, graph, "vpa")

    def general(x: Tensor) -> Tensor:
        return aggregate(x.unsqueeze(-1), graph, "vpa").squeeze(-1)  # [S, F, 1] takes the long way

    torch.testing.assert_close(short(x), general(x))
    assert torch.autograd.gradcheck(short, (x,))
    assert torch.autograd.gradgradcheck(short, (x,))
    first = torch.autograd.grad(short(x).pow(3).sum(), x)[0]
    torch.testing.assert_close(first, torch.autograd.grad(general(x).pow(3).sum(), x)[0])


def test_many_models_at_once(graph: Graph, device: str) -> None:
    layers = [torch.nn.Linear(5, 3, device=device) for _ in range(3)]
    stacked, _ = torch.func.stack_module_state(layers)
    x = torch.randn(30, 5, device=device)

    def run(weights: dict[str, Tensor]) -> Tensor:
        return aggregate(functional_call(layers[0], weights, (x,)), graph)

    expected = torch.stack([aggregate(layer(x), graph) for layer in layers])
    torch.testing.assert_close(vmap(run)(stacked), expected)


@pytest.mark.parametrize("given", ["graph", "edge_index"])
def test_compiled_without_a_graph_break(device: str, given: str) -> None:
    def network(x: Tensor, edges: Graph | Tensor, weight: Tensor, logits: Tensor) -> Tensor:
        h = torch.relu(aggregate(x, edges, "vpa"))
        h = aggregate(h, edges, "mean", weight) + aggregate(h, edges, "max")
        return attend(h, edges, logits, "vpa").square().sum()

    # Once machine code is made of it, which takes long. A Graph differs in what is traced alone.
    in_full = given == "edge_index" or device == "cuda"
    backend = "inductor" if in_full else "aot_eager"
    compiled = torch.compile(network, fullgraph=True, dynamic=True, backend=backend)
    for num_nodes, num_edges in ((20, 90), (33, 150), (7, 12)):
        draw = torch.Generator().manual_seed(num_nodes)
        edge_index = torch.randint(num_nodes, (2, num_edges), generator=draw).to(device)
        edges = Graph(edge_index, num_nodes) if given == "graph" else edge_index
        leaves = [leaf(*s, device=device) for s in ((num_nodes, 4), (num_edges,), (num_edges, 4))]
        x, weight, logits = leaves[0], leaves[1], leaves[2]
        results = []
        for run in (network, compiled):
            out = run(x, edges, weight, logits)
            results.append([out, *torch.autograd.grad(out, leaves)])
        torch.testing.assert_close(results[1], results[0])


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:The AccumulateGrad node's stream")  # leaves made outside
def test_inside_a_captured_cuda_graph() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    draw = torch.Generator().manual_seed(0)
    edge_index = torch.randint(500, (2, 6000), generator=draw).cuda()
    edge_index[1, :2500] = 3  # a row long enough to be cut
    graph = Graph(edge_index, 500)
    x = torch.randn(500, 64, device="cuda", requires_grad=True)
    weight = torch.rand(6000, device="cuda", requires_grad=True)

    def step() -> tuple[Tensor, ...]:
        out = aggregate(aggregate(x, graph, "vpa"), graph, "vpa", weight)
        out = attend(out + aggregate(x, graph, "max"), graph, weight)
        return out, *torch.autograd.grad(out.square().sum(), (x, weight))

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        results = step()
    with torch.no_grad():
        x.copy_(torch.randn(500, 64, generator=draw))
    captured.replay()
    torch.cuda.synchronize()
    for got, expected in zip(results, step(), strict=True):
        assert torch.equal(got, expected)
