"""Models that were saved are the same, or are refused."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import gnn_vpa
from gnn_vpa import GnnVpaError, UsageError
from gnn_vpa.graphs import GraphSet
from gnn_vpa.trained import TrainedModel, container, load_model
from gnn_vpa.trained.saving import FORMAT, check_replaced
from gnn_vpa.training import Task

from .conftest import make, make_other, make_wider, signed, some_graphs

KINDS = ["classifier", "regressor", "labeller", "own_model"]


def graphs_for(kind: str, mutag: GraphSet) -> GraphSet | list[Data]:
    """Return graphs that a model knows."""
    return mutag if kind in ("classifier", "own_model") else some_graphs(30, lambda _: 0, seed=1)


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_are_the_same_to_the_bit(
    kind: str, mutag: GraphSet, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    model: TrainedModel = request.getfixturevalue(kind)
    graphs = graphs_for(kind, mutag)
    model.save(tmp_path / "mine")
    again = gnn_vpa.load_model(tmp_path / "mine", model=make if kind == "own_model" else None)
    np.testing.assert_array_equal(again.outputs(graphs), model.outputs(graphs), strict=True)
    assert again.encoding == model.encoding
    assert again.target == model.target
    assert again.record == model.record
    assert again.protocol == model.protocol
    assert again.task.options == model.task.options


def test_a_folder_holds_weights_configuration_and_card(saved: Path) -> None:
    assert sorted(path.name for path in saved.iterdir()) == [
        *("README.md", "config.json", "model.safetensors")
    ]
    config = json.loads((saved / "config.json").read_text())
    assert config["format"] == FORMAT
    assert config["target"]["classes"] == [-1, 1]
    assert config["parameters"] == {"width": 64, "depth": 4, "dropout": 0.5, "hidden": None}
    assert config["encoding"]["labels"] == [[0, 1, 2, 3, 4, 5, 6]]
    assert len(config["record"]["data"]["content"]) == 64


def test_the_same_model_is_the_same_files(classifier: TrainedModel, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        classifier.save(tmp_path / folder / "mine")
    first, second = (
        {path.name: path.read_bytes() for path in (tmp_path / folder / "mine").iterdir()}
        for folder in ("a", "b")
    )
    assert first == second


@pytest.mark.parametrize("file", ["README.md", "config.json", "model.safetensors"])
def test_a_flipped_byte_is_seen_wherever_it_is(saved: Path, file: str) -> None:
    path = saved / file
    whole = path.read_bytes()
    for place in np.linspace(0, len(whole) - 1, 60).astype(int):
        broken = bytearray(whole)
        broken[place] ^= 1
        path.write_bytes(broken)
        with pytest.raises(GnnVpaError, match="is not what was saved"):
            load_model(saved)
    path.write_bytes(whole)
    load_model(saved)


@pytest.mark.parametrize("file", ["README.md", "config.json", "model.safetensors"])
def test_missing_bytes_are_seen(saved: Path, file: str) -> None:
    path = saved / file
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(GnnVpaError, match=f"{file} is not what was saved"):
        load_model(saved)


@pytest.mark.parametrize("file", ["README.md", "model.safetensors"])
def test_a_missing_file_is_named(saved: Path, file: str) -> None:
    (saved / file).unlink()
    with pytest.raises(GnnVpaError, match=f"has no {file}"):
        load_model(saved)


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        load_model(tmp_path / "nowhere")
    with pytest.raises(UsageError, match=r"has no config\.json"):
        load_model(tmp_path)


def test_a_model_is_no_zip_until_somebody_zips_it(saved: Path, classifier: TrainedModel) -> None:
    packed = Path(shutil.make_archive(str(saved), "zip", saved))
    before = packed.read_bytes()
    with pytest.raises(UsageError, match=r"mine\.zip: .*leave \.zip away, and zip the folder"):
        classifier.save(packed)
    assert packed.read_bytes() == before
    with pytest.raises(UsageError, match=r"mine\.zip is a file, .*: unpack it into one"):
        load_model(packed)
    shutil.unpack_archive(packed, saved.with_name("unpacked"))
    assert load_model(saved.with_name("unpacked")).record == classifier.record


def resaved(saved: Path, **changes: Any) -> None:
    """Write the configuration of a model anew, with sums that are right."""
    path = saved / "config.json"
    path.write_bytes(signed({**json.loads(path.read_text()), **changes}))


def test_a_newer_format_is_refused(saved: Path) -> None:
    resaved(saved, format=FORMAT + 1)
    with pytest.raises(GnnVpaError, match=f"is of format {FORMAT + 1}.*newer gnn-vpa"):
        load_model(saved)


@pytest.mark.parametrize("part", ["task", "encoding", "target", "record", "protocol"])
def test_a_configuration_of_something_else_is_refused(saved: Path, part: str) -> None:
    resaved(saved, **{part: {"unknown": 1}})
    with pytest.raises(GnnVpaError, match="is not of a model"):
        load_model(saved)


def test_weights_of_another_width_are_refused(saved: Path, classifier: TrainedModel) -> None:
    config = json.loads((saved / "config.json").read_text())
    resaved(saved, task={**config["task"], "options": [["width", 32]]})
    with pytest.raises(GnnVpaError, match=r"does not fit the weights.* copy the model") as refused:
        load_model(saved)
    assert not isinstance(refused.value, UsageError)  # nothing was done wrong: the file is


def test_no_code_is_run_that_a_file_names(
    own_model: TrainedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_model.save(tmp_path / "mine")
    trap = tmp_path / "trap.py"
    trap.write_text("raise SystemExit('run')")
    monkeypatch.chdir(tmp_path)
    config = json.loads((tmp_path / "mine" / "config.json").read_text())
    resaved(tmp_path / "mine", task={**config["task"], "model": "trap:make"})
    with pytest.raises(UsageError, match=r"load_model\(path, model=make\)"):
        load_model(tmp_path / "mine")


def test_a_factory_that_does_not_fit_is_refused(own_model: TrainedModel, tmp_path: Path) -> None:
    own_model.save(tmp_path / "mine")
    with pytest.raises(UsageError, match=r"does not fit the weights.*\[9\].*\[8\].* Make it as"):
        load_model(tmp_path / "mine", model=make_wider)
    with pytest.raises(UsageError, match=r"computes something else.* Make it as"):
        load_model(tmp_path / "mine", model=make_other)


def test_a_factory_for_a_model_of_ours_is_refused(saved: Path) -> None:
    with pytest.raises(
        UsageError, match=r"leave --model away on the command line, model= in Python"
    ):
        load_model(saved, model=make)


def test_a_model_replaces_a_model_and_nothing_else(
    classifier: TrainedModel, saved: Path, tmp_path: Path
) -> None:
    classifier.save(saved)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    (saved / "thesis.tex").write_text("mine")
    with pytest.raises(UsageError, match=r"thesis\.tex"):
        classifier.save(saved)
    assert (saved / "thesis.tex").exists()
    load_model(saved)  # other files are not looked at
    full = tmp_path / "full"
    full.mkdir()
    (full / "thesis.tex").write_text("mine")
    with pytest.raises(UsageError, match="other things in it"):
        classifier.save(full)
    with pytest.raises(UsageError, match="is a file"):
        classifier.save(full / "thesis.tex")


def test_a_model_that_cannot_be_written_leaves_the_old_one(
    classifier: TrainedModel, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path.name: path.read_bytes() for path in saved.iterdir()}

    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(container, "write_whole", full)
    with pytest.raises(OSError, match="No space"):
        classifier.save(saved)
    assert {path.name: path.read_bytes() for path in saved.iterdir()} == before
    assert [path.name for path in saved.parent.iterdir()] == ["mine"]


def test_labels_that_json_does_not_have_are_refused(mutag: GraphSet, tmp_path: Path) -> None:
    graphs = mutag.to_pyg()
    days = np.where(mutag.y, np.datetime64("2020-01-01", "ns"), np.datetime64("2021-01-01", "ns"))
    model = gnn_vpa.GraphClassifier(width=4, depth=1, epochs=1, random_state=0).fit(graphs, days)
    assert model.predict(graphs).dtype == days.dtype
    with pytest.raises(UsageError, match="cannot be saved: fit with text or numbers"):
        model.save(tmp_path / "mine")


def test_a_network_that_turns_edges_round_or_bounds_numbers_is_another(
    own_model: TrainedModel, tmp_path: Path
) -> None:
    def turned(in_channels: int, out_channels: int) -> torch.nn.Module:
        network = make(in_channels, out_channels)
        plain = network.forward
        network.forward = lambda x, edge_index, batch: plain(x, edge_index.flip(0), batch)
        return network

    def bounded(in_channels: int, out_channels: int) -> torch.nn.Module:
        network = make(in_channels, out_channels)
        plain = network.forward
        network.forward = lambda x, edges, batch: plain(x.clamp(max=2), edges, batch)
        return network

    own_model.save(tmp_path / "mine")
    load_model(tmp_path / "mine", model=make)
    for wrong in (turned, bounded):
        with pytest.raises(UsageError, match="computes something else with them"):
            load_model(tmp_path / "mine", model=wrong)


def test_only_a_model_of_the_same_kind_is_replaced(saved: Path, classifier: TrainedModel) -> None:
    task, content = classifier.task, classifier.record.data.content
    same = replace(task, options=(("width", 8),)), content
    others = [
        (replace(task, model="gcn"), content),
        (replace(task, aggr="sum"), content),
        (replace(task, features="degree"), content),
        (task, "350999e7"),
    ]
    check_replaced(saved, [same])
    check_replaced(saved, [*others, same])  # one of them may be what is saved
    for other in others:
        with pytest.raises(UsageError, match=r"holds another model \(.*, or remove it"):
            check_replaced(saved, [other])


@pytest.mark.parametrize("there", [[], ["config.json"], ["README.md"]])
def test_a_place_without_a_model_may_be_written(tmp_path: Path, there: list[str]) -> None:
    for name in there:
        (tmp_path / name).touch()
    check_replaced(tmp_path, [(Task("gin", "vpa"), "350999e7")])


def test_a_model_that_cannot_be_read_may_be_another(saved: Path, classifier: TrainedModel) -> None:
    (saved / "README.md").write_text("Mine")
    with pytest.raises(UsageError, match=r"cannot be read \(.*README.*, or remove it"):
        check_replaced(saved, [(classifier.task, classifier.record.data.content)])
