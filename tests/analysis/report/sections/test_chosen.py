import json
import re
from collections.abc import Callable

import pandas as pd

from gnn_vpa.analysis.report import Pictures, parts
from gnn_vpa.analysis.report.sections.chosen import Chosen

Make = Callable[..., pd.DataFrame]
CELL = ("MUTAG", "GIN", "vpa")


def chosen(make_folds: Make, rates: list[float], repeat: int = 0) -> pd.DataFrame:
    folds = make_folds({CELL: [0.8] * len(rates)})
    texts = [json.dumps({"lr": rate}) for rate in rates]
    return folds.assign(chosen=texts, repeat=repeat)


def rows(folds: pd.DataFrame) -> list[list[str]]:
    (part,) = parts(folds, folds[:0])
    html = Chosen().html(part)
    found = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in html.split("<tr>")[2:]]
    text = Chosen().markdown(part, Pictures.__new__(Pictures))
    assert [line.strip("| ").split(" | ") for line in text.splitlines()[6:-1]] == found
    return found


def test_each_setting_with_the_folds_it_was_chosen_in_the_most_frequent_first(
    make_folds: Make,
) -> None:
    assert rows(chosen(make_folds, [0.01, 0.001, 0.001])) == [
        ["MUTAG", "GIN+vpa", "lr=0.001", "2 of 3 folds", "1, 2"],
        ["MUTAG", "GIN+vpa", "lr=0.01", "1 of 3 folds", "0"],
    ]


def test_repeats_are_told_apart(make_folds: Make) -> None:
    both = [chosen(make_folds, [0.01, 0.01], repeat) for repeat in (0, 1)]
    assert rows(pd.concat(both)) == [
        ["MUTAG", "GIN+vpa", "lr=0.01", "4 of 4 folds", "repeat 0: 0, 1; repeat 1: 0, 1"]
    ]


def test_without_a_choice_there_is_no_section(make_folds: Make) -> None:
    folds = make_folds({CELL: [0.8, 0.9]})
    for frame in (folds, folds.assign(chosen=None)):
        (part,) = parts(frame, frame[:0])
        assert Chosen().html(part) == ""
        assert Chosen().markdown(part, Pictures.__new__(Pictures)) == ""
