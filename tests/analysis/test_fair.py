"""The page of the fair comparison."""

from pathlib import Path

import pandas as pd
import pytest

from gnn_vpa.analysis import fair_folds, write_fair

NCI1, ENZYMES = "splits ea4f74d7c4fe62bb", "splits 71fe4739f3ec7271"
LEADS = {"sum": 0.0, "mean": -0.05, "vpa": 0.02}


def folds(*data: tuple[str, str]) -> pd.DataFrame:
    """Return ten folds of three aggregations on each data set, vpa two points ahead of sum."""
    rows = [
        {
            "dataset": dataset,
            "division": division,
            "model": "GIN",
            "aggregation": name,
            "variant": "released",
            "features": "auto",
            "fold": fold,
            "seed": 0,
            "chosen": f'{{"learning_rate": 0.01, "width": {32 + 32 * (fold % 2)}}}',
            "best_epoch": 7,
            "val_score": 0.8,
            "test_score": 0.8 + lead + (fold % 3) / 100 + len(name) * (fold % 2) / 1000,
            "status": "done",
            "seconds": 1.0,
        }
        for dataset, division in data
        for name, lead in LEADS.items()
        for fold in range(10)
    ]
    return pd.DataFrame(rows)


def test_the_published_rows_stand_among_ours_best_first(tmp_path: Path) -> None:
    page = write_fair(folds(("NCI1", NCI1)), {}, tmp_path).read_text("utf-8")
    ours, theirs = page.index("| **GIN+vpa** | **83."), page.index("| GIN | 80.0 ± 1.4 | published")
    assert ours < theirs < page.index("| **GIN+mean** |")
    assert "| sum | +2.0 |" in page
    assert "lr 0.01, width 32" in page


def test_what_was_not_run_is_said(tmp_path: Path) -> None:
    page = write_fair(folds(("NCI1", NCI1)), {}, tmp_path).read_text("utf-8")
    missing = page.partition("**Not run yet:**")[2].partition("\n")[0]
    assert "COLLAB with node degrees" in missing
    assert "NCI1" not in missing


def test_a_set_without_published_rows_says_so(tmp_path: Path) -> None:
    page = write_fair(folds(("ENZYMES", ENZYMES)), {}, tmp_path).read_text("utf-8")
    assert "No published row is at hand for these splits." in page


@pytest.mark.parametrize("division", ["", "splits 0000000000000000"])
def test_other_splits_have_no_place_in_it(division: str) -> None:
    assert fair_folds(folds(("NCI1", division))).empty


def test_settings_that_were_not_chosen_have_no_place_in_it() -> None:
    assert fair_folds(folds(("NCI1", NCI1)).assign(chosen=None)).empty


def test_every_outer_fold_is_kept(tmp_path: Path) -> None:
    write_fair(folds(("NCI1", NCI1), ("ENZYMES", ENZYMES)), {}, tmp_path)
    kept = pd.read_csv(tmp_path / "results" / "fair" / "folds.csv")
    assert len(kept) == 60
    assert kept["test_score"].between(0.7, 0.9).all()
