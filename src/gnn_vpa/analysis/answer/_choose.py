"""From the folds of one setting to choices: a model on each data set, and over all of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..format import listing, number
from ..measure import Measure, measure_of
from ..relative import percents
from ..resampled import corrected_mean
from ..rounding import usual
from ..settings import Setting
from ..style import BASELINES, DATASETS, MODELS, in_order
from ..summary import ONE_CLASS, decimals, fold_scores, summarise, tested_per_trained
from ._choice import Candidate, Choice
from ._contest import Folds, contest, leading
from ._default import default
from ._entrants import Entrants, entrants
from ._surer import dominated, surer
from ._words import called

if TYPE_CHECKING:
    import pandas as pd

CEILING = "ceiling"


def choices(
    setting: Setting,
    folds: pd.DataFrame,
    signals: pd.DataFrame | None = None,
    ceiling: Mapping[str, float] | None = None,
) -> Iterator[Choice]:
    """Yield, for each model, the choice over all data sets and that on each of them.

    With one data set there is one choice. Baselines are no candidates: their scores are lines.
    """
    scores, metric, digits = fold_scores(folds), measure_of(folds), decimals(folds)
    shares, cells = tested_per_trained(folds), summarise(folds)
    asked = cells.set_index(["model", "dataset"])["asked"].groupby(level=[0, 1]).max()
    single = set(cells.loc[cells["note"].str.contains(ONE_CLASS), "dataset"])
    ceilings = ceiling or {}
    networks = scores[~scores["model"].isin(BASELINES)]
    for model in in_order(networks["model"], MODELS):
        of_model = networks[networks["model"] == model]
        own = None if signals is None else signals[signals["model"] == model]
        found = []
        for name in in_order(of_model["dataset"], DATASETS):
            rows = of_model[of_model["dataset"] == name]
            entered = entrants(name, rows, int(asked[model, name]), shares[name], metric.sign)
            if name in single:
                said = f"On {name} there is only one class, so that every method is right."
                entered = replace(entered, cautions=(*entered.cautions, said))
            found.append(entered)
        alone = [
            _on_one(
                setting, model, metric, entered, own, scores, ceilings.get(entered.dataset),
                digits[entered.dataset],
            )
            for entered in found
        ]  # fmt: skip
        if len(found) > 1:
            yield _over_all(setting, model, metric, found, own, alone, percents(of_model))
        yield from alone


def _on_one(
    setting: Setting,
    model: str,
    metric: Measure,
    entered: Entrants,
    signals: pd.DataFrame | None,
    scores: pd.DataFrame,
    ceiling: float | None,
    digits: int,
) -> Choice:
    of_set = scores[scores["dataset"] == entered.dataset]
    baselines = {
        name: part.set_index(["repeat", "fold"])["score"]
        for name, part in of_set[of_set["model"].isin(BASELINES)].groupby("model")
    }
    lines = {BASELINES[name]: float(part.mean()) for name, part in baselines.items()}
    if ceiling is not None:
        lines[CEILING] = metric.scale * ceiling
    found = Choice(
        setting, model, (entered.dataset,), len(entered.folds.scores), entered.folds.repeats, (),
        left_out=entered.left_out, cautions=entered.cautions, lines=lines,
        digits=digits,
    )  # fmt: skip
    found = _compared(found, entered.names, [entered.folds], signals)
    if not found.candidates:
        return found
    leader = of_set[
        (of_set["model"] == model) & (of_set["aggregation"] == found.candidates[0].name)
    ].set_index(["repeat", "fold"])["score"]
    share = entered.folds.test_per_train
    said = [_beside(found, BASELINES[n], leader, part, share) for n, part in baselines.items()]
    return replace(found, cautions=(*found.cautions, *filter(None, said)))


def _over_all(
    setting: Setting,
    model: str,
    metric: Measure,
    found: Sequence[Entrants],
    signals: pd.DataFrame | None,
    alone: Sequence[Choice],
    percent: Mapping[tuple[str, str], float],
) -> Choice:
    datasets = tuple(entered.dataset for entered in found)
    names = [name for name in found[0].names if all(name in entered.names for entered in found)]
    everywhere = dict.fromkeys(name for entered in found for name in entered.names)
    for entered in found:
        everywhere |= dict.fromkeys(name for name, _ in entered.left_out)
    left_out = [
        (name, f"no comparison on {listing([e.dataset for e in found if name not in e.names])}")
        for name in everywhere
        if name not in names
    ]
    data = []
    for entered in found:
        columns = [entered.names.index(name) for name in names]
        scores = entered.folds.scores[:, columns]
        if metric.has_unit:
            scores = percent[model, entered.dataset] * scores
        data.append(replace(entered.folds, scores=scores))
    whole = Choice(
        setting, model, datasets, sum(len(folds.scores) for folds in data),
        max(folds.repeats for folds in data), (), left_out=tuple(left_out),
        digits=1 if metric.has_unit else max(choice.digits for choice in alone),
        relative=metric.has_unit,
    )  # fmt: skip
    whole = _compared(whole, names, data, signals)
    said = [
        *_flattered(whole, found),
        _everywhere(alone, whole),
        dominated(whole, names, datasets, data),
    ]
    return replace(whole, cautions=(*whole.cautions, *filter(None, said)))


def _compared(
    choice: Choice, names: Sequence[str], data: Sequence[Folds], signals: pd.DataFrame | None
) -> Choice:
    """Fill in the candidates, the default, and what would make it surer."""
    if not names or any(not len(folds.scores) for folds in data):
        return choice
    sign = choice.measure.sign
    candidates = [
        Candidate(
            name, sign * found.mean, found.cost, found.low, found.high, found.half, float(share),
            found.beaten,
        )
        for name, found, share in zip(names, contest(data), leading(data), strict=True)
    ]  # fmt: skip
    order = sorted(range(len(names)), key=lambda i: candidates[i].cost)
    choice = replace(choice, candidates=tuple(candidates[i] for i in order))
    if not choice.is_compared:
        return choice
    taken, why = default(choice.may_be_best, choice.datasets, signals, choice.tied)
    return replace(choice, default=taken, why=why, surer=surer(choice, names, data))


def _beside(
    choice: Choice, baseline: str, leader: pd.Series, theirs: pd.Series, share: float
) -> str:
    """Say of a baseline that the best network does not beat it; nothing where it does."""
    lead = choice.measure.sign * (leader - theirs).dropna()
    estimate = corrected_mean(lead.to_numpy(), share, size=usual(leader, theirs))
    low, high = estimate.interval()
    if math.isnan(low) or low > 0:
        return ""
    (best,) = called(choice, [choice.candidates[0].name])
    score = number(choice.lines[baseline], choice.digits) + choice.measure.percent
    if high < 0:
        lead_text = f"{number(-estimate.mean, choice.digits)} {choice.unit}"
        return f"{baseline} ({score}) is better than {best} by {lead_text}."
    return f"Not even {best} is shown to be better than the baseline “{baseline}” ({score})."


def _flattered(whole: Choice, found: Sequence[Entrants]) -> Iterator[str]:
    """Say of which candidates an average is without some trainings, and where."""
    for candidate in whole.candidates:
        where = [entered.dataset for entered in found if candidate.name in entered.flattered]
        if where:
            (name,) = called(whole, [candidate.name])
            yield f"On {listing(where)} {name} is without some trainings, which may flatter it."


def _everywhere(alone: Sequence[Choice], whole: Choice) -> str:
    """Say whether one aggregation will do on all data sets."""
    compared = [choice for choice in alone if choice.is_compared]
    if len(compared) < 2:
        return ""
    both = [
        name for name in whole.may_be_best if all(name in choice.may_be_best for choice in compared)
    ]
    if both:
        return f"On every data set {listing(called(whole, both))} may be the best."
    return (
        "No aggregation may be the best on every data set: each is beaten on some, so choose by "
        "data set."
    )
