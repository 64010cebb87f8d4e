"""What a cell is known by, and what it is called."""

import pytest

from gnn_vpa.experiments import Cell, Selection, Setting
from gnn_vpa.graphs import Division
from gnn_vpa.training import Protocol, Task

_CONTENT = "5b996644"
_PLAIN = Cell("MUTAG", Task("gin", "vpa"), content=_CONTENT)


@pytest.mark.parametrize(
    ("cell", "key"),
    [
        (_PLAIN, "20dd3dbe8473ec41"),
        (
            Cell(
                "MUTAG",
                Task("sgc", "vpa", "printed", "degree", (("K", 5), ("dropout", 0.25))),
                Protocol(3, 32, 0.01),
                4,
                7,
                content=_CONTENT,
            ),
            "ac9bd99e0d12e5c7",
        ),
        (Cell("MUTAG", Task("wl", "", ""), None, content=_CONTENT), "983e7bc92f5db226"),
        (Cell("MUTAG", Task("gin", "power(0.3)"), content=_CONTENT), "cf85f149e0d07b4e"),
        (
            Cell("MUTAG", Task("majority", "", "", "ones"), None, 5, content=_CONTENT),
            "875170d7606edcb2",
        ),
        (
            Cell("MUTAG", Task("deep", "sum", options=(("start", "init"),)), content=_CONTENT),
            "30187e1ffa80eedc",
        ),
    ],
    ids=str,
)
def test_what_was_there_before_keeps_its_key(cell: Cell, key: str) -> None:
    assert cell.key == key  # as versions before this one have made it


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
