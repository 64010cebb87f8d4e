from collections.abc import Callable

import pandas as pd
import pytest

from gnn_vpa.analysis import Setting, shown_settings, split_by_setting
from gnn_vpa.analysis.once import remembering
from gnn_vpa.errors import UsageError


def settings(*frames: pd.DataFrame) -> dict[Setting, int]:
    return {setting: len(part) for setting, part in split_by_setting(pd.concat(frames))}


def test_what_auto_means_is_one_setting_with_auto(make_folds: Callable[..., pd.DataFrame]) -> None:
    """Social sets have nothing but ones; labels are what auto finds in the others."""
    ones = make_folds({("IMDB-B", "GIN", "vpa"): [0.7]}, features="ones")
    labels = make_folds({("MUTAG", "GIN", "vpa"): [0.7]}, features="labels")
    auto = make_folds({("PTC", "GIN", "vpa"): [0.7]})
    assert settings(ones, labels, auto) == {Setting("released", "auto"): 3}


def test_ones_where_there_are_labels_is_another_setting(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    cell = {("MUTAG", "GIN", "vpa"): [0.7]}
    parts = settings(make_folds(cell, features="ones"), make_folds(cell))
    assert parts == {Setting("released", "auto"): 1, Setting("released", "ones"): 1}


def test_the_papers_own_setting_comes_first(make_folds: Callable[..., pd.DataFrame]) -> None:
    cell = {("IMDB-B", "GIN", "vpa"): [0.7]}
    frames = [
        make_folds(cell, variant=v, features=f)
        for v in ("printed", "released")
        for f in ("degree", "auto")
    ]
    assert list(settings(*frames)) == [
        Setting("released", "auto"),
        Setting("released", "degree"),
        Setting("printed", "auto"),
        Setting("printed", "degree"),
    ]


def test_baselines_go_with_every_variant_of_their_features(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    cell = {("MUTAG", "GIN", "vpa"): [0.7]}
    baseline = make_folds({("MUTAG", "WL", ""): [0.8]}, variant="")
    parts = settings(make_folds(cell), make_folds(cell, variant="printed"), baseline)
    assert parts == {Setting("released", "auto"): 2, Setting("printed", "auto"): 2}


def test_baselines_may_stand_alone(make_folds: Callable[..., pd.DataFrame]) -> None:
    assert settings(make_folds({("MUTAG", "WL", ""): [0.8]})) == {Setting("released", "auto"): 1}


def test_nothing_has_no_setting(make_folds: Callable[..., pd.DataFrame]) -> None:
    assert settings(make_folds({("MUTAG", "WL", ""): [0.8]}).iloc[:0]) == {}


def test_a_missing_column_is_named() -> None:
    with pytest.raises(UsageError, match="no column dataset"):
        list(split_by_setting(pd.DataFrame({"model": ["GIN"]})))


def test_appendix_has_the_degree() -> None:
    assert Setting("released", "degree").published_table == "table_a1"


def test_options_and_protocol_set_results_apart(make_folds: Callable[..., pd.DataFrame]) -> None:
    cell = {("MUTAG", "GIN", "vpa"): [0.7]}
    parts = settings(
        make_folds(cell),  # without such columns, as other programs may write them
        make_folds(cell, options="", protocol="3 epochs"),
        make_folds(cell, options="width=8", protocol=""),
        make_folds({("MUTAG", "WL", ""): [0.8]}, variant=""),
    )
    assert parts == {
        Setting("released", "auto"): 2,
        Setting("released", "auto", protocol="3 epochs"): 2,
        Setting("released", "auto", options="width=8"): 2,
    }


def test_a_name_that_reads_like_options_is_not_taken_for_them(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    cell = {("MUTAG", "SGC", "vpa"): [0.7]}
    named, given = make_folds(cell, variant="released, K=5"), make_folds(cell, options="K=5")
    assert len(settings(named, given)) == 2


def test_while_a_report_is_made_a_frame_is_split_once(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    """Parts that are the same frames share what is computed of them."""
    folds = make_folds({("IMDB-B", "GIN", "vpa"): [0.7]})

    def part() -> pd.DataFrame:
        ((_, found),) = shown_settings(folds)
        return found

    assert part() is not part()
    with remembering():
        assert part() is part()
