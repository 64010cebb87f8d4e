"""Rows that stand for several nodes give the numbers that every node by itself would."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gnn_vpa.graphs import GraphSet
from gnn_vpa.nn import Model, build_model
from gnn_vpa.trained import merged as merging
from gnn_vpa.trained.batch import Part, parts
from gnn_vpa.trained.calling import OurCaller
from gnn_vpa.trained.encoding import Encoding, encoding_of

MODELS = [("gin", "vpa"), ("gin", "max"), ("gcn", "mean"), ("gcn", "max"), ("deep", "sum")]


def judging(name: str, aggr: str, encoding: Encoding) -> Model:
    """Return a model that has seen other batches: its norms do something."""
    torch.manual_seed(0)
    options: dict[str, Any] = {"depth": 5} if name == "deep" else {}
    model = build_model(name, encoding.width, 3, aggr, **options).double().eval()
    for part in model.modules():
        if isinstance(part, nn.BatchNorm1d):
            part.running_mean.normal_()
            part.running_var.uniform_(0.5, 2)
    return model


def whole(model: Model, caller: OurCaller, part: Part) -> Tensor:
    """Return the scores with a row for each node."""
    return model(*caller.arguments(part)[0])


@pytest.mark.parametrize("worth", [0.0, 0.4, 0.75, 1.0])
@pytest.mark.parametrize("features", ["ones", "degree", "labels"])
@pytest.mark.parametrize(("name", "aggr"), MODELS)
@torch.inference_mode()
def test_merged_rows_say_what_nodes_say(
    mutag: GraphSet,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    aggr: str,
    features: str,
    worth: float,
) -> None:
    monkeypatch.setattr(merging, "WORTH", worth)
    encoding = encoding_of(mutag, "auto" if features == "labels" else features)  # type: ignore[arg-type]
    model = judging(name, aggr, encoding)
    caller = OurCaller(model, encoding)
    for part in parts(mutag, 1 << 17):
        expected = whole(model, caller, part)
        torch.testing.assert_close(caller.scores(part), expected, rtol=1e-11, atol=1e-11)


@torch.inference_mode()
def test_layers_have_fewer_rows_than_nodes(mutag: GraphSet) -> None:
    encoding = encoding_of(mutag)
    model = judging("gin", "vpa", encoding)
    part = Part(mutag, 0, mutag.num_graphs)
    codes = encoding.apply(part).codes
    assert codes is not None
    x, batch = merging.merged(part, codes, model)
    rows = [len(x), *(hop.graph.num_targets for hop in batch.hops)]
    assert rows == sorted(rows)
    assert rows[0] == 7
    assert rows[-1] < part.num_nodes / 2


@torch.inference_mode()
def test_embeddings_are_those_of_all_nodes(
    mutag: GraphSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoding = encoding_of(mutag)
    caller = OurCaller(judging("gin", "vpa", encoding), encoding)
    part = Part(mutag, 3, 40)
    found = caller.embedding(part)
    monkeypatch.setattr("gnn_vpa.trained.calling.can_merge", lambda model: False)
    torch.testing.assert_close(found, caller.embedding(part), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", ["gat", "sgc"])
def test_models_that_look_at_both_ends_of_an_edge_keep_all_nodes(name: str) -> None:
    assert not merging.can_merge(build_model(name, 3, 2, "vpa"))


@torch.inference_mode()
def test_attributes_that_are_one_hot_are_merged_too(
    mutag: GraphSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = GraphSet.from_pyg(mutag.to_pyg(), target="")
    encoding = encoding_of(written)
    model = judging("gin", "vpa", encoding)
    caller = OurCaller(model, encoding)
    part, calls = Part(written, 0, written.num_graphs), []

    def watched(*args: object) -> object:
        calls.append(args)
        return merging.merged(*args)  # type: ignore[arg-type]

    monkeypatch.setattr("gnn_vpa.trained.calling.merged", watched)
    expected = whole(model, caller, part)
    torch.testing.assert_close(caller.scores(part), expected, rtol=1e-11, atol=1e-11)
    assert encoding.attributes == 7
    assert len(calls) == 1
