"""Claims that the paper's two tables support."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import TYPE_CHECKING

from gnn_vpa.paper import published

from ..format import MISSING, number, p_value, signed
from ..significance import overall_tests
from ..style import DATASETS, method_label
from ..summary import summarise
from ._claim import Claim, Verdict, tally

if TYPE_CHECKING:
    import pandas as pd

Means = Mapping[tuple[str, str, str], float]  # model, aggregation, data set -> percent

SOCIAL, MOLECULES = DATASETS[:5], DATASETS[5:]
_LARGEST_CLASS = dict(zip(SOCIAL, (50.0, 33.3, 50.0, 20.0, 52.0), strict=True))
_LEARNT = 2.0  # points above the largest class
_ALPHA = 0.05
_OTHERS = {
    "GIN": ("sum", "mean", "max"),
    "GCN": ("sum", "mean", "max"),
    "SGC": ("default",),
    "GAT": ("default",),
}


def ours(folds: pd.DataFrame) -> Means:
    """Mean accuracies of one setting."""
    if folds.empty:
        return {}
    cells = summarise(folds)
    cells = cells[cells["folds"] > 0]
    return {(c.model, c.aggregation, c.dataset): float(c.mean) for c in cells.itertuples()}


def papers(table: str) -> Means:
    """Mean accuracies that the paper prints."""
    return {(c.model, c.aggregation, c.dataset): c.mean for c in published(table).itertuples()}


def leads(means: Means, datasets: Iterable[str]) -> dict[str, float]:
    """Vpa's lead over each other method, averaged over those of the data sets that have both."""
    found = {}
    for model, others in _OTHERS.items():
        for other in others:
            pairs = [
                means[model, "vpa", name] - means[model, other, name]
                for name in datasets
                if {(model, "vpa", name), (model, other, name)} <= means.keys()
            ]
            if pairs:
                found[method_label(model, other)] = fmean(pairs)
    return found


def better_on_average(main: Means) -> Claim:
    """Abstract: increased predictive performance."""
    cases = {name: lead > 0 for name, lead in leads(main, DATASETS).items()}
    leading = ", ".join(f"{name} {signed(lead)}" for name, lead in leads(main, DATASETS).items())
    return Claim(
        "VPA leads to increased predictive performance for popular GNN architectures.",
        "Abstract; Table 1, column Avg",
        Verdict.of(list(cases.values())),
        f"vpa's average is above {tally(cases, 'methods of its models')}; its lead in points: "
        f"{leading}. It is the best of its model in {_firsts(main)} columns "
        f"(paper: {_firsts(papers('table1'))}).",
    )


def significant(folds: pd.DataFrame) -> Claim:
    """Results: significantly better in almost all cases."""
    tests = overall_tests(folds) if not folds.empty else None
    wilcoxon, corrected = {}, {}
    if tests is not None:
        for row in tests.itertuples():
            name = method_label(row.model, row.aggregation)
            wilcoxon[name] = bool(row.p_wilcoxon < _ALPHA)
            corrected[name] = bool(row.low > 0)
    return Claim(
        "In almost all cases, VPA significantly outperforms the compared methods.",
        "Results; Table 1, column p",
        Verdict.of(list(wilcoxon.values())),
        f"By the paper's test, p < {_ALPHA} against {tally(wilcoxon, 'methods')}, in the paper "
        "against 8 of 8. By the test that allows for folds sharing training data, against "
        f"{tally(corrected, 'methods')}.",
    )


def cannot_learn(main: Means) -> Claim:
    """Results: mean and max cannot learn from structure alone."""
    cases = _poor(main, ("mean", "max"))
    theirs = _poor(papers("table1"), ("mean", "max"))
    return Claim(
        "GIN and GCN with mean or max aggregation were unable to learn the social network tasks "
        "without additional node features.",
        "Results; Table 1, social data sets",
        Verdict.of(list(cases.values())),
        f"{tally(cases, 'cells')} stay within {_LEARNT:g} points of the largest class's share or "
        f"below it; in the paper {tally(theirs, 'cells')}.",
    )


def can_learn(main: Means) -> Claim:
    """Results: vpa can."""
    cases = {name: not poor for name, poor in _poor(main, ("vpa",)).items()}
    theirs = {name: not poor for name, poor in _poor(papers("table1"), ("vpa",)).items()}
    return Claim(
        "This emphasizes the increased expressivity of VPA compared to these methods.",
        "Results; Table 1, social data sets",
        Verdict.of(list(cases.values())),
        f"With vpa, GIN and GCN are more than {_LEARNT:g} points above the largest class in "
        f"{tally(cases, 'cells')}; in the paper in {tally(theirs, 'cells')}.",
    )


