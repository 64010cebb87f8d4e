"""Models of one's own beside ours in a grid."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from gnn_vpa.errors import UsageError
from gnn_vpa.experiments import expand
from gnn_vpa.experiments.methods import model_name

_SOURCE = """
from torch import nn
from torch_geometric.nn import GIN, global_add_pool

class Net(nn.Module):
    def __init__(self, body, head):
        super().__init__()
        self.body, self.head = body, head

    def forward(self, x, edge_index, batch):
        return self.head(global_add_pool(self.body(x, edge_index), batch))

def make(in_channels, out_channels, hidden=8, layers=2):
    return Net(GIN(in_channels, hidden, layers), nn.Linear(hidden, out_channels))

def with_aggr(in_channels, out_channels, aggr="sum"):
    return Net(GIN(in_channels, 8, 2, aggr=aggr), nn.Linear(8, out_channels))

def plain(in_channels, out_channels):
    return nn.Linear(in_channels, out_channels)
"""


@pytest.fixture
def mynets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module of one's own in this folder."""
    (tmp_path / "mynets_of_methods.py").write_text(_SOURCE)
    monkeypatch.chdir(tmp_path)
    yield "mynets_of_methods"
    sys.modules.pop("mynets_of_methods", None)


def _shown(*models: object, **settings: object) -> tuple[list[str], list[str]]:
    grid = expand(["MUTAG"], list(models), **settings)  # type: ignore[arg-type]
    return [str(cell) for cell in grid.cells], grid.left_out


def test_it_stands_beside_ours_as_it_is_written(mynets: str) -> None:
    cells, left_out = _shown("sgc", f"{mynets}:make")
    assert cells == ["SGC on MUTAG", "SGC+vpa on MUTAG", f"{mynets}:make on MUTAG"]
    assert left_out == []


def test_its_options_make_a_grid_and_others_are_run_without_them(mynets: str) -> None:
    cells, left_out = _shown(
        "gin", f"{mynets}:make", aggrs=["vpa"], options={"layers": [2, 3], "width": 8}
    )
    assert cells == [
        "GIN+vpa (width=8) on MUTAG",
        f"{mynets}:make+vpa (layers=2) on MUTAG",
        f"{mynets}:make+vpa (layers=3) on MUTAG",
    ]
    assert [text.partition(",")[0] for text in left_out] == [
        "layers for gin",
        f"width for {mynets}:make",
    ]


def test_the_hash_of_its_source_is_in_the_task(mynets: str) -> None:
    assert len(expand(["MUTAG"], [f"{mynets}:make"]).cells[0].task.source) >= 8
    assert expand(["MUTAG"], ["gin"], ["vpa"]).cells[0].task.source == ""


def test_an_edited_model_is_another_method(mynets: str, tmp_path: Path) -> None:
    before = expand(["MUTAG"], [f"{mynets}:make"]).cells[0].task
    del sys.modules[mynets]
    (tmp_path / f"{mynets}.py").write_text(_SOURCE.replace("layers=2", "layers=4"))
    (tmp_path / "__pycache__").exists()
    import importlib

    importlib.invalidate_caches()
    after = expand(["MUTAG"], [f"{mynets}:make"]).cells[0].task
    assert before.model == after.model
    assert before.source != after.source


def test_an_aggregation_that_it_cannot_have_is_left_out_and_said(mynets: str) -> None:
    cells, left_out = _shown("gin", f"{mynets}:plain", aggrs=["vpa"])
    assert cells == ["GIN+vpa on MUTAG"]
    assert "plain takes no aggr" in left_out[0]
    cells, left_out = _shown(f"{mynets}:with_aggr", aggrs=["sum", "vpa"])
    assert cells == [f"{mynets}:with_aggr+sum on MUTAG", f"{mynets}:with_aggr+vpa on MUTAG"]


class Own(nn.Module):
    """A model that ignores edges."""

    def __init__(self, in_channels: int, out_channels: int, wide: bool = False) -> None:
        super().__init__()
        self.lin = nn.Linear(in_channels, out_channels)

    def forward(self, x: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
        return self.lin(x)


def test_functions_and_classes_are_models_too() -> None:
    cells, _ = _shown(Own, options={"wide": [True, False]})
    assert cells == [
        f"{__name__}:Own (wide=True) on MUTAG",
        f"{__name__}:Own (wide=False) on MUTAG",
    ]


@pytest.mark.parametrize(
    ("models", "options", "message"),
    [
        (["gim"], {}, r"model: 'gim' is unknown: did you mean gin\?"),
        (["resnet"], {}, "use .*gin.*, or module:function for one of your own"),
        (["nomodule:make"], {}, "nomodule"),
        (["{}:mak"], {}, "mak"),
        (["{}:make"], {"hiden": 3}, r"option of .*:make: 'hiden' is unknown: did you mean hidden"),
        (["{}:plain"], {"hidden": 3}, "option of .*:plain: 'hidden' is unknown: it has none"),
        (["{}:plain"], {"epoch": 3}, "option of .*:plain: 'epoch' is unknown: did you mean epochs"),
        (["gin"], {"epoch": 3}, "option of gin: 'epoch' is unknown: did you mean epochs"),
        (["gin"], {"hidden": "wide"}, "hidden: expected a number, got 'wide'"),
        (["gin"], {"learning_rate": 1}, "learning_rate is a setting of the training"),
        (["{}:make"], {"layers": "many"}, "raised"),
    ],
)
def test_what_cannot_be_is_named(
    mynets: str, models: list[str], options: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        expand(["MUTAG"], [model.format(mynets) for model in models], options=options)


def test_a_model_is_no_factory() -> None:
    with pytest.raises(UsageError, match="Linear is a model already"):
        model_name(nn.Linear(2, 2))


def test_two_functions_of_one_name_are_not_one_model() -> None:
    def outer(layer: nn.Module) -> Any:
        def make(in_channels: int, out_channels: int) -> nn.Module:
            return nn.Sequential(nn.Linear(in_channels, out_channels), layer)

        return make

    same = outer(nn.Dropout(0.0))
    assert len(expand(["MUTAG"], [same, same], ["default"]).cells) == 1
    with pytest.raises(UsageError, match="two different functions are called"):
        expand(["MUTAG"], [same, outer(nn.Dropout(0.9))], ["default"])
