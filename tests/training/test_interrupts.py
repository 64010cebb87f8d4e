"""Ctrl-C between two epochs: what is trained is kept, and no epoch is trained twice."""

import math
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gnn_vpa.graphs import GraphSet, splits
from gnn_vpa.training import Lane, Outcome, Protocol, Task, fit, trainer
from gnn_vpa.training.checkpoint import Checkpoint
from gnn_vpa.training.interrupts import Impatience, deferred
from gnn_vpa.training.layered_group import LayeredGroup

TASK, PROTOCOL = Task("gin", "vpa"), Protocol(epochs=4, batch_size=32)
GROUP: list[Any] = [None, None]  # a checkpoint only counts the trainings of a group


@pytest.fixture
def lanes(toy: GraphSet) -> list[Lane]:
    return [Lane(fold, split) for fold, split in enumerate(splits(toy.y, 4))]


class Epochs:
    """Counts epochs, and presses Ctrl-C in the middle of one."""

    def __init__(self, run: Callable[[LayeredGroup], None], score: Callable[..., Any]) -> None:
        self.begun = self.done = 0
        self.press_in: int | None = None
        self.presses = 1
        self._run, self._score = run, score

    def run_epoch(self, group: LayeredGroup) -> None:
        self.begun += 1
        self._run(group)
        self.done += 1

    def scores(self, group: LayeredGroup, *args: Any) -> Any:
        if self.begun == self.press_in:
            self.press_in = None
            for _ in range(self.presses):
                signal.raise_signal(signal.SIGINT)
        return self._score(group, *args)


@pytest.fixture
def epochs(monkeypatch: pytest.MonkeyPatch) -> Epochs:
    found = Epochs(LayeredGroup.run_epoch, LayeredGroup._step)
    monkeypatch.setattr(LayeredGroup, "run_epoch", lambda self: found.run_epoch(self))
    monkeypatch.setattr(LayeredGroup, "_step", lambda self, *args: found.scores(self, *args))
    return found


def assert_same(got: list[Outcome], expected: list[Outcome]) -> None:
    for one, other in zip(got, expected, strict=True):
        assert (one.fold, one.best_epoch) == (other.fold, other.best_epoch)
        for curve in ("curve_train_loss", "curve_val", "curve_test"):
            assert np.array_equal(getattr(one, curve), getattr(other, curve))


@pytest.mark.parametrize("press_in", [1, 3, 4, 5, 6, 8])
@pytest.mark.parametrize("long", [False, True], ids=["short epochs", "long epochs"])
@pytest.mark.sampled(4)
def test_after_ctrl_c_only_the_rest_is_trained(
    toy: GraphSet,
    lanes: list[Lane],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    epochs: Epochs,
    press_in: int,
    long: bool,
) -> None:
    monkeypatch.setattr(trainer, "LONG_EPOCH_S", 0.0 if long else float("inf"))
    expected = fit(toy, TASK, PROTOCOL, lanes)
    in_all, epochs.begun, epochs.done = epochs.done, 0, 0
    assert in_all == 2 * PROTOCOL.epochs  # two groups
    epochs.press_in = press_in
    with pytest.raises(KeyboardInterrupt):
        fit(toy, TASK, PROTOCOL, lanes, checkpoint=tmp_path / "state.pt")
    before, epochs.done = epochs.done, 0
    # A long epoch is broken off, and so is a group's first, which has nothing to lose.
    assert before == press_in - (long or press_in in (1, 5))
    outcomes = fit(toy, TASK, PROTOCOL, lanes, checkpoint=tmp_path / "state.pt")
    assert_same(outcomes, expected)
    assert before + epochs.done == in_all


def test_a_second_ctrl_c_leaves_at_once_and_keeps_what_is_whole(
    toy: GraphSet,
    lanes: list[Lane],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    epochs: Epochs,
) -> None:
    monkeypatch.setattr(trainer, "LONG_EPOCH_S", float("inf"))
    expected = fit(toy, TASK, PROTOCOL, lanes)
    epochs.begun, epochs.done, epochs.press_in, epochs.presses = 0, 0, 7, 2
    with pytest.raises(Impatience):
        fit(toy, TASK, PROTOCOL, lanes, checkpoint=tmp_path / "state.pt")
    assert epochs.done == 6  # the seventh was not waited for, and its weights were not kept
    epochs.done = 0
    assert_same(fit(toy, TASK, PROTOCOL, lanes, checkpoint=tmp_path / "state.pt"), expected)
    assert epochs.done == PROTOCOL.epochs  # of the group that was not finished


def test_a_handler_of_ones_own_never_keeps_half_an_epoch(
    toy: GraphSet,
    lanes: list[Lane],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    epochs: Epochs,
) -> None:
    monkeypatch.setattr(trainer, "LONG_EPOCH_S", float("inf"))
    expected = fit(toy, TASK, PROTOCOL, lanes)
    epochs.begun, epochs.done, epochs.press_in = 0, 0, 3

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            fit(toy, TASK, PROTOCOL, lanes, checkpoint=tmp_path / "state.pt")
    finally:
        signal.signal(signal.SIGINT, before)
    assert_same(fit(toy, TASK, PROTOCOL, lanes, checkpoint=tmp_path / "state.pt"), expected)


def test_an_interrupt_between_two_epochs_keeps_them(
    toy: GraphSet,
    lanes: list[Lane],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    epochs: Epochs,
) -> None:
    monkeypatch.setattr(trainer, "LONG_EPOCH_S", float("inf"))
    seen = []

    def stop(done: int) -> None:
        seen.append(done)
        if len(seen) == 4:
            raise KeyboardInterrupt

    expected = fit(toy, TASK, PROTOCOL, lanes)
    epochs.done = 0
    with pytest.raises(KeyboardInterrupt):
        fit(toy, TASK, PROTOCOL, lanes, checkpoint=tmp_path / "state.pt", progress=stop)
    assert_same(fit(toy, TASK, PROTOCOL, lanes, checkpoint=tmp_path / "state.pt"), expected)
    assert epochs.done == 2 * PROTOCOL.epochs


@pytest.mark.parametrize("turn", [math.inf, 0.0], ids=["one after the other", "in turns"])
def test_other_processes_hand_over_their_states_too(
    toy: GraphSet,
    lanes: list[Lane],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    epochs: Epochs,
    turn: float,
) -> None:
    monkeypatch.setattr("gnn_vpa.training.turns.TURN_S", turn)
    protocol = Protocol(epochs=100_000, batch_size=16)  # more than will be trained
    path, told = tmp_path / "state.pt", []

    def stop(_: int) -> None:
        told.append(1)
        if len(told) - epochs.done >= 3:  # of the other process
            raise KeyboardInterrupt
        time.sleep(0.05)

    with pytest.raises(KeyboardInterrupt):
        fit(toy, TASK, protocol, lanes, checkpoint=path, progress=stop, workers=2)
    settings = (torch.float32, True, "cpu", False)
    saved = Checkpoint(path, toy, [TASK], [protocol], lanes, settings)
    here, there = (saved.job(place, GROUP).state["epoch"] for place in (0, 2))
    assert here + there >= epochs.done + 3
    if math.isinf(turn):
        assert here == epochs.done


def test_elsewhere_than_in_the_main_thread_nothing_changes() -> None:
    done = []
    thread = threading.Thread(target=lambda: deferred().__enter__() or done.append(1))
    thread.start()
    thread.join()
    assert done == [1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
