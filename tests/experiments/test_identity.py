"""Results belong to the data's content: other content is another data set, by whatever name."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gnn_vpa.errors import GnnVpaError, UsageError
from gnn_vpa.experiments import (
    Cell,
    Group,
    Progress,
    Team,
    expand,
    identify,
    identity,
    read_curves,
    read_folds,
    read_provenance,
    run_grid,
)
from gnn_vpa.experiments.identity import labels
from gnn_vpa.graphs import AbsentError, GraphSet
from gnn_vpa.paper import archive_content, archive_names, paper_name
from gnn_vpa.training import Protocol, Task, checkpoint

from .conftest import FakeFit


class Watching(Progress):
    def __init__(self, stop_at: int | None = None) -> None:
        self.notes: list[str] = []
        self.planned: list[str] = []
        self.finished_before = 0
        self.done: list[int] = []
        self._stop_at = stop_at

    def plan(self, pending: Sequence[Cell], finished: int) -> None:
        self.planned, self.finished_before = [cell.dataset for cell in pending], finished

    def epochs(self, group: Group, done: int) -> None:
        self.done.append(done)
        if done == self._stop_at:
            raise KeyboardInterrupt

    def note(self, text: str) -> None:
        self.notes.append(text)


def _other(graphs: GraphSet, name: str | None = None) -> GraphSet:
    """Return the same graphs with other classes."""
    return replace(graphs, name=name or graphs.name, y=1 - graphs.y)


def _cells(*data: str | GraphSet, epochs: int = 2, model: str = "sgc") -> list[Cell]:
    protocol = Protocol(epochs=epochs)
    return expand(data, [model], ["vpa"], protocol=protocol, folds=2).cells


def _run(*data: str | GraphSet, out: Path) -> Watching:
    seen = Watching()
    run_grid(_cells(*data), out, device="cpu", progress=seen)
    return seen


def test_other_graphs_by_the_same_name_are_another_data_set(tmp_path: Path, toy: GraphSet) -> None:
    _run(toy, out=tmp_path)
    first = read_folds(tmp_path)
    assert set(first["dataset"]) == {"toy"}
    seen = _run(_other(toy), out=tmp_path)
    one, two = f"toy@{toy.checksum()[:4]}", f"toy@{_other(toy).checksum()[:4]}"
    assert seen.planned == [two]
    assert seen.notes == [f"toy is called {two} in the results, after its content."]
    folds = read_folds(tmp_path)
    assert set(folds["dataset"]) == {one, two}
    pd.testing.assert_frame_equal(
        folds[folds["dataset"] == one].drop(columns="dataset"), first.drop(columns="dataset")
    )
    assert read_provenance(tmp_path)["data (SHA-256)"] == {
        one: toy.checksum(),
        two: _other(toy).checksum(),
    }


def test_both_are_recorded_in_one_go_and_the_order_does_not_matter(
    tmp_path: Path, toy: GraphSet
) -> None:
    _run(toy, _other(toy), out=tmp_path / "at once")
    for data in (_other(toy), toy):
        _run(data, out=tmp_path / "in turn")
    at_once, in_turn = (
        read_folds(tmp_path / name).drop(columns="seconds").sort_values(["dataset", "fold"])
        for name in ("at once", "in turn")
    )
    assert at_once["dataset"].nunique() == 2
    pd.testing.assert_frame_equal(
        at_once.reset_index(drop=True), in_turn.reset_index(drop=True), check_exact=True
    )


def test_the_same_graphs_by_another_name_are_the_same_data_set(
    tmp_path: Path, toy: GraphSet
) -> None:
    _run(toy, out=tmp_path)
    seen = _run(replace(toy, name="zoo"), out=tmp_path)
    assert (seen.planned, seen.finished_before) == ([], 1)
    assert seen.notes == ["zoo is called toy in the results, after its content."]
    assert set(read_folds(tmp_path)["dataset"]) == {"toy"}


def test_two_spellings_are_one_data_set(tmp_path: Path, tu_dir: Path) -> None:
    seen = _run("mutag", str(tu_dir / "MUTAG.zip"), out=tmp_path)
    assert seen.planned == ["MUTAG"]
    assert seen.notes == ["MUTAG has edge features, which sgc does not use."]


def test_a_benchmark_by_another_name_is_the_benchmark(tmp_path: Path, tu_dir: Path) -> None:
    from gnn_vpa.graphs import load

    renamed = replace(load(tu_dir / "MUTAG.zip"), name="mine")
    _run(renamed, out=tmp_path / "renamed")
    _run("MUTAG", out=tmp_path / "named")
    one, other = (
        read_folds(tmp_path / name).drop(columns="seconds") for name in ("renamed", "named")
    )
    pd.testing.assert_frame_equal(one, other, check_exact=True)


def test_other_graphs_do_not_get_the_name_of_a_benchmark(tmp_path: Path, toy: GraphSet) -> None:
    seen = _run(replace(toy, name="MUTAG"), out=tmp_path)
    label = f"MUTAG@{toy.checksum()[:4]}"
    assert seen.planned == [label]
    assert set(read_folds(tmp_path)["dataset"]) == {label}


def test_a_half_trained_cell_does_not_go_on_with_other_data(
    tmp_path: Path, toy: GraphSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "_PAUSE", 0.0)
    cells, others = (_cells(data, epochs=4) for data in (toy, _other(toy)))
    with pytest.raises(KeyboardInterrupt):
        run_grid(cells, tmp_path / "a", device="cpu", progress=Watching(stop_at=2))
    run_grid(others, tmp_path / "a", device="cpu")
    run_grid(others, tmp_path / "b", device="cpu")
    pd.testing.assert_frame_equal(read_curves(tmp_path / "a"), read_curves(tmp_path / "b"))
    rest = Watching()
    run_grid(cells, tmp_path / "a", device="cpu", progress=rest)
    assert rest.done[0] > 1  # the first data's checkpoint has waited
    assert not (tmp_path / "a" / "checkpoints").exists()


def test_what_a_function_returns_is_asked_for_once_and_travels_to_all_processes(
    tmp_path: Path, toy: GraphSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def load(source: str | GraphSet, *_: object) -> GraphSet:
        if isinstance(source, GraphSet):
            return source
        calls.append(source)
        return replace(toy, name=source)

    monkeypatch.setattr(identity, "load", load)
    cells = expand(["mine:graphs"], ["sgc"], protocol=Protocol(epochs=2), folds=2, seeds=range(3))
    run_grid(cells.cells, tmp_path, device="cpu", workers=Team(2))
    assert calls == ["mine:graphs"]
    assert len(read_folds(tmp_path)) == 2 * 2 * 3


def test_archives_are_read_beside_each_other_and_what_functions_return_one_after_the_other(
    toy: GraphSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    both, threads = threading.Barrier(2), {}

    def load(source: str | GraphSet, *_: object) -> GraphSet:
        if isinstance(source, GraphSet):
            return source
        threads[source] = threading.current_thread()
        if ":" not in source:
            both.wait(20)  # neither is read before both have begun
        return replace(toy, name=source, y=toy.y if ":" in source else 1 - toy.y)

    monkeypatch.setattr(identity, "load", load)
    task = Task("gin", "vpa")
    names = ["one:graphs", "one.zip", "other:graphs", "other.zip"]
    found = identify([Cell(name, task, source=name) for name in names])
    assert len(found.data) == 2
    assert [threads[name] is threading.main_thread() for name in names] == [True, False] * 2


def test_of_several_data_sets_that_are_refused_the_first_is_named(
    toy: GraphSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = threading.Event()

    def load(source: str, *_: object) -> GraphSet:
        if source == "first.zip":
            later.wait(20)
        else:
            later.set()
        raise UsageError(f"{source} is refused")

    monkeypatch.setattr(identity, "load", load)
    with pytest.raises(UsageError, match=r"first\.zip is refused"):
        identify([Cell(name, Task("gin", "vpa")) for name in ("first.zip", "second.zip")])


def test_data_that_change_while_a_run_goes_on_are_refused(toy: GraphSet) -> None:
    (cell,) = identify(_cells(toy)).cells
    with pytest.raises(GnnVpaError, match="toy is not what it was when the run began"):
        identify([replace(cell, source=_other(toy))])


def test_finished_results_of_a_benchmark_need_no_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _run("MUTAG", out=tmp_path)
    content = identify(_cells("MUTAG")).cells[0].content
    absent = AbsentError("MUTAG is not on this machine", "MUTAG")

    def load(*_: object) -> GraphSet:
        raise absent

    monkeypatch.setattr(identity, "load", load)
    seen = _run("MUTAG", out=tmp_path)
    assert (seen.planned, seen.finished_before) == ([], 1)
    assert identify(_cells("MUTAG")).absent == {content: absent}
    with pytest.raises(UsageError, match="MUTAG is not on this machine"):
        run_grid(_cells("MUTAG", epochs=3), tmp_path, device="cpu")


def test_data_sets_without_results_take_no_part_in_names(
    tmp_path: Path, toy: GraphSet, fake_fit: FakeFit, monkeypatch: pytest.MonkeyPatch
) -> None:
    _run(toy, out=tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("gnn_vpa.experiments.train_group.fit", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            _run(_other(toy), out=tmp_path)
    assert set(read_folds(tmp_path)["dataset"]) == {"toy"}


def _interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


_NAMES = st.dictionaries(
    st.integers(0, 16**6).map(lambda n: f"{n:06x}" + "0" * 58)
    | st.sampled_from([archive_content(archive) or "" for archive in archive_names()]),
    st.sampled_from(["X", "Y", "X@0000", "MUTAG", "PTC"]),
    max_size=6,
)


@given(_NAMES, st.randoms(use_true_random=False))
def test_every_content_has_a_name_of_its_own_whatever_the_order(
    names: dict[str, str], chance: Random
) -> None:
    called = labels(names)
    assert called.keys() == names.keys()
    assert len(set(called.values())) == len(called)
    order = list(names)
    chance.shuffle(order)
    assert labels({content: names[content] for content in order}) == called
    benchmarks = {archive_content(a): paper_name(a) or a for a in archive_names()}
    for content, label in called.items():
        assert label == benchmarks.get(content, label)
        assert content in benchmarks or label not in benchmarks.values()


def test_contents_that_begin_alike_show_more_digits() -> None:
    one, other = "3f2a" + "0" * 60, "3f2a" + "1" * 60
    assert labels({one: "X", other: "X"}) == {one: "X@3f2a0", other: "X@3f2a1"}


@pytest.mark.parametrize("field", ["y", "col", "node_labels", "node_attributes", "edge_attributes"])
def test_whatever_a_training_may_see_is_content(toy: GraphSet, field: str) -> None:
    full = replace(
        toy,
        node_labels=torch.zeros(toy.num_nodes, 1, dtype=torch.long),
        node_attributes=torch.zeros(toy.num_nodes, 1),
        edge_attributes=torch.zeros(toy.num_edges, 1),
    )
    values = getattr(full, field).clone()
    values[0] = values[1] if field == "col" else 1 - values[0]
    assert replace(full, **{field: values}).checksum() != full.checksum()
    assert replace(full, name="other").checksum() == full.checksum()
