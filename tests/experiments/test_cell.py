"""What a cell is known by, and what it is called."""

import pytest

from gnn_vpa.experiments import Cell, Selection, Setting
from gnn_vpa.graphs import Division
from gnn_vpa.paper import archive_content
from gnn_vpa.training import Protocol, Task

_CONTENT = archive_content("MUTAG") or ""
_PLAIN = Cell("MUTAG", Task("gin", "vpa"), content=_CONTENT)


@pytest.mark.parametrize(
    ("cell", "key"),
    [
        (_PLAIN, "893fbad3a5148ce1"),
        (
            Cell(
                "MUTAG",
                Task("sgc", "vpa", "printed", "degree", (("K", 5), ("dropout", 0.25))),
                Protocol(3, 32, 0.01),
                4,
                7,
                content=_CONTENT,
            ),
            "7e02b398a25a865b",
        ),
        (Cell("MUTAG", Task("wl", "", ""), None, content=_CONTENT), "a11211a258fb726d"),
        (Cell("MUTAG", Task("gin", "power(0.3)"), content=_CONTENT), "8c77a7afcc04952d"),
        (
            Cell("MUTAG", Task("majority", "", "", "ones"), None, 5, content=_CONTENT),
            "bb7a81ce7a973864",
        ),
        (
            Cell("MUTAG", Task("deep", "sum", options=(("start", "init"),)), content=_CONTENT),
            "dc0434737fd63392",
        ),
    ],
    ids=str,
)
def test_what_was_there_before_keeps_its_key(cell: Cell, key: str) -> None:
    assert cell.key == key  # as versions before this one have made it


def test_seeds_made_of_other_contents_change_the_key() -> None:
    other = Cell("mine", Task("gin", "vpa"), content="5b996644")
    assert other.key != other.key_by(1) == "20dd3dbe8473ec41"  # that of version 0.2.0
    baseline = Cell("mine", Task("wl", "", ""), None, content="5b996644")
    assert baseline.key == baseline.key_by(1) == "983e7bc92f5db226"  # it has no seeds


_SETTINGS = tuple(Setting((), Protocol(learning_rate=rate)) for rate in (0.01, 0.001))


_OTHERS = [
    Cell("MUTAG", Task("gin", "vpa", source="3f2a"), content=_CONTENT),
    Cell("MUTAG", Task("gin", "vpa", source="9c1b"), content=_CONTENT),
    Cell("MUTAG", Task("gin", "vpa"), Protocol(weight_decay=0.1), content=_CONTENT),
    Cell("MUTAG", Task("gin", "vpa"), Protocol(optimizer="sgd"), content=_CONTENT),
    Cell("MUTAG", Task("gin", "vpa"), Protocol(schedule="step"), content=_CONTENT),
    Cell("MUTAG", Task("gin", "vpa"), Protocol(patience=3), content=_CONTENT),
    Cell("MUTAG", Task("gin", "vpa"), Protocol(clip=1.0), content=_CONTENT),
    Cell("MUTAG", Task("gin", "vpa"), Protocol(class_weight="balanced"), content=_CONTENT),
    Cell("MUTAG", Task("gin", "vpa"), Protocol(metric="roc_auc"), content=_CONTENT),
    Cell("MUTAG", Task("gin", "vpa"), content=_CONTENT, repeat=1),
    Cell("MUTAG", Task("gin", "vpa"), content=_CONTENT, division=Division("splits 00")),
    Cell("MUTAG", Task("gin", "vpa"), content=_CONTENT, selection=Selection(_SETTINGS)),
    Cell("MUTAG", Task("gin", "vpa"), content=_CONTENT, selection=Selection(_SETTINGS, 5)),
    Cell("MUTAG", Task("gin", "vpa"), content=_CONTENT, selection=Selection(_SETTINGS[::-1])),
    Cell("MUTAG", Task("wl", ""), None, content=_CONTENT),
    Cell("MUTAG", Task("wl", ""), None, content=_CONTENT, metric="roc_auc"),
]


def test_whatever_changes_numbers_changes_the_key() -> None:
    keys = {cell.key for cell in (_PLAIN, *_OTHERS)}
    assert len(keys) == 1 + len(_OTHERS)


def test_a_choice_has_the_cells_that_it_is_made_from_as_candidates() -> None:
    chosen = Cell("MUTAG", Task("gin", "vpa"), selection=Selection(_SETTINGS), content=_CONTENT)
    assert [cell.protocol for cell in chosen.candidates()] == [s.protocol for s in _SETTINGS]
    assert all(cell.selection is None for cell in chosen.candidates())
    alone = Cell("MUTAG", Task("gin", "vpa"), Protocol(learning_rate=0.01), content=_CONTENT)
    assert chosen.candidates()[0].key == alone.key  # a run without a choice has it already


def test_settings_and_repeats_are_in_the_name() -> None:
    protocol = Protocol(learning_rate=0.01, weight_decay=0.1, epochs=3)
    cell = Cell("PTC", Task("gin", "vpa"), protocol, repeat=2)
    assert str(cell) == "GIN+vpa (lr=0.01, weight_decay=0.1) on PTC, repeat 2"


def test_a_model_of_ones_own_is_called_as_it_is_written() -> None:
    assert str(Cell("PTC", Task("mynets:Make", "", source="3f2a"))) == "mynets:Make on PTC"
