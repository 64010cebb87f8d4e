"""Whether vpa is better, in sentences that claim no more than the tests allow.

That is the paper's question. Which aggregation may be the best is asked in `answer`, of all at once
and so more strictly; each sentence here is about one comparison by itself.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .comparison import LIMIT, compare_with_paper
from .format import count, listing, mean_std, noted, p_value, some
from .lead import interval_text, lead_text
from .measure import ACCURACY, Measure, measure, measure_of
from .significance import missing_pairs, overall_tests
from .style import DATASETS, in_order, method_label
from .summary import ONE_CLASS, incomplete, summarise

if TYPE_CHECKING:
    import pandas as pd

_ALPHA = 0.05
_MOST_NAMED = 5
_ABOVE, _BELOW, _UNCLEAR, _UNTESTED = range(4)


def findings(folds: pd.DataFrame) -> list[str]:
    """Say what the results of one setting show, the most important first.

    A difference counts as one where the 95 % confidence interval of the corrected test leaves out
    zero (see `overall_tests`), in either direction.

    Example:
        >>> import pandas as pd
        >>> columns = ["dataset", "model", "aggregation", "variant", "features", "fold", "seed",
        ...            "test_score", "status"]
        >>> rows = [["mine", "GIN", "vpa", "released", "auto", fold, 0, 0.8, "done"]
        ...         for fold in range(2)]
        >>> for sentence in findings(pd.DataFrame(rows, columns=columns)):
        ...     print(sentence)
        GIN+vpa reaches 80.0 ± 0.0 % on mine.
        Only one aggregation was run for each model, so there is nothing to test it against.
    """
    cells = summarise(folds)
    if not cells["folds"].sum():
        return [
            f"No fold has finished with {_article(measure_of(folds))}, so there is nothing to "
            "compare.",
            *_lost(folds),
        ]
    tests = overall_tests(folds)
    if tests.empty:
        sentences = [_best(cells[cells["folds"] > 0], measure_of(folds)), _why_untested(cells)]
    else:
        metric = measure_of(folds)
        sentences = [
            _of_model(part, cells, metric) for _, part in tests.groupby("model", sort=False)
        ]
        if len(sentences) > 1:
            sentences.insert(0, _headline(tests, _words(metric)))
        sentences += _too_small(tests)
    return [*sentences, *_agreement(folds), *_one_class(cells), *_incomplete(cells), *_lost(folds)]


def verdict(low: float, high: float, metric: str = ACCURACY) -> str:
    """What a confidence interval says of vpa's lead, as the end of "vpa is …".

    Example:
        >>> verdict(0.5, 2.0), verdict(-1.0, 1.0), verdict(-2.0, -0.5, "mae")
        ('more accurate than', 'not distinguishable from', 'worse than')
    """
    return _words(measure(metric))[_verdict(low, high)]


def _verdict(low: float, high: float) -> int:
    if math.isnan(low):
        return _UNTESTED
    return _ABOVE if low > 0 else _BELOW if high < 0 else _UNCLEAR


def _words(metric: Measure) -> tuple[str, ...]:
    """Return a verdict in words, by its number."""
    pairs = (f"{metric.better} than", f"{metric.worse} than")
    return (*pairs, "not distinguishable from", "untested against")


def _article(metric: Measure) -> str:
    return f"{'an' if metric.noun[0] in 'aeiouMR' else 'a'} {metric.noun}"


def _headline(tests: pd.DataFrame, words: tuple[str, ...]) -> str:
    verdicts = [_verdict(low, high) for low, high in zip(tests["low"], tests["high"], strict=True)]
    said = [f"{text} {verdicts.count(n)}" for n, text in enumerate(words) if n in verdicts]
    of_all = f" of the {count(len(tests), 'method')} it was compared with"
    return f"vpa is {listing([said[0] + of_all, *said[1:]])}."


def _of_model(tests: pd.DataFrame, cells: pd.DataFrame, metric: Measure) -> str:
    model = tests["model"].iloc[0]
    used = cells[(cells["model"] == model) & (cells["aggregation"] == "vpa") & (cells["folds"] > 0)]
    datasets = in_order(used["dataset"], DATASETS)
    several = len(datasets) > 1
    where = f"over {len(datasets)} data sets" if several else f"on {datasets[0]}"
    claims: dict[int, list[str]] = {}
    for row in tests.itertuples():
        other = "plain " + model if row.aggregation == "default" else row.aggregation
        lead = lead_text(metric, row.difference, row.digits, row.unit)
        if several and row.datasets < len(datasets):
            lead += f" on {row.datasets} of them"
        if said := missing_pairs(row.pairs, row.asked, row.missing):
            lead += f" over {said}"
        effect = f"{other} ({lead}, {_interval(row, metric)})"
        claims.setdefault(_verdict(row.low, row.high), []).append(effect)
    words = enumerate(_words(metric))
    parts = [f"{text} {listing(claims[n])}" for n, text in words if n in claims]
    return f"With {model} {where}, vpa is {'; '.join(parts)}."


def _interval(row: Any, metric: Measure) -> str:
    """The interval of a test, or why there is none."""
    if math.isnan(row.low):
        if row.pairs > row.datasets > 1:
            return "a data set has too few folds that differ for an interval"
        if row.pairs > row.datasets:
            return "the same on every fold, and too few of one sign for an interval"
        return "a single fold has no interval"
    if row.low == row.high:
        of_each = " of a data set" if row.datasets > 1 else ""
        return f"the same on every fold{of_each}, which gives no interval"
    return f"95 % interval {interval_text(metric, row.low, row.high, row.digits)}"


def _too_small(tests: pd.DataFrame) -> list[str]:
    doubtful = tests[(tests["p_wilcoxon"] < _ALPHA) & (tests["p_corrected"] >= _ALPHA)]
    named = [
        f"{method_label(row.model, row.aggregation)} (p = {p_value(row.p_wilcoxon)}, "
        f"corrected {p_value(row.p_corrected)})"
        for row in doubtful.itertuples()
    ]
    if not named:
        return []
    return [
        f"The paper's Wilcoxon test does find vpa better than {listing(named)}; it takes folds for "
        "independent, though they share training data, and the corrected test does not confirm it."
    ]


def _best(cells: pd.DataFrame, metric: Measure) -> str:
    names = in_order(cells["dataset"], DATASETS)
    if len(names) > 1 and metric.has_unit:  # one data set's error is not below another's
        cells = cells[cells["dataset"] == names[0]]
    best = cells.loc[(metric.sign * cells["mean"]).idxmax()]
    method = method_label(best["model"], best["aggregation"])
    score = mean_std(best["mean"], best["std"], best["digits"]) + metric.percent
    what, most = (
        ("", "most accurate") if metric.name == ACCURACY else (f"{_article(metric)} of ", "best")
    )
    reached = f"{method} reaches {what}{noted(score, best['note'])} on {best['dataset']}"
    return f"{reached}." if len(cells) == 1 else f"The {most} cell: {reached}."


def _why_untested(cells: pd.DataFrame) -> str:
    if cells.groupby("model")["aggregation"].nunique().max() == 1:
        return (
            "Only one aggregation was run for each model, so there is nothing to test it against."
        )
    if "vpa" not in set(cells["aggregation"]):
        return "vpa was not run, so the other aggregations have nothing to be tested against."
    return "vpa and the other aggregations have no finished fold in common yet, so none is tested."


def _agreement(folds: pd.DataFrame) -> list[str]:
    judged = compare_with_paper(folds).dropna(subset="within")
    if judged.empty:
        return []
    within = int(judged["within"].astype(bool).sum())
    verb = "is" if 1 in (within, len(judged)) else "are"
    noted = int((judged["note"] != "").sum())
    but = f" {noted} of ours {'is' if noted == 1 else 'are'} incomplete." if noted else ""
    return [
        f"{within} of {count(len(judged), 'number')} that the paper has too "
        f"{verb} within what two such measurements can differ by "
        f"(|z| ≤ {LIMIT}); by chance alone about one in twenty would not be.{but}"
    ]


def _one_class(cells: pd.DataFrame) -> list[str]:
    single = cells[cells["note"].str.startswith(ONE_CLASS)]
    names = in_order(single["dataset"], DATASETS)
    if not names:
        return []
    verb, them = ("has", "it") if len(names) == 1 else ("have", "them")
    return [
        f"{listing(names)} {verb} only one class, so that every method is right there: "
        f"scores on {them} tell nothing, and averages and tests with {them} tell less."
    ]


def _incomplete(cells: pd.DataFrame) -> list[str]:
    """Name the means that are over fewer folds than were asked for, whatever became of those."""
    if not (gaps := incomplete(cells)):
        return []
    return [
        f"Not over all folds: {some(gaps)}. Tests compare only folds that both methods have "
        "finished."
    ]


def _lost(folds: pd.DataFrame) -> list[str]:
    diverged = folds[folds["status"] == "diverged"]
    if diverged.empty:
        return []
    named = [
        f"{method_label(row['model'], row['aggregation'])} on {row['dataset']}, fold {row['fold']}"
        + (f" of repeat {row['repeat']}" if row.get("repeat", 0) else "")
        + (f" at epoch {int(row['diverged_epoch'])}" if _known(row.get("diverged_epoch")) else "")
        for _, row in diverged.head(_MOST_NAMED).iterrows()
    ]
    more = [f"{len(diverged) - _MOST_NAMED} more"] if len(diverged) > _MOST_NAMED else []
    return [
        f"{len(diverged)} of {count(len(folds), 'training')} diverged: the loss was no longer a "
        f"number ({'; '.join(named + more)}). They have no score and are in no mean and no test."
    ]


def _known(value: float | None) -> bool:
    import pandas as pd

    return not pd.isna(value)
