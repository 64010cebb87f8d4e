"""What a probe measures is what was there: forward, backward, step by step."""

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import (
    GATConv,
    GCNConv,
    GINConv,
    GraphConv,
    MessagePassing,
    SAGEConv,
    SimpleConv,
    SumAggregation,
    TransformerConv,
)

import gnn_vpa
from gnn_vpa.signal import Report, Step, predicted_variance
from gnn_vpa.signal.probing._statistics import Statistics

from .conftest import Sample


def assert_measures(found: Statistics | None, x: Tensor | None) -> None:
    assert found is not None
    assert x is not None
    wide = x.detach().double()
    assert found.count == wide.numel()
    assert found.mean == pytest.approx(wide.mean().item(), rel=1e-6, abs=1e-12)
    assert found.variance == pytest.approx(wide.var(correction=0).item(), rel=1e-6)
    assert found.rms == pytest.approx(wide.square().mean().sqrt().item(), rel=1e-6)
    assert found.largest == pytest.approx(wide.abs().max().item(), rel=1e-6)
    assert found.zeros == pytest.approx((wide == 0).double().mean().item())


def the(report: Report, layer: str, step: str, call: int = 1) -> Step:
    found = [s for s in report.steps if (s.layer, s.step, s.call) == (layer, step, call)]
    assert len(found) == 1, [(s.layer, s.step, s.call) for s in report.steps]
    return found[0]


def gradients(out: Tensor, *inner: Tensor) -> tuple[Tensor, ...]:
    """The gradients that the probe's own random gradient causes."""
    sent = torch.randn(out.shape, generator=torch.Generator().manual_seed(0)).to(out)
    return torch.autograd.grad(out, inner, sent)


def test_every_layer_is_measured_in_the_order_in_which_it_ran() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Sequential(nn.Linear(8, 8), nn.Tanh()))
    x = torch.randn(30, 4)
    report = gnn_vpa.probe(model, x)
    assert [(s.layer, s.kind, s.step) for s in report.steps] == [
        ("", "input", "input"),
        ("0", "Linear", "output"),
        ("1", "ReLU", "output"),
        ("2.0", "Linear", "output"),
        ("2.1", "Tanh", "output"),
    ]
    inner = [x]
    for layer in (model[0], model[1], *model[2]):  # type: ignore[misc]
        inner.append(layer(inner[-1]))
    sent = gradients(inner[-1], *inner[1:])
    for step, value in zip(report.steps, inner, strict=True):
        assert_measures(step.forward, value)
        assert step.shape == tuple(value.shape)
    for step, value in zip(report.steps[1:], sent, strict=True):
        assert_measures(step.backward, value)
    for before, step in zip(report.steps, report.steps[1:], strict=False):
        assert step.gain == pytest.approx(step.forward.variance / before.forward.variance)
    assert report.steps[0].backward is None
    second, third = report.steps[1:3]
    assert second.backward is not None
    assert third.backward is not None
    assert third.backward_gain == pytest.approx(second.backward.variance / third.backward.variance)


def test_a_loss_sends_its_own_gradient() -> None:
    model, x = nn.Linear(4, 2), torch.randn(30, 4)
    report = gnn_vpa.probe(model, x, loss=lambda out: out.square().mean())
    assert_measures(report.steps[-1].backward, 2 * model(x) / 60)


def test_message_aggregation_and_update_are_told_apart(sample: Sample) -> None:
    torch.manual_seed(0)
    x, edge_index, batch = sample
    conv = GINConv(nn.Linear(8, 5), train_eps=True)
    features = x.clone().requires_grad_()
    report = gnn_vpa.probe(conv, features, edge_index)
    source, target = edge_index
    messages = features[source]
    summed = torch.zeros(60, 8).index_add(0, target, messages)
    out = conv.nn(summed + (1 + conv.eps) * features)
    back = gradients(out, messages, summed, out)
    for name, value, gradient in zip(
        ("message", "aggregation", "update"), (messages, summed, out), back, strict=True
    ):
        step = the(report, "", name)
        assert_measures(step.forward, value)
        assert_measures(step.backward, gradient)
    assert the(report, "", "message").unit == "edge"
    assert the(report, "", "aggregation").unit == "node"
    assert the(report, "", "aggregation").aggr == "sum"
    gain = summed.double().var(correction=0) / messages.double().var(correction=0)
    assert the(report, "", "aggregation").gain == pytest.approx(gain.item(), rel=1e-6)
    total = out.double().var(correction=0) / x.double().var(correction=0)
    assert the(report, "", "update").total_gain == pytest.approx(total.item(), rel=1e-6)
    assert the(report, "nn", "output").kind == "Linear"
    assert batch is not None


