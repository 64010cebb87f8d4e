"""Event files, read by TensorBoard's own reader."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams.metadata import parse_session_end_info_plugin_data as ended
from tensorboard.plugins.hparams.metadata import parse_session_start_info_plugin_data as started

from gnn_vpa.errors import UsageError
from gnn_vpa.experiments import Cell, Group, Store, read_curves, run_grid
from gnn_vpa.experiments import tensorboard as module
from gnn_vpa.experiments.progress import Grown
from gnn_vpa.experiments.tensorboard import TensorBoard
from gnn_vpa.graphs import GraphSet
from gnn_vpa.training import Protocol, Task

from .conftest import FakeFit

CELL = Cell("toy", Task("gin", "vpa", options=(("width", 8),)), Protocol(epochs=3), folds=2)


def _read(folder: Path) -> EventAccumulator:
    (path,) = folder.glob("events.out.tfevents.*")
    return EventAccumulator(str(path)).Reload()


def _values(events: EventAccumulator, tag: str) -> list[tuple[int, float]]:
    return [(event.step, event.value) for event in events.Scalars(tag)]


def test_a_run_writes_the_curves_that_its_results_have(tmp_path: Path, toy: GraphSet) -> None:
    board = tmp_path / "board"
    run_grid([replace(CELL, source=toy)], tmp_path / "run", device="cpu", tensorboard=board)
    (cell,) = board.iterdir()
    assert cell.name.startswith("GIN+vpa (width=8) on toy ")
    assert sorted(path.name for path in cell.iterdir()) == ["fold 0", "fold 1"]
    stored = read_curves(tmp_path / "run")
    for fold in range(2):
        events = _read(cell / f"fold {fold}")
        own = stored[stored["fold"] == fold]
        for tag, column in (
            ("train/loss", "train_loss"), ("validation/accuracy", "val_score"),
            ("test/accuracy", "test_score"),
        ):  # fmt: skip
            steps, values = zip(*_values(events, tag), strict=True)
            assert steps == (0, 1, 2)
            np.testing.assert_array_equal(values, own[column])
        assert len(_values(events, "chosen/test_accuracy")) == 1
        plugin = events.summary_metadata["_hparams_/session_start_info"].plugin_data.content
        settings = started(plugin).hparams
        assert settings["aggregation"].string_value == "vpa"
        assert settings["width"].number_value == 8
        assert settings["learning_rate"].number_value == pytest.approx(0.001)


def test_curves_are_written_as_they_grow_and_anew_after_an_interruption(tmp_path: Path) -> None:
    cell = replace(CELL, content="c0ffee")
    curves = np.arange(9, dtype=np.float32).reshape(3, 3)
    board = TensorBoard(tmp_path)
    for epochs in (1, 2, 2):
        board.curves(Group((cell,)), [Grown(cell, 1, curves[:, :epochs])])
    folder = board.place(cell) / "fold 1"
    assert _values(_read(folder), "train/loss") == [(0, 0.0), (1, 1.0)]
    again = TensorBoard(tmp_path)  # in another process, from a checkpoint
    again.curves(Group((cell,)), [Grown(cell, 1, curves)])
    assert _values(_read(folder), "train/loss") == [(0, 0.0), (1, 1.0), (2, 2.0)]
    assert _values(_read(folder), "test/accuracy") == [(0, 6.0), (1, 7.0), (2, 8.0)]


def test_what_was_finished_before_is_written_too_and_nothing_twice(
    tmp_path: Path, fake_fit: FakeFit
) -> None:
    fake_fit.diverging = {1}
    run_grid([CELL], tmp_path / "run", device="cpu")
    for _ in range(2):
        run_grid([CELL], tmp_path / "run", device="cpu", tensorboard=tmp_path / "board")
    (cell,) = (tmp_path / "board").iterdir()
    done, diverged = _read(cell / "fold 0"), _read(cell / "fold 1")
    assert len(_values(done, "train/loss")) == 3
    assert np.isnan(_values(diverged, "train/loss")[1][1])
    status = [
        ended(events.summary_metadata["_hparams_/session_end_info"].plugin_data.content).status
        for events in (done, diverged)
    ]
    assert status == [1, 2]  # success, failure


def test_a_hostile_name_stays_in_its_folder(tmp_path: Path) -> None:
    board = TensorBoard(tmp_path / "board")
    for name in ("../../evil", "/etc/passwd", "<script>", "..", "x" * 500, "a\nb"):
        cell = replace(CELL, dataset=name, content="c0ffee")
        board.curves(Group((cell,)), [Grown(cell, 0, np.ones((3, 1), np.float32))])
        assert board.place(cell).parent == tmp_path / "board"
        assert len(board.place(cell).name) < 120
    assert [path.name for path in tmp_path.iterdir()] == ["board"]


def test_without_tensorboard_a_run_is_refused_before_anything_is_trained(
    tmp_path: Path, fake_fit: FakeFit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"pip install 'gnn-vpa\[tracking\]'"):
        run_grid([CELL], tmp_path / "run", device="cpu", tensorboard=tmp_path / "board")
    assert (fake_fit.calls, list(tmp_path.iterdir())) == ([], [])


def test_a_folder_that_is_a_file_is_refused_before_anything_is_trained(
    tmp_path: Path, fake_fit: FakeFit
) -> None:
    (tmp_path / "board").write_text("")
    with pytest.raises(UsageError, match=r"board.*name another folder"):
        run_grid([CELL], tmp_path / "run", device="cpu", tensorboard=tmp_path / "board")
    assert fake_fit.calls == []


def test_a_disk_that_is_full_does_not_stop_the_training(
    tmp_path: Path, fake_fit: FakeFit, caplog: pytest.LogCaptureFixture
) -> None:
    run = tmp_path / "run"
    board = TensorBoard(tmp_path / "board")
    cell = replace(CELL, content="c0ffee")
    (board.place(cell)).write_text("a file where a folder should be")
    board.curves(Group((cell,)), [Grown(cell, 0, np.ones((3, 1), np.float32))])
    assert "cannot be written" in caplog.text
    with Store(run) as store:
        assert store.finished() == set()
