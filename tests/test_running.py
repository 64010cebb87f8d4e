"""An experiment, from Python."""

import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.nn import GraphConv, global_add_pool

import gnn_vpa
from gnn_vpa.errors import UsageError
from gnn_vpa.experiments import Cell, Progress
from gnn_vpa.graphs import GraphSet

QUICK = {"epochs": 1, "folds": 2, "device": "cpu"}


def _graphs(count: int = 20, flipped: bool = False) -> list[Data]:
    """Paths and triangles; flipped, their classes are exchanged."""
    path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    triangle = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])
    return [
        Data(edge_index=edges, num_nodes=3, y=int(y != flipped))
        for y, edges in enumerate((path, triangle))
    ] * (count // 2)


class Shapes(InMemoryDataset):
    def __init__(self) -> None:
        super().__init__()
        self.data, self.slices = self.collate(_graphs())


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (_graphs, "custom"),
        (lambda: tuple(_graphs()), "custom"),
        (lambda: GraphSet.from_pyg(_graphs(), "mine"), "mine"),
        (Shapes, "Shapes"),
        (lambda: torch.utils.data.Subset(Shapes(), range(20)), "custom"),
        (lambda: {"shapes": _graphs()}, "shapes"),
        (lambda: [GraphSet.from_pyg(_graphs(), "mine")], "mine"),
    ],
    ids=["list", "tuple", "GraphSet", "PyG data set", "a part of one", "by name", "several"],
)
def test_graphs_in_memory_are_run(tmp_path: Path, data: Callable[[], object], name: str) -> None:
    results = gnn_vpa.run(data(), "sgc", "vpa", out=tmp_path, **QUICK)  # type: ignore[arg-type]
    assert results.folds["dataset"].tolist() == [name, name]


def test_several_data_sets_of_all_kinds(tmp_path: Path) -> None:
    data = {"a": _graphs(), "b": _graphs(flipped=True)}
    assert set(gnn_vpa.run(data, "sgc", out=tmp_path, **QUICK).folds["dataset"]) == {"a", "b"}  # type: ignore[arg-type]
    both = ["MUTAG", GraphSet.from_pyg(_graphs(count=30), "c")]
    table = gnn_vpa.run(both, "sgc", out=tmp_path, **QUICK).table  # type: ignore[arg-type]
    assert set(table["dataset"]) == {"MUTAG", "a", "b", "c"}


def test_several_processes_and_another_call_see_the_same_graphs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {**QUICK, "seeds": "0,1", "out": tmp_path / "two"}
    monkeypatch.setenv("GNN_VPA_WORKERS", "2")
    two = gnn_vpa.run(_graphs(), "sgc", **settings)  # type: ignore[arg-type]
    monkeypatch.setenv("GNN_VPA_WORKERS", "1")
    one = gnn_vpa.run(_graphs(), "sgc", **{**settings, "out": tmp_path / "one"})  # type: ignore[arg-type]
    keys = ["aggregation", "seed", "fold"]
    frames = (r.folds.drop(columns="seconds").set_index(keys).sort_index() for r in (one, two))
    pd.testing.assert_frame_equal(*frames, check_exact=True)
    again = gnn_vpa.run(_graphs(), "sgc", **settings)  # type: ignore[arg-type]
    assert len(again.folds) == len(two.folds)
    more = gnn_vpa.run(_graphs(flipped=True), "sgc", **settings)  # type: ignore[arg-type]
    assert len(more.folds) == 2 * len(two.folds)
    assert more.folds["dataset"].nunique() == 2
    assert len(more.provenance["sessions"]) in (2, 3, 4)  # type: ignore[arg-type]


class Planned(Progress):
    """Notes how many cells there are to run, and how many were finished before."""

    def plan(self, pending: Sequence[Cell], finished: int) -> None:
        self.counts = len(pending), finished


def test_what_is_finished_is_trained_anew_where_that_is_asked_for(tmp_path: Path) -> None:
    settings: dict[str, Any] = {**QUICK, "width": [4, 8], "select": True, "out": tmp_path}
    first = gnn_vpa.run(_graphs(), "gcn", "vpa,sum", **settings)
    progress = Planned()
    gnn_vpa.run(_graphs(), "gcn", "vpa,sum", progress=progress, **settings)
    assert progress.counts == (0, 6)
    again = gnn_vpa.run(_graphs(), "gcn", "vpa", fresh=True, progress=progress, **settings)
    assert progress.counts == (3, 0)
    keys = ["aggregation", "options", "fold"]
    frames = (r.folds.drop(columns="seconds").sort_values(keys) for r in (first, again))
    pd.testing.assert_frame_equal(*(f.reset_index(drop=True) for f in frames))


