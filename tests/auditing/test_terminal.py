import io

import pytest
from rich.console import Console

import gnn_vpa
from gnn_vpa.auditing import overview
from gnn_vpa.auditing._numbers import MISSING

from .conftest import Make


def test_text_begins_with_what_matters_and_has_every_table(toys: Make) -> None:
    text = str(gnn_vpa.audit(toys(12), folds=2, baselines=True))
    first, second, *_ = text.splitlines()
    assert first == "custom: 24 graphs"
    assert second.startswith("* ")
    for title in ("What networks can know", "Without any graph network", "Expected variance"):
        assert f"\n{title}" in text
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("width", [60, 100])
def test_a_terminal_has_room_for_all_of_it(toys: Make, width: int) -> None:
    screen = io.StringIO()
    Console(file=screen, width=width, force_terminal=True, color_system=None).print(
        gnn_vpa.audit(toys(12), folds=2, baselines=True)
    )
    lines = screen.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert "…" not in screen.getvalue()
    assert lines[0].startswith("custom: 24 graphs")


def test_several_are_one_table(toys: Make) -> None:
    audits = [gnn_vpa.audit(toys(n), folds=2, baselines=False) for n in (12, 14)]
    _, header, first, second, *_ = overview(audits).splitlines()
    assert header.split() == [
        "data", "set", "graphs", "distinct", "best", "twins", "look-up", "majority", "baseline"
    ]  # fmt: skip
    assert first.split() == ["custom", "24", "2", "100", "100", "100", "50.0", MISSING]
    assert second.split()[1] == "28"
