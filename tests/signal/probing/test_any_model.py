"""Whatever PyG's models are given, a probe answers, and what it says is so."""

import math
import re
from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch_geometric.nn import GAT, GCN, GIN, GraphSAGE

import gnn_vpa
from gnn_vpa.signal import Report


@st.composite
def calls(draw: st.DrawFn) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    torch.manual_seed(draw(st.integers(0, 10_000)))
    options: dict[str, Any] = {
        "norm": draw(st.sampled_from([None, "BatchNorm", "LayerNorm", "GraphNorm", "PairNorm"])),
        "act": draw(st.sampled_from([None, "relu", "tanh", "leaky_relu"])),
    }
    kind = draw(st.sampled_from([GIN, GCN, GAT, GraphSAGE]))
    model = kind(draw(st.sampled_from([1, 4])), 8, draw(st.integers(1, 4)), 4, **options)
    nodes = draw(st.sampled_from([2, 3, 10, 100]))
    edges = draw(st.sampled_from([0, 1, nodes, 8 * nodes]))
    x = torch.randn(nodes, model.in_channels)
    if draw(st.booleans()):
        x = torch.ones_like(x)
    scale = 10.0 ** draw(st.integers(-6, 6))
    # A mean of some standard deviations: neighbours are nearly alike, and not quite.
    offset = draw(st.sampled_from([0.0, 1.0, -5.0, 7.0, -20.0, 1e6]))
    return model, (x + offset) * scale, torch.randint(nodes, (2, edges))


@settings(max_examples=50, deadline=None)
@given(calls())
def test_a_probe_never_fails_and_what_it_says_is_so(
    call: tuple[nn.Module, torch.Tensor, torch.Tensor],
) -> None:
    report = gnn_vpa.probe(*call)
    assert report.verdict
    assert_true(report)
    assert str(report)


def assert_true(report: Report) -> None:
    """Hold the sentences against the steps that they are about."""
    verdict, steps = report.verdict, report.steps
    forward = any(step.forward.nonfinite for step in steps)
    back = any(step.backward.nonfinite for step in steps if step.backward)
    assert ("values are NaN or infinite, the first in the network" in verdict) == forward
    assert ("of its gradient are NaN or infinite" in verdict) == (back and not forward)
    known = [step for step in steps if math.isfinite(step.distance)]
    assert all(-1e-3 <= step.distance <= 2.001 for step in known)
    if "become alike" in verdict:
        assert known[-1].distance <= 0.05 * known[0].distance
    if "have the same features" in verdict:
        size = known[0].forward.rms ** 2 * known[0].forward.count / known[0].shape[0]
        assert known[0].dirichlet <= 1e-6 * size
    if "keeps its scale" in verdict:
        updates = [step.forward.variance for step in steps if step.step == "update"]
        some = [value for value in updates if value > 0]
        assert len(some) < 2 or 0.01 <= some[-1] / some[0] <= 100
    for share, text in ((1.0, "100 %"), (0.0, "0 %")):
        for said in re.findall(rf"(?<![\d.]){text} of the values are 0", verdict):
            assert any(step.forward.zeros == share for step in steps), said