def test_graphs_that_were_changed_in_place_are_other_graphs(tmp_path: Path) -> None:
    graphs = GraphSet.from_pyg(_graphs(), "mine")
    gnn_vpa.run(graphs, "sgc", "vpa", out=tmp_path, **QUICK)  # type: ignore[arg-type]
    graphs.y.copy_(1 - graphs.y)
    results = gnn_vpa.run(graphs, "sgc", "vpa", out=tmp_path, **QUICK)  # type: ignore[arg-type]
    assert results.folds["dataset"].nunique() == 2


def _archive(folder: Path, edge: str) -> Path:
    """Write X.zip: forty graphs of three nodes, an edge or two each."""
    folder.mkdir()
    nodes = range(120)
    edges = [f"{3 * g + 1}, {3 * g + 2}\n{3 * g + 2}, {3 * g + 1}\n" for g in range(40)]
    more = [edge.format(3 * g + 1, 3 * g + 3) for g in range(0, 40, 2)]
    with zipfile.ZipFile(folder / "X.zip", "w") as archive:
        archive.writestr("X/X_A.txt", "".join(edges + more))
        archive.writestr("X/X_graph_indicator.txt", "".join(f"{n // 3 + 1}\n" for n in nodes))
        archive.writestr("X/X_graph_labels.txt", "0\n1\n" * 20)
    return folder / "X.zip"


def test_two_archives_of_one_name_are_told_apart_in_whatever_is_written(tmp_path: Path) -> None:
    archives = [
        _archive(tmp_path / "one", "{0}, {1}\n{1}, {0}\n"),
        _archive(tmp_path / "two", "{0}, {1}\n"),
    ]
    for archive in archives:
        results = gnn_vpa.run(archive, "gcn", "sum,vpa", out=tmp_path / "run", **QUICK)  # type: ignore[arg-type]
    names = sorted(set(results.folds["dataset"]))
    assert len(names) == 2
    assert all(name.startswith("X@") for name in names)
    assert sorted(set(results.table["dataset"])) == names
    assert sorted(set(results.curves["dataset"])) == names
    assert sorted(set(results.signals["dataset"])) == names
    for ending in ("html", "md", "tex", "csv"):
        text = results.report(tmp_path / f"report.{ending}").read_text()
        assert all(name in text for name in names), ending
    both = gnn_vpa.run(archives, "gcn", "sum,vpa", out=tmp_path / "both", **QUICK)  # type: ignore[arg-type]
    assert sorted(set(both.folds["dataset"])) == names


def test_the_command_lines_spellings(tmp_path: Path) -> None:
    spelled = gnn_vpa.run(
        _graphs(),
        model="gin, sgc",
        aggr="sum,vpa",
        seed="0,1",
        baselines=True,
        epochs=np.int64(1),  # type: ignore[arg-type]
        folds=2,
        device=torch.device("cpu"),
        out=tmp_path,
    )
    methods = spelled.folds[["model", "aggregation"]].drop_duplicates().to_numpy().tolist()
    assert methods == [
        *(["GIN", "sum"], ["GIN", "vpa"], ["SGC", "vpa"], ["MAJORITY", ""]),
        *(["NO_EDGES", ""], ["NO_FEATURES", ""], ["WL", ""]),
    ]
    assert set(spelled.folds["seed"]) == {0, 1}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"datasets": 5}, "datasets: expected a name.* got int"),
        ({"datasets": []}, "datasets: there is none"),
        ({"datasets": _graphs()[0]}, "datasets: this is a single graph"),
        ({"datasets": [*_graphs(), "MUTAG"]}, "graph 20: expected a torch_geometric.*got str"),
        ({"datasets": ["MUTAG", 7]}, "a data set is a name.* not int"),
        ({"datasets": {7: _graphs()}}, "datasets: 7 must be a name"),
        ({"datasets": {"mine": []}}, "mine: there is no graph in it"),
        ({"models": 5}, "models: expected a name or several, got 5"),
        ({"models": ["gin", 5]}, "models: expected names, but there is 5"),
        ({"models": "gin,gim"}, "'gim' is unknown: did you mean gin"),
        ({"aggrs": object}, "aggrs: expected a name"),
        ({"aggrs": "sum", "aggr": "vpa"}, "aggrs and aggr are the same"),
        ({"seeds": "one"}, "seeds: 'one' must be whole numbers"),
        ({"seeds": 0.5}, "seeds: expected a whole number, got 0.5"),
        ({"seeds": [0, None]}, "seeds: expected a whole number, got None"),
        ({"epochs": "ten"}, "epochs: expected a whole number from 1 on, got 'ten'"),
        ({"epochs": 0}, "epochs: expected a whole number from 1 on, got 0"),
        ({"folds": 1}, "folds: expected a whole number from 2 on, got 1"),
        ({"features": None}, "features: expected a name, got None"),
        ({"features": "colour"}, "colour"),
        ({"variant": 3}, "variant: expected a name, got 3"),
        ({"variant": "typed"}, "variant: 'typed' is unknown"),
        ({"baselines": "wll"}, "baseline: 'wll' is unknown: did you mean wl"),
        ({"device": 0}, "device: expected auto, cpu, cuda or a torch.device, got 0"),
        ({"device": torch.device("meta")}, "unknown device 'meta'"),
        ({"device": ["cuda:0", 1]}, "device: expected auto, cpu, cuda or a torch.device, got 1"),
        ({"device": ["cpu", "cpu"]}, "cpu cannot be one of several"),
        ({"workers": 0}, "workers"),
        ({"data_dir": 5}, "data_dir: expected a path, got 5"),
        ({"out": 5}, "out: expected a path, got 5"),
        ({"progress": print}, "progress: expected a gnn_vpa.experiments.Progress"),
        ({"dropout": "much"}, "dropout: expected a number, got 'much'"),
        ({"wdth": 8}, "'wdth' is unknown: did you mean width"),
        ({"epoch": 2}, "'epoch' is unknown: did you mean epochs"),
        ({"fold": 3}, "'fold' is unknown: did you mean folds"),
    ],
    ids=str,
)
def test_what_is_not_taken_is_named_before_anything_is_trained(
    tmp_path: Path, settings: dict[str, object], message: str
) -> None:
    arguments = {"datasets": _graphs(), "out": tmp_path / "out", **QUICK, **settings}
    with pytest.raises(UsageError, match=message):
        gnn_vpa.run(**arguments)  # type: ignore[arg-type]
    assert not (tmp_path / "out" / "checkpoints").exists()


