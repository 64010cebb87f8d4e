"""The section of tests: what a sign means, and folds that do not differ."""

import math
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from gnn_vpa.analysis import render_report, write_markdown

Make = Callable[..., pd.DataFrame]
SUM, VPA = (("mine", "GIN", name) for name in ("sum", "vpa"))
SCORES = [0.80, 0.81, 0.79, 0.82, 0.78, 0.80, 0.81, 0.79, 0.82, 0.78]


def _written(folds: pd.DataFrame, folder: Path) -> str:
    return write_markdown(folds, pd.DataFrame(), {}, folder / "report.md").read_text("utf-8")


def test_markdown_says_what_the_sign_of_an_error_means(make_folds: Make, tmp_path: Path) -> None:
    folds = make_folds({SUM: SCORES, VPA: SCORES[1:] + SCORES[:1]})
    said = "vpa's lead is positive where its MAE is the lower."
    assert said not in _written(folds, tmp_path)
    assert said in _written(folds.assign(metric="mae", higher_is_better=False), tmp_path)


def test_equal_folds_have_no_interval(make_folds: Make, tmp_path: Path) -> None:
    folds = make_folds({SUM: SCORES, VPA: SCORES})
    page, written = render_report(folds, pd.DataFrame(), {}), _written(folds, tmp_path)
    for text in (page, written):
        assert "0.0 to 0.0" not in text
        assert "have the same score on every fold" in text
    assert "<td>0.0</td>\n<td>\N{EN DASH}</td>" in page
    assert "| 0.0 | \N{EN DASH} |" in written
    assert "inf" not in [cell.strip() for cell in written.replace("\n", "|").split("|")]
    assert ">inf<" not in page
    assert 'd="Minf' not in page
    assert 'd="M-inf' not in page


def test_pairs_that_stand_for_fewer_trainings_say_so(make_folds: Make, tmp_path: Path) -> None:
    first = make_folds({SUM: SCORES, VPA: SCORES[::-1]})
    second = make_folds({SUM: [math.nan, *SCORES[1:]], VPA: SCORES}, seed=1)
    folds = pd.concat([first, second])
    assert "<td>10 of 10, 1 training missing</td>" in render_report(folds, pd.DataFrame(), {})
    assert "| 10 of 10, 1 training missing |" in _written(folds, tmp_path)
    assert "| 10 |" in _written(first, tmp_path)
    assert "<td>10</td>" in render_report(first, pd.DataFrame(), {})
