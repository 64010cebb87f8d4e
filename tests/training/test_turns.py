"""Groups in turns: every epoch is trained once, whoever takes which group, and when."""

from collections import Counter, deque
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnn_vpa.training.job import Job, Report
from gnn_vpa.training.turns import Turns

EPOCHS = 4


@pytest.fixture(autouse=True)
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every epoch be a turn."""
    monkeypatch.setattr("gnn_vpa.training.turns.TURN_S", 0.0)


class Trainer:
    """Stands for what trains groups; it notes which epochs were trained, and what was closed."""

    def __init__(self) -> None:
        self.trained: Counter[tuple[int, int]] = Counter()
        self.begun: list[int] = []
        self.closed: list[int] = []

    def __call__(self, job: Job) -> Generator[Report, bool | None]:
        self.begun.append(job.place)
        try:
            for epoch in range((job.state or {"epoch": 0})["epoch"] + 1, EPOCHS + 1):
                self.trained[job.place, epoch] += 1
                try:
                    if (yield Report(job.places, epoch)):
                        yield Report(job.places, epoch, {"epoch": epoch})
                except KeyboardInterrupt:
                    yield Report(job.places, epoch, {"epoch": epoch})
                    raise
            yield Report(job.places, EPOCHS, outcomes=[None] * len(job.trainings))
        finally:
            self.closed.append(job.place)


def jobs(count: int) -> "deque[Job]":
    return deque(Job(2 * number, ("one", "other")) for number in range(count))


def test_one_after_the_other_where_nobody_is_awaited() -> None:
    train, waiting = Trainer(), jobs(2)
    turns = Turns(train, waiting)
    for _ in range(2):
        for report in turns.begin() or pytest.fail("something waits"):
            assert turns.end(report, lacking=0) is None
    assert turns.begin() is None
    assert list(train.trained) == [(place, epoch) for place in (0, 2) for epoch in (1, 2, 3, 4)]


def test_in_turns_until_another_is_ready() -> None:
    train, waiting = Trainer(), jobs(3)
    turns = Turns(train, waiting)
    seen = []
    for _ in range(4):  # turns
        for report in turns.begin() or pytest.fail("something waits"):
            seen.append((report.places.start, report.epoch))
            if turns.end(report, lacking=1):
                break
    assert seen == [(0, 1), (2, 1), (0, 2), (2, 2)]  # as many as there will be processes
    assert train.begun == [0, 2]
    taken = waiting.popleft()
    assert (taken.place, taken.state) == (0, {"epoch": 2})
    reports = turns.begin()
    assert reports is not None
    assert next(reports).places == range(2, 4)
    assert train.closed == [0]  # what another has taken is no longer held


def test_a_group_that_comes_back_with_another_state_goes_on_from_that() -> None:
    train, waiting = Trainer(), jobs(2)
    turns = Turns(train, waiting)
    for _ in range(2):
        for report in turns.begin() or pytest.fail("something waits"):
            assert turns.end(report, lacking=1)
            break
    taken = waiting.popleft()  # by another, which then ends
    waiting.appendleft(taken._replace(state={"epoch": 3}))
    reports = turns.begin()
    assert reports is not None
    assert next(reports).epoch == 4


def test_a_part_of_a_group_is_not_put_aside() -> None:
    train, waiting = Trainer(), jobs(2)
    turns = Turns(train, waiting)
    reports = turns.begin()
    assert reports is not None
    report = next(reports)
    assert turns.end(report._replace(places=range(1)), lacking=1) is None
    assert turns.end(report._replace(outcomes=[1, 2]), lacking=1) is None
    assert turns.end(object(), lacking=1) is None
    assert turns.end(report, lacking=1)


def test_all_states_are_handed_over_at_the_end_of_a_turn_or_when_it_is_interrupted() -> None:
    train, waiting = Trainer(), jobs(3)
    turns = Turns(train, waiting)
    assert turns.last() == []
    handed: list[Report] = []
    for _ in range(2):
        for report in turns.begin() or pytest.fail("something waits"):
            handed += [turns.end(report, lacking=1) or pytest.fail("its turn is over")]
            break
    assert turns.last() == []
    reports = turns.begin()
    assert reports is not None
    next(reports)
    handed += turns.last()
    assert [(r.places.start, r.state) for r in handed] == [
        (0, {"epoch": 1}), (2, {"epoch": 1}), (0, {"epoch": 2})
    ]  # fmt: skip


def test_all_that_was_begun_is_let_go_of() -> None:
    train, waiting = Trainer(), jobs(2)
    turns = Turns(train, waiting)
    for report in turns.begin() or pytest.fail("something waits"):
        assert turns.end(report, lacking=1)
        break
    turns.close()
    assert train.closed == [0]


@given(data=st.data(), count=st.integers(1, 5))
def test_every_epoch_is_trained_once(data: Any, count: int) -> None:
    train, waiting = Trainer(), jobs(count)
    turns = Turns(train, waiting)
    elsewhere: list[Generator[Report, bool | None]] = []
    ended, lacking = 0, data.draw(st.integers(0, 3), "processes that are not ready")

    def advance_others() -> int:
        over = 0
        for group in list(elsewhere):
            if data.draw(st.booleans(), "another goes on") and next(group).outcomes:
                elsewhere.remove(group)
                over += 1
        return over

    while ended < count:
        for report in turns.begin() or ():
            ended += report.outcomes is not None
            if lacking and waiting and data.draw(st.booleans(), "another is ready"):
                elsewhere.append(train(waiting.popleft()))
                lacking -= 1
            ended += advance_others()
            if turns.end(report, lacking):
                break
        ended += advance_others()
    assert set(train.trained) == {(2 * n, e + 1) for n in range(count) for e in range(EPOCHS)}
    assert set(train.trained.values()) == {1}