def test_the_data_sections_come_from_the_run_for_data_of_a_folder(tmp_path: Path) -> None:
    _archive(tmp_path / "data", "{0}, {1}\n")
    results = gnn_vpa.run(
        "X",
        "gcn",
        "sum,vpa",
        data_dir=tmp_path / "data",
        out=tmp_path / "run",
        **QUICK,  # type: ignore[arg-type]
    )
    assert "The signal at the start, beside the accuracy" in results.report().read_text()


# Settings and models of one's own ---------------------------------------------------------------


class Own(torch.nn.Module):
    """A model of this very file."""

    def __init__(self, in_channels: int, out_channels: int, hidden: int = 4) -> None:
        super().__init__()
        self.conv = GraphConv(in_channels, hidden)
        self.head = torch.nn.Linear(hidden, out_channels)

    def forward(
        self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor
    ) -> torch.Tensor:
        return self.head(global_add_pool(self.conv(x, edge_index).relu(), batch))


def test_a_function_is_a_model_beside_ours(tmp_path: Path) -> None:
    results = gnn_vpa.run(
        "MUTAG", ["sgc", Own], "vpa", hidden=[2, 4], lr="0.01,0.001", select=True, final_runs=1,
        epochs=1, folds=2, device="cpu", out=tmp_path,
    )  # fmt: skip
    assert set(results.folds["model"]) == {"SGC", f"{__name__}:Own"}
    assert len(results.candidates) == 2 * 4 * 2


def test_lists_of_graphs_have_targets_splits_and_groups(tmp_path: Path) -> None:
    edges = torch.tensor([[0, 1], [1, 0]])
    graphs = [
        Data(edge_index=edges, num_nodes=2 + n % 3, gap=float(n % 3), family=f"f{n // 4}")
        for n in range(24)
    ]
    common: dict[str, Any] = {
        "epochs": 1,
        "device": "cpu",
        "target": "gap",
        "models": "sgc",
        "aggrs": "vpa",
    }
    grouped = gnn_vpa.run(graphs, groups="family", folds=2, out=tmp_path / "a", **common)
    assert set(grouped.folds["dataset"]) == {"custom:gap"}
    assert set(grouped.folds["metric"]) == {"mae"}
    split = [list(range(10)), list(range(10, 15)), list(range(15, 20))]
    fixed = gnn_vpa.run(graphs, splits=[split], out=tmp_path / "b", **common)
    assert len(fixed.folds) == 1
    same = gnn_vpa.run(graphs, splits=[split], metric="mae", out=tmp_path / "b", **common)
    assert len(same.folds) == 1  # what is usual has the same key whether or not it is named


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lr": "fast"}, "lr: expected a number above 0"),
        ({"task": "clases"}, "task: 'clases' is unknown: did you mean classes"),
        ({"final_runs": 3}, "final_runs: they are for what select has chosen"),
        ({"repeats": 0}, "repeats: expected a whole number from 1 on, got 0"),
        ({"splits": [], "groups": "a"}, "splits and groups: give one of them"),
        ({"learning_rate": 0.1}, "learning_rate is a setting of the training.*--lr"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        gnn_vpa.run("MUTAG", **settings)  # type: ignore[arg-type]
