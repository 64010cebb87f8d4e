"""The section of learning curves: a figure only where there is something to draw."""

import math
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from gnn_vpa.analysis import render_report, write_markdown

Make = Callable[..., pd.DataFrame]
SAID = "No training loss of GIN on PTC was finite, so no curve is drawn: all diverged."


def test_trainings_that_all_diverged_are_named_and_not_drawn(
    make_folds: Make, make_curves: Make, tmp_path: Path
) -> None:
    folds = make_folds({(name, "GIN", "vpa"): [0.8, 0.9] for name in ("MUTAG", "PTC")})
    curves = make_curves(folds, 3)
    curves.loc[curves["dataset"] == "PTC", "train_loss"] = math.nan
    page = render_report(folds, curves, {})
    assert SAID in page
    assert "GIN on PTC, no" not in page
    assert page.count("Training loss of GIN on") == 2  # title and label of one figure
    text = write_markdown(folds, curves, {}, tmp_path / "report.md").read_text("utf-8")
    assert SAID in text
    assert text.count("![Training loss of") == 1
