"""Data that a process loads when it needs them: once, and the very same that were identified."""

from dataclasses import replace

import pytest

from gnn_vpa.errors import GnnVpaError
from gnn_vpa.experiments import Cell, expand, identify, identity
from gnn_vpa.experiments.on_demand import OnDemand
from gnn_vpa.graphs import AbsentError, GraphSet


@pytest.fixture
def asked(toy: GraphSet, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let archives be toys, and note which are loaded."""
    found: list[str] = []

    def load(source: str, *_: object) -> GraphSet:
        found.append(source)
        return replace(toy, name=source, y=toy.y if source == "MUTAG" else 1 - toy.y)

    monkeypatch.setattr(identity, "load", load)
    monkeypatch.setattr(identity, "archive_content", lambda _: None)
    return found


def _cells() -> list[Cell]:
    return list(identify(expand(["MUTAG", "NCI1"], ["gin"]).cells).cells)


def test_each_is_loaded_once_and_not_before_it_is_needed(asked: list[str]) -> None:
    cells = _cells()
    asked.clear()
    data = OnDemand(cells)
    assert (asked, len(data), list(data)) == ([], 2, list(dict.fromkeys(c.content for c in cells)))
    for _ in range(2):
        assert data[cells[-1].content].name == "NCI1"
    assert asked == ["NCI1"]


def test_what_has_changed_since_is_refused(
    asked: list[str], toy: GraphSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = OnDemand(cells := _cells())
    monkeypatch.setattr(identity, "load", lambda *_: replace(toy, name="MUTAG", y=1 - toy.y))
    with pytest.raises(GnnVpaError, match="MUTAG is not what it was when the run began"):
        data[cells[0].content]


def test_what_is_gone_since_is_refused(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    data = OnDemand(cells := _cells())

    def load(*_: object) -> GraphSet:
        raise AbsentError("MUTAG is not on this machine", "MUTAG")

    monkeypatch.setattr(identity, "load", load)
    monkeypatch.setattr(identity, "archive_content", lambda _: cells[0].content)
    with pytest.raises(AbsentError, match="not on this machine"):
        data[cells[0].content]