def _layers() -> list[MessagePassing]:
    torch.manual_seed(0)
    return [
        GINConv(nn.Linear(8, 6)),
        GraphConv(8, 6, aggr="mean"),
        SAGEConv(8, 6),
        GCNConv(8, 6),
        GATConv(8, 6, heads=2),
        TransformerConv(8, 6, heads=2),
        SimpleConv(aggr="sum"),
    ]


@pytest.mark.parametrize("layer", _layers(), ids=lambda layer: type(layer).__name__)
def test_a_converted_layer_that_forms_no_messages_is_seen_like_one_that_does(
    layer: MessagePassing, sample: Sample
) -> None:
    converted, _ = gnn_vpa.convert(layer)
    watched, _ = gnn_vpa.convert(layer)
    watched.explain = False
    x = sample.x.double().requires_grad_()
    converted, watched = converted.double(), watched.double()
    # PyG's own steps, because somebody watches; the fused way, because nobody does.
    seen: dict[str, Tensor] = {}
    watched.register_message_forward_hook(lambda _, __, out: seen.setdefault("message", out))
    watched.register_aggregate_forward_hook(lambda _, __, out: seen.setdefault("aggregation", out))
    out = watched(x, sample.edge_index)
    back = gradients(out, seen["message"], seen["aggregation"])
    report = gnn_vpa.probe(converted, x, sample.edge_index)
    for name, gradient in zip(("message", "aggregation"), back, strict=True):
        assert_measures(the(report, "", name).forward, seen[name])
        if name == "aggregation" or not isinstance(layer, TransformerConv | GATConv):
            assert_measures(the(report, "", name).backward, gradient)
    assert the(report, "", "aggregation").aggr == "vpa"
    assert_measures(the(report, "", "update").forward, out)


@pytest.mark.parametrize("aggr", ["sum", "mean", "max", "vpa"])
def test_the_papers_models_are_looked_into(aggr: str, sample: Sample) -> None:
    torch.manual_seed(0)
    x, edge_index, batch = sample
    model = gnn_vpa.build_model("gcn", 8, 3, aggr, depth=2, dropout=0.0)
    report = gnn_vpa.probe(model, x, edge_index, batch)
    first = model.convs[0]
    pooled = gnn_vpa.aggregate(x, edge_index, aggr)
    hidden = first.lin_rel(pooled) + first.lin_root(x)
    assert_measures(the(report, "convs.0", "message").forward, x[edge_index[0]])
    assert_measures(the(report, "convs.0", "aggregation").forward, pooled)
    assert_measures(the(report, "convs.0", "update").forward, hidden)
    sent = hidden.relu()
    assert_measures(the(report, "convs.1", "message").forward, sent[edge_index[0]])
    readout = the(report, "head", "readout")
    assert readout.aggr == aggr
    assert readout.unit == "graph"
    assert readout.shape == (3, 64)


@pytest.mark.parametrize("name", ["gin", "gcn", "gat", "sgc"])
def test_all_four_of_them_pass_messages_and_read_out(name: str, sample: Sample) -> None:
    report = gnn_vpa.probe(gnn_vpa.build_model(name, 8, 3), *sample)
    kinds = {step.step for step in report.steps}
    assert {"message", "aggregation", "readout"} <= kinds
    assert not report.notes


def test_degrees_and_sizes_are_those_of_the_graph(sample: Sample) -> None:
    x, edge_index, batch = sample
    report = gnn_vpa.probe(gnn_vpa.build_model("gcn", 8, 3, "sum"), x, edge_index, batch)
    step = the(report, "convs.0", "aggregation")
    proper = edge_index[:, edge_index[0] != edge_index[1]]
    degree = torch.bincount(proper[1], minlength=60)
    pooled = gnn_vpa.aggregate(x, edge_index, "sum").double()
    for group in step.by_degree:
        mine = pooled[(group.low <= degree) & (degree <= group.high)]
        assert group.rows == len(mine)
        assert group.variance == pytest.approx(mine.var(correction=0).item(), rel=1e-6)
    assert [(g.low, g.rows) for g in step.by_size] == [(8, 10), (16, 50)]
    message = the(report, "convs.0", "message")
    inner = torch.bincount(degree[edge_index[1]])
    for group in message.by_degree:
        assert group.rows == int(inner[group.low : group.high + 1].sum())
    assert {g.low for g in the(report, "head", "readout").by_size} == {8, 16}


