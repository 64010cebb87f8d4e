"""Every fold as a dot: what the means and standard deviations are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from gnn_vpa.errors import UsageError
from gnn_vpa.paper import Accuracy

from ...aggregations import ordered
from .._published import published_cell
from ..format import mean_std, noted, number
from ..measure import Measure, measure_of
from ..style import BASELINES, MODELS, SHORT_NAMES, colour, in_order, method_label
from ..summary import decimals, fold_scores, only_setting, summarise
from ._svg import WIDTH, Scale, element, label, path, picture, room, text

if TYPE_CHECKING:
    import pandas as pd

_RIGHT, _TOP, _ROW = WIDTH - 12, 26, 21
_NARROWEST = 74  # of the room at the left for the methods' names
_DIVERGED = 62  # room at the right for the words "10 diverged"


def fold_dots(folds: pd.DataFrame) -> str:
    """Test scores on one data set: a dot a fold, a bar at the mean, the paper's beside it.

    Args:
        folds: the rows of one data set and setting.

    Returns:
        The figure as SVG text.

    Example:
        >>> import pandas as pd
        >>> columns = ["dataset", "model", "aggregation", "variant", "features", "fold", "seed",
        ...            "test_score", "status"]
        >>> rows = [["MUTAG", "GIN", "vpa", "released", "auto", fold, 0, 0.8 + fold / 100, "done"]
        ...         for fold in range(10)]
        >>> fold_dots(pd.DataFrame(rows, columns=columns)).count("<circle")
        11
    """
    scores = fold_scores(folds)
    datasets = scores["dataset"].unique().tolist()
    if len(datasets) != 1:
        raise UsageError(
            f"expected the folds of one data set, got {len(datasets)}: "
            "select with folds[folds.dataset == ...]"
        )
    table, metric = only_setting(folds).published_table, measure_of(folds)
    methods = [
        (model, aggregation)
        for model in in_order(scores["model"], MODELS)
        for aggregation in ordered(scores.loc[scores["model"] == model, "aggregation"])
    ]
    papers = [published_cell(table, *method, datasets[0]) for method in methods]
    left = room((_label(method) for method in methods), _NARROWEST)
    x = _scale(scores, [paper for paper in papers if paper], left)
    bottom = _TOP + _ROW * len(methods)
    digits = decimals(folds)[datasets[0]]

    def show(score: float) -> str:
        return number(score, digits) + metric.percent

    parts = [*_axis(x, bottom, metric), *_legend(any(papers), left)]
    descriptions = []
    by_method = scores.set_index(["model", "aggregation"])
    notes = {(cell.model, cell.aggregation): cell.note for cell in summarise(folds).itertuples()}
    for index, (method, paper) in enumerate(zip(methods, papers, strict=True)):
        rows, top = by_method.loc[[method]], _TOP + _ROW * index
        if index and _group(method) != _group(methods[index - 1]):
            parts.append(_rule(top))
        parts += _method(method, rows, paper, x, top + _ROW / 2, show)
        values = rows["score"].dropna()
        spread = (
            mean_std(values.mean(), values.std(), digits) if len(values) else "no finished fold"
        )
        descriptions.append(noted(f"{method_label(*method)} {spread}", notes[method]))
    title = f"Test {metric.noun} of each fold on {datasets[0]}"
    means = "In percent" if metric.is_share else "Means"
    return picture(bottom + 36, title, f"{means}: {', '.join(descriptions)}.", parts)


def _method(
    method: tuple[str, str],
    rows: pd.DataFrame,
    paper: Accuracy | None,
    x: Scale,
    y: float,
    show: Callable[[float], str],
) -> Iterator[str]:
    yield label(_label(method), x.start - 8, y + 4, x.start - 8, text_anchor="end")
    if paper is not None:
        yield from _paper(paper, x, y + 6.5)
    yield from _folds(rows, method[1], x, y - 2, show)
    if (lost := int(rows["diverged"].sum())) > 0:
        yield text(f"{lost} diverged", _RIGHT, y + 2, text_anchor="end")


def _label(method: tuple[str, str]) -> str:
    name = method_label(*method)
    return SHORT_NAMES.get(name, name)


def _group(method: tuple[str, str]) -> str:
    return "" if method[0] in BASELINES else method[0]


def _scale(scores: pd.DataFrame, papers: list[Accuracy], left: float) -> Scale:
    right = _RIGHT - (_DIVERGED if scores["diverged"].any() else 0)
    ends = [end for p in papers for end in (p.mean - p.std, p.mean + p.std)]
    values = [*scores["score"].dropna(), *ends]
    if not values:
        return Scale(0.0, 100.0, left, right)
    margin = 0.04 * (max(values) - min(values)) or 0.01 * abs(values[0]) or 0.5
    return Scale(min(values) - margin, max(values) + margin, left, right)


def _axis(x: Scale, bottom: float, metric: Measure) -> Iterator[str]:
    for tick in x.ticks():
        line = path([(x(tick), _TOP), (x(tick), bottom)])
        yield element("path", d=line, stroke="currentColor", opacity=0.15)
        yield text(f"{tick:g}", x(tick), bottom + 14, text_anchor="middle")
    name = axis_name(metric)
    yield text(name, (x.start + x.end) / 2, bottom + 30, text_anchor="middle")


def axis_name(metric: Measure) -> str:
    """What stands below an axis of scores; where lower is better it says so."""
    name = f"test {metric.noun}" + (", %" if metric.is_share else "")
    return name if metric.higher_is_better else f"{name} (lower is better)"


def _rule(y: float) -> str:
    return element("path", d=path([(0, y), (_RIGHT, y)]), stroke="currentColor", opacity=0.3)


def _folds(
    rows: pd.DataFrame, aggregation: str, x: Scale, y: float, show: Callable[[float], str]
) -> Iterator[str]:
    finished = rows.dropna(subset="score")
    several = finished["repeat"].nunique() > 1
    for repeat, fold, score in zip(
        finished["repeat"], finished["fold"], finished["score"], strict=True
    ):
        # Folds of equal score would hide each other, so each has a height of its own.
        offset = ((fold * 3) % 10 - 4.5) * 0.9
        of_repeat = f" of repeat {repeat}" if several else ""
        yield element(
            "circle",
            element("title", f"fold {fold}{of_repeat}: {show(score)}"),
            cx=x(score),
            cy=y + offset,
            r=2.6,
            fill=colour(aggregation),
            class_=f"area {aggregation or 'default'}",
            fill_opacity=0.75,
        )
    if len(finished):
        mean = x(float(np.mean(finished["score"])))
        yield _bar(mean, y)


def _bar(x: float, y: float) -> str:
    line = path([(x, y - 7), (x, y + 7)])
    return element("path", d=line, stroke="currentColor", stroke_width=2.2)


def _paper(paper: Accuracy, x: Scale, y: float) -> Iterator[str]:
    span = path([(x(paper.mean - paper.std), y), (x(paper.mean + paper.std), y)])
    yield element("path", d=span, stroke="currentColor", opacity=0.55)
    yield _diamond(x(paper.mean), y)


def _diamond(x: float, y: float) -> str:
    corners = path([(x - 3.2, y), (x, y - 3.2), (x + 3.2, y), (x, y + 3.2)], closed=True)
    return element("path", d=corners, class_="hollow", fill="none", stroke="currentColor")


def _legend(with_paper: bool, left: float) -> Iterator[str]:
    yield element("circle", cx=left + 4, cy=10, r=2.6, opacity=0.75)
    yield text("a fold", left + 11, 14)
    yield _bar(left + 62, 10)
    yield text("mean", left + 69, 14)
    if with_paper:
        line = path([(left + 112, 10), (left + 132, 10)])
        yield element("path", d=line, stroke="currentColor", opacity=0.55)
        yield _diamond(left + 122, 10)
        yield text("paper, ± std", left + 137, 14)
