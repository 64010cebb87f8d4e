from dataclasses import replace

import numpy as np
import pytest

from gnn_vpa.errors import GnnVpaError, UsageError
from gnn_vpa.experiments import PRESETS, Cell, expand, preset, select
from gnn_vpa.nn import MODELS, build_model
from gnn_vpa.paper import published
from gnn_vpa.training import Protocol, Task


def _labels(cells: list[Cell]) -> list[str]:
    return [str(cell) for cell in cells]


def test_the_grid_is_a_product() -> None:
    cells = expand(["MUTAG", "PTC"], ["gin", "gcn"], ["sum", "vpa"], seeds=[0, 1]).cells
    assert len(cells) == len(set(cells)) == 2 * 2 * 2 * 2


def test_repetitions_count_once() -> None:
    cells = expand(["MUTAG", "MUTAG"], ["gin", "GIN"], ["vpa", "vpa"], seeds=[0, 0]).cells
    assert _labels(cells) == ["GIN+vpa on MUTAG"]


def test_every_method_of_the_table_can_be_built() -> None:
    for name, model in MODELS.items():
        for aggr in [*model.aggregations(), "power(0.3)"]:
            build_model(name, 3, 2, aggr)


@pytest.mark.parametrize("name", ["table1", "table-a1"])
def test_a_preset_has_the_cells_of_the_published_table(name: str) -> None:
    ours = {(c.task.model.upper(), c.task.aggr, c.dataset) for c in preset(name)}
    table = published(name)
    assert ours == set(zip(table["model"], table["aggregation"], table["dataset"], strict=True))


def test_presets_follow_the_papers_protocol() -> None:
    for name in PRESETS:
        for cell in preset(name):
            assert (cell.protocol, cell.folds, cell.seed) == (Protocol(200, 64, 1e-3), 10, 0)
            if name != "paper":
                assert cell.task.features == ("degree" if name == "table-a1" else "auto")


def test_curves_are_part_of_table_1() -> None:
    assert set(preset("curves")) < set(preset("table1"))


def test_an_aggregation_that_a_model_does_not_have_is_left_out_and_said() -> None:
    grid = expand(["MUTAG"], ["gin", "gat"], ["max", "default"])
    assert _labels(grid.cells) == ["GIN+max on MUTAG", "GAT on MUTAG"]
    assert [text.split(" (")[0] for text in grid.left_out] == [
        "gin has no aggregation default",
        "gat has no aggregation max",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"datasets": []}, "the grid is empty"),
        ({"models": ["sgc"], "aggrs": ["sum"]}, "grid is empty.*sgc has no aggregation sum"),
        ({"seeds": []}, "the grid is empty"),
        ({"models": ["gim"]}, "model: 'gim' is unknown: did you mean gin?"),
        ({"aggrs": ["median"]}, "aggr: 'median' is unknown"),
        (
            {"baselines": ["knn"]},
            "baseline: 'knn' is unknown: use majority, no_edges, no_features, wl",
        ),
        ({"datasets": ["MUTAGG"]}, "no data set is called 'MUTAGG': did you mean MUTAG?"),
        ({"variant": "painted"}, "variant: 'painted' is unknown"),
        ({"models": ["sgc"], "options": {"depth": 3}}, "option of sgc: 'depth' is unknown"),
        ({"options": {"width": 0}}, "width"),
    ],
)
def test_what_cannot_be_run_is_refused_at_once(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        expand(**{"datasets": ["MUTAG"], **arguments})  # type: ignore[arg-type]


def test_checking_a_grid_draws_no_random_numbers() -> None:
    import torch

    before = torch.random.get_rng_state()
    expand(["MUTAG"], list(MODELS))
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize(
    "other",
    [
        Cell("MUTAG", Task("gin", "vpa"), content="350999e7"),
        Cell("MUTAG", Task("gin", "sum")),
        Cell("MUTAG", Task("gcn", "vpa")),
        Cell("MUTAG", Task("gin", "vpa", "printed")),
        Cell("MUTAG", Task("gin", "vpa", features="ones")),
        Cell("MUTAG", Task("gin", "vpa", options=(("width", 8),))),
        Cell("MUTAG", Task("gin", "vpa"), Protocol(epochs=100)),
        Cell("MUTAG", Task("gin", "vpa"), Protocol(batch_size=32)),
        Cell("MUTAG", Task("gin", "vpa"), Protocol(learning_rate=0.01)),
        Cell("MUTAG", Task("gin", "vpa"), None),
        Cell("MUTAG", Task("gin", "vpa"), folds=5),
        Cell("MUTAG", Task("gin", "vpa"), seed=1),
    ],
)
def test_the_key_tells_apart_whatever_changes_numbers(other: Cell) -> None:
    assert _known(other).key != _known(Cell("MUTAG", Task("gin", "vpa"))).key


def _known(cell: Cell) -> Cell:
    return cell if cell.content else replace(cell, content="5b996644")


def test_the_key_is_for_data_that_are_known() -> None:
    with pytest.raises(GnnVpaError, match=r"GIN\+vpa on MUTAG: the data are not known yet"):
        Cell("MUTAG", Task("gin", "vpa")).key  # noqa: B018


def test_the_key_is_the_same_for_the_same_data_by_any_name() -> None:
    one, other = (Cell(name, Task("gin", "vpa"), content="5b996644") for name in ("X", "Y"))
    assert one.key == other.key


def test_only_takes_models_methods_aggregations_and_data_sets() -> None:
    cells = preset("table1")
    assert len(select(cells, ["gin"])) == 4 * 9
    assert len(select(cells, ["GIN", "sgc", "MUTAG", "ptc_fm"])) == (4 + 2) * 2
    assert _labels(select(cells, ["gin+vpa", "imdb-b"])) == ["GIN+vpa on IMDB-B"]
    assert len(select(cells, ["vpa"])) == 4 * 9


def test_only_refuses_what_it_does_not_know_and_what_is_nothing() -> None:
    with pytest.raises(UsageError, match="--only: 'mutagg' is unknown: did you mean mutag"):
        select(preset("table1"), ["mutagg"])
    with pytest.raises(UsageError, match="the grid is empty: no cell is sgc and max"):
        select(preset("table1"), ["sgc", "max"])


def test_options_are_plain_numbers_whatever_they_came_as() -> None:
    (cell,) = expand(["MUTAG"], aggrs=["vpa"], options={"width": np.int64(8)}).cells
    assert cell.task.options == (("width", 8),)
    assert type(cell.task.options[0][1]) is int


@pytest.mark.parametrize("wrong", ["wide", None, [[8]], True])
def test_an_option_that_is_no_number(wrong: object) -> None:
    with pytest.raises(UsageError, match="width: expected a number"):
        expand(["MUTAG"], options={"width": wrong})
