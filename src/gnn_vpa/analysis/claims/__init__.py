"""What the paper claims and its tables and figure support, each with a verdict from our results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from ..format import some
from ..settings import Setting, split_by_setting
from ..summary import incomplete, summarise
from . import _accuracy, _curves
from ._claim import Claim as Claim
from ._claim import Verdict as Verdict

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Claim", "Verdict", "judge_claims"]

_MAIN, _APPENDIX = Setting("released", "auto"), Setting("released", "degree")
_MAIN_5, _APPENDIX_5 = replace(_MAIN, options="K=5"), replace(_APPENDIX, options="K=5")


def judge_claims(folds: pd.DataFrame, curves: pd.DataFrame) -> list[Claim]:
    """Return the paper's claims about its experiments, one by one, with what we saw.

    A claim holds where at least seven of eight cases are as it says, and in part where half of them
    are.

    Args:
        folds: a row for each finished training, of both tables and SGC with K = 5, or some of it.
        curves: their learning curves; may be empty.

    Example:
        >>> import pandas as pd
        >>> columns = ["dataset", "model", "aggregation", "variant", "features", "fold", "seed",
        ...            "test_score", "status"]
        >>> rows = [["MUTAG", "GIN", aggr, "released", "auto", fold, 0, accuracy, "done"]
        ...         for aggr, accuracy in (("sum", 0.7), ("vpa", 0.8)) for fold in range(5)]
        >>> claims = judge_claims(pd.DataFrame(rows, columns=columns), pd.DataFrame())
        >>> claims[0].verdict.value, claims[-1].seen
        ('holds', '0 of 10 trainings diverged.')
    """
    parts = dict(split_by_setting(folds))
    nothing = folds.iloc[:0]
    main, appendix = parts.get(_MAIN, nothing), parts.get(_APPENDIX, nothing)
    of_main = {} if curves.empty else dict(split_by_setting(curves))
    losses = _curves.mean_losses(of_main.get(_MAIN, curves.iloc[:0]))
    ours, degrees = _accuracy.ours(main), _accuracy.ours(appendix)
    printed = parts.get(_MAIN_5, nothing), parts.get(_APPENDIX_5, nothing)
    table = "Table 1"
    of_sgc, of_gat = main[main["model"] == "SGC"], main[main["model"] == "GAT"]
    claims = {
        _accuracy.better_on_average(ours): [main],
        _accuracy.significant(main): [main],
        _accuracy.cannot_learn(ours): [main],
        _accuracy.can_learn(ours): [main],
        _accuracy.outperforms(of_sgc, "SGC", "SGC, K = 1 as released", table): [of_sgc],
        _accuracy.outperforms(printed[0], "SGC", "SGC, K = 5 as printed", table): [printed[0]],
        _accuracy.outperforms(of_gat, "GAT", "GAT", table): [of_gat],
        _accuracy.best_on_social(ours): [main],
        _accuracy.degrees_help(ours, degrees): [main, appendix],
        _accuracy.less_pronounced(ours, degrees): [main, appendix],
        _accuracy.less_pronounced(
            _accuracy.ours(printed[0]), _accuracy.ours(printed[1]), only="SGC, K = 5 as printed"
        ): printed,
        _curves.faster_than_sum(losses): [main],
        _curves.slow_with_sum(losses): [main],
        _curves.none_diverged(folds): [],
    }
    return [_with_gaps(claim, seen_in) for claim, seen_in in claims.items()]


def _with_gaps(claim: Claim, parts: Iterable[pd.DataFrame]) -> Claim:
    """Say of a claim's numbers which of them are over fewer folds than were asked for."""
    gaps = [gap for part in parts if not part.empty for gap in incomplete(summarise(part))]
    if not gaps or claim.verdict is Verdict.UNTESTED:
        return claim
    return replace(claim, seen=f"{claim.seen} Not over all folds: {some(gaps)}.")
