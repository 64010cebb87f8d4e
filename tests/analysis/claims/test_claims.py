"""The paper's claims: its own tables bear them out, and tables that do not are told apart."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from gnn_vpa.analysis import Claim, Verdict, judge_claims
from gnn_vpa.paper import published

KEYS = ["dataset", "model", "aggregation", "variant", "features", "fold", "seed"]
_SETTINGS = (("table1", "auto"), ("table_a1", "degree"))


def _folds(change: Callable[..., float] = lambda cell, _: cell.mean) -> pd.DataFrame:
    """Both tables and SGC with K = 5; ``change`` gives the mean of a published cell."""
    rows = []
    for table, features in _SETTINGS:
        for cell in published(table).itertuples():
            for options in ("", *["K=5"] * (cell.model == "SGC")):
                mean = change(cell, options)
                for fold in range(10):
                    accuracy = (mean + (fold - 4.5) / 10) / 100
                    method = [cell.dataset, cell.model, cell.aggregation, "released", features]
                    rows.append([*method, fold, 0, options, accuracy, "done"])
    return pd.DataFrame(rows, columns=[*KEYS, "options", "test_score", "status"])


def _curves(rates: dict[str, float]) -> pd.DataFrame:
    epochs = np.arange(100)
    parts = []
    for name in ("MUTAG", "PTC"):
        for aggr, rate in rates.items():
            keys = dict(zip(KEYS, [name, "GIN", aggr, "released", "auto", 0, 0], strict=True))
            loss = 0.1 + np.exp(-epochs / rate)
            parts.append(pd.DataFrame({**keys, "epoch": epochs, "train_loss": loss}))
    return pd.concat(parts)


def _about(claims: list[Claim], words: str) -> Claim:
    (found,) = [claim for claim in claims if words in claim.text]
    return found


def test_the_papers_own_numbers_bear_its_claims_out() -> None:
    curves = _curves({"sum": 40.0, "mean": 5.0, "max": 5.0, "vpa": 10.0})
    verdicts = {claim.text: claim.verdict for claim in judge_claims(_folds(), curves)}
    assert set(verdicts.values()) == {Verdict.HOLDS}
    assert len(verdicts) == 14


def test_nothing_is_claimed_of_what_was_not_run() -> None:
    folds = _folds().query("model == 'GIN' and aggregation == 'vpa' and dataset == 'MUTAG'")
    claims = judge_claims(folds, pd.DataFrame())
    tested = [claim.text for claim in claims if claim.verdict is not Verdict.UNTESTED]
    assert len(tested) == 1
    assert "without diverging" in tested[0]


def test_a_vpa_that_is_worse_is_seen() -> None:
    claims = judge_claims(
        _folds(lambda cell, _: cell.mean - 30 * (cell.aggregation == "vpa")), pd.DataFrame()
    )
    for words in ("increased predictive performance", "significantly", "increased expressivity"):
        assert _about(claims, words).verdict is Verdict.NOT_SEEN


def test_sgc_is_judged_with_each_k() -> None:
    claims = judge_claims(
        _folds(lambda cell, options: 40.0 if options == "K=5" else cell.mean), pd.DataFrame()
    )
    assert _about(claims, "SGC, K = 1 as released:").verdict is Verdict.HOLDS
    printed = _about(claims, "SGC, K = 5 as printed:")
    assert printed.verdict is Verdict.NOT_SEEN
    assert "lead is 0.0 points" in printed.seen


def test_mean_that_learns_contradicts_the_claim_that_it_cannot() -> None:
    def change(cell: pd.Series, _: str) -> float:
        return 70.0 if cell.aggregation in ("mean", "max") else cell.mean

    assert _about(judge_claims(_folds(change), pd.DataFrame()), "unable").verdict is (
        Verdict.NOT_SEEN
    )


@pytest.mark.parametrize(
    ("vpa", "verdict"), [(10.0, Verdict.HOLDS), (40.0, Verdict.NOT_SEEN), (80.0, Verdict.NOT_SEEN)]
)
def test_who_is_faster_is_read_off_the_curves(vpa: float, verdict: Verdict) -> None:
    curves = _curves({"sum": 40.0, "mean": 5.0, "max": 5.0, "vpa": vpa})
    assert _about(judge_claims(_folds(), curves), "faster with VPA").verdict is verdict


def test_a_training_that_diverged_contradicts() -> None:
    folds = _folds()
    folds.loc[0, "status"] = "diverged"
    claim = _about(judge_claims(folds, pd.DataFrame()), "without diverging")
    assert claim.verdict is Verdict.NOT_SEEN
    assert claim.seen.startswith("1 of 1960 trainings")


@pytest.mark.parametrize(
    ("true", "verdict"),
    [(8, Verdict.HOLDS), (7, Verdict.HOLDS), (6, Verdict.PART), (4, Verdict.PART), (3, "not seen")],
)
def test_a_verdict_is_a_share_of_cases(true: int, verdict: str) -> None:
    assert Verdict.of([True] * true + [False] * (8 - true)) == verdict


def test_a_claim_from_fewer_folds_says_so() -> None:
    folds = _folds()
    lost = (folds["dataset"] == "MUTAG") & (folds["model"] == "GIN") & (folds["fold"] < 3)
    lost &= (folds["aggregation"] == "sum") & (folds["features"] == "auto")
    folds.loc[lost, "status"] = "diverged"
    claims = judge_claims(folds, pd.DataFrame())
    gap = "Not over all folds: GIN+sum on MUTAG (7 of 10)."
    for words in ("increased predictive", "significantly", "particularly well", "less pronounced."):
        assert gap in _about(claims, words).seen
    assert "Not over all" not in _about(claims, "GAT: ").seen
