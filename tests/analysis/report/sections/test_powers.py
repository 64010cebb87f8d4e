"""The section on powers: where there are enough of them, in the page and in Markdown."""

import math
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from gnn_vpa.analysis import render_report, write_markdown
from gnn_vpa.analysis.format import MISSING

MakeFolds = Callable[..., pd.DataFrame]
NOTHING = pd.DataFrame()
POWERS = ("power(0)", "power(0.5)", "power(2)")


def signals(*aggregations: str) -> pd.DataFrame:
    method = {"dataset": "MUTAG", "model": "GCN", "variant": "released", "features": "auto"}
    return pd.DataFrame(
        [
            {**method, "aggregation": name, "layer": f"convs.{layer}", "variance": 2.0 + layer}
            for name in aggregations
            for layer in range(3)
        ]
    )


@pytest.fixture
def folds(make_folds: MakeFolds) -> pd.DataFrame:
    few = {("PTC", "GCN", name): [0.5, 0.6] for name in ("sum", "vpa", *POWERS[:2])}
    many = {("MUTAG", "GCN", name): [0.8, 0.9] for name in ("sum", "max", *POWERS)}
    many["MUTAG", "GCN", "power(2)"] = [math.nan, 0.7]
    return make_folds(many | few | {("MUTAG", "WL", ""): [0.8, 0.9]})


def test_three_powers_of_one_model_on_one_data_set_are_drawn(folds: pd.DataFrame) -> None:
    page = render_report(folds, NOTHING, {}, signals("sum", *POWERS))
    assert '<a href="#powers-1">Powers</a>' in page
    assert page.count("Powers of GCN on MUTAG.") == 1
    assert "Powers of GCN on PTC" not in page  # two powers there
    assert "power(2) 70.0 % (1 of 2 folds), variance 4" in page


def test_two_powers_are_no_section(folds: pd.DataFrame, tmp_path: Path) -> None:
    few = folds[folds["aggregation"] != "power(2)"]
    assert "Powers" not in render_report(few, NOTHING, {}, signals("sum"))
    assert "Powers" not in write_markdown(few, NOTHING, {}, tmp_path / "r.md").read_text("utf-8")


def test_markdown_has_the_same_numbers_as_a_table(folds: pd.DataFrame, tmp_path: Path) -> None:
    made = write_markdown(folds, NOTHING, {}, tmp_path / "r.md", signals("sum", "power(0)"))
    text = made.read_text("utf-8")
    table = text[text.index("## Powers") :].split("\n\n")[2].splitlines()
    assert table[2:] == [
        "| MUTAG | GCN+sum | 0 | 85.0 ± 7.1 | 4 |",
        "| MUTAG | GCN+power(0) | 0 | 85.0 ± 7.1 | 4 |",
        f"| MUTAG | GCN+power(0.5) | 0.5 | 85.0 ± 7.1 | {MISSING} |",
        f"| MUTAG | GCN+power(2) | 2 | 70.0 (1 of 2 folds) | {MISSING} |",
    ]