def test_a_whole_batch_object_is_understood(sample: Sample) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.pool = GraphConv(8, 4), SumAggregation()

        def forward(self, data: Data) -> Tensor:
            out: Tensor = self.pool(self.conv(data.x, data.edge_index), data.batch)
            return out

    x, edge_index, _ = sample
    data = Batch.from_data_list([Data(x=x, edge_index=edge_index)] * 2)
    report = gnn_vpa.probe(Model(), data)
    assert report.steps[0].unit == "node"
    assert the(report, "pool", "readout").aggr is None
    assert the(report, "pool", "readout").by_size[0].low == 32
    assert the(report, "conv", "update").distance > 0


def test_arguments_may_have_names(sample: Sample) -> None:
    x, edge_index, _ = sample
    report = gnn_vpa.probe(GCNConv(8, 4), edge_index=edge_index, x=x)
    assert report.steps[0].unit == "node"


@pytest.mark.filterwarnings("ignore:Sparse (CSR|invariant):UserWarning")
def test_sparse_matrices_fuse_and_are_seen_all_the_same(sample: Sample) -> None:
    x, edge_index, _ = sample
    distinct = torch.unique(edge_index, dim=1)
    values = torch.ones(distinct.shape[1])
    adj_t = torch.sparse_coo_tensor(distinct.flip(0), values, (60, 60)).to_sparse_csr()
    conv = GINConv(nn.Linear(8, 4))
    sparse = gnn_vpa.probe(conv, x, adj_t)
    plain = gnn_vpa.probe(conv, x, distinct)
    found, expected = (the(report, "", "aggregation") for report in (sparse, plain))
    assert found.forward.variance == pytest.approx(expected.forward.variance, rel=1e-5)
    assert [g.rows for g in found.by_degree] == [g.rows for g in expected.by_degree]
    assert not [step for step in sparse.steps if step.step == "message"]


def test_messages_against_the_edges_are_grouped_by_where_they_go(sample: Sample) -> None:
    x, edge_index, _ = sample
    forth = gnn_vpa.probe(SimpleConv(aggr="sum"), x, edge_index)
    back = gnn_vpa.probe(SimpleConv(aggr="sum", flow="target_to_source"), x, edge_index.flip(0))
    assert the(forth, "", "aggregation").by_degree == the(back, "", "aggregation").by_degree


@pytest.mark.parametrize("aggr", ["sum", "mean", "max", "vpa"])
def test_theory_stands_beside_the_measurement(aggr: str, sample: Sample) -> None:
    """The lemmas on the graph's degrees, for PyG's layers and for our own operators."""
    edge_index = torch.unique(sample.edge_index, dim=1)  # parallel edges are not independent
    degrees = torch.bincount(edge_index[1], minlength=60).tolist()
    expected = sum(predicted_variance(aggr, n) for n in degrees if n) / 60
    gnn_vpa.register()
    layers = [SimpleConv(aggr=aggr), gnn_vpa.build_model("gcn", 8, 2, aggr, depth=1)]
    for layer, more in zip(layers, ((), (sample.batch,)), strict=True):
        report = gnn_vpa.probe(layer, sample.x, edge_index, *more)
        step = next(step for step in report.steps if step.step == "aggregation")
        assert step.expected_gain == pytest.approx(expected)
    # Messages that are drawn independently do what the lemmas say.
    wide = torch.randn(60, 4096, generator=torch.Generator().manual_seed(1))
    report = gnn_vpa.probe(SimpleConv(aggr=aggr), wide, edge_index)
    step = next(step for step in report.steps if step.step == "aggregation")
    if aggr != "max":  # whose mean differs from node to node, which is variance too
        assert step.gain == pytest.approx(expected, rel=0.05)