def outperforms(folds: pd.DataFrame, model: str, name: str, where: str) -> Claim:
    """Table 1: a model with vpa against the model as it is."""
    text = f"{name}: the variance-preserving variant outperforms the model as it is."
    tests = overall_tests(folds) if not folds.empty else None
    rows = [] if tests is None else list(tests[tests["model"] == model].itertuples())
    if not rows:
        return Claim(text, where, Verdict.UNTESTED, "Not run.")
    (row,) = rows
    seen = (
        f"vpa's lead is {signed(row.difference)} points, 95 % interval {number(row.low)} to "
        f"{number(row.high)}; p = {p_value(row.p_wilcoxon)}"
    )
    paper = f" (paper: {p_value(row.p_paper)})" if row.p_paper == row.p_paper else ""
    verdict = Verdict.HOLDS if row.low > 0 else Verdict.NOT_SEEN
    if verdict is Verdict.NOT_SEEN and row.p_wilcoxon < _ALPHA:
        verdict = Verdict.PART
    return Claim(text, where, verdict, f"{seen}{paper}.")


def best_on_social(main: Means) -> Claim:
    """Discussion: particularly well on social data sets."""
    return _compared(
        "On the social network data sets, VPA seems to perform particularly well compared to other "
        "methods when no additional node features are introduced.",
        "Discussion; Table 1",
        (leads(main, SOCIAL), leads(main, MOLECULES)),
        (leads(papers("table1"), SOCIAL), leads(papers("table1"), MOLECULES)),
        ("on the social sets", "on the others"),
    )


def less_pronounced(main: Means, appendix: Means, only: str = "") -> Claim:
    """Discussion: with degrees, vpa's advantage is smaller."""
    mine = leads(main, SOCIAL), leads(appendix, SOCIAL)
    theirs = leads(papers("table1"), SOCIAL), leads(papers("table_a1"), SOCIAL)
    if only:
        theirs = {"SGC": theirs[0]["SGC"]}, {"SGC": theirs[1]["SGC"]}
    return _compared(
        "With the node degree as a feature, the advantage of VPA over other methods is less "
        f"pronounced{f' ({only})' if only else ''}.",
        "Discussion; both tables, social data sets",
        mine,
        theirs,
        ("without degrees", "with them"),
    )


def degrees_help(main: Means, appendix: Means) -> Claim:
    """Discussion: degrees help those that cannot count."""
    cases = _helped(main, appendix)
    theirs = _helped(papers("table1"), papers("table_a1"))
    gains = [appendix[key] - main[key] for key in _weak() if key in main and key in appendix]
    mean = f"by {number(fmean(gains))} points on average" if gains else "none was run"
    return Claim(
        "Including the node degree as a feature improves the performance of less expressive GNNs.",
        "Discussion; both tables, social data sets",
        Verdict.of(list(cases.values())),
        f"{tally(cases, 'cells of GIN and GCN with mean and max')} are better with degrees, "
        f"{mean}; in the paper {tally(theirs, 'cells')}.",
    )


def _compared(
    text: str,
    where: str,
    mine: tuple[dict[str, float], dict[str, float]],
    theirs: tuple[dict[str, float], dict[str, float]],
    names: tuple[str, str],
) -> Claim:
    """Claim that leads are larger in one place than in another."""

    def larger(pair: tuple[dict[str, float], dict[str, float]]) -> dict[str, bool]:
        return {name: pair[0][name] > pair[1][name] for name in pair[0] if name in pair[1]}

    def averages(pair: tuple[dict[str, float], dict[str, float]]) -> str:
        both = (signed(fmean(part.values())) if part else MISSING for part in pair)
        return ", ".join(f"{mean} {name}" for mean, name in zip(both, names, strict=True))

    cases = larger(mine)
    return Claim(
        text,
        where,
        Verdict.of(list(cases.values())),
        f"vpa's lead in points, averaged over methods: {averages(mine)} (paper: "
        f"{averages(theirs)}). It is the larger one against {tally(cases, 'methods')}, in the "
        f"paper against {tally(larger(theirs), 'methods')}.",
    )


def _poor(means: Means, aggregations: tuple[str, ...]) -> dict[str, bool]:
    """Which cells on social data sets do no better than to name the largest class."""
    return {
        f"{method_label(model, aggr)} on {name}": means[model, aggr, name] <= share + _LEARNT
        for model in ("GIN", "GCN")
        for aggr in aggregations
        for name, share in _LARGEST_CLASS.items()
        if (model, aggr, name) in means
    }


def _weak() -> list[tuple[str, str, str]]:
    return [(m, a, name) for m in ("GIN", "GCN") for a in ("mean", "max") for name in SOCIAL]


def _helped(main: Means, appendix: Means) -> dict[str, bool]:
    return {
        f"{method_label(*key[:2])} on {key[2]}": appendix[key] > main[key]
        for key in _weak()
        if key in main and key in appendix
    }


def _firsts(means: Means) -> str:
    """Count models and data sets where vpa is the best, or as good as it."""
    rivals: dict[tuple[str, str], dict[str, float]] = {}
    for (model, aggr, name), mean in means.items():
        rivals.setdefault((model, name), {})[aggr] = round(mean, 1)
    complete = [r for r in rivals.values() if "vpa" in r and len(r) > 1]
    return f"{sum(r['vpa'] == max(r.values()) for r in complete)} of {len(complete)}"
