"""What is to be said about a data set, in sentences: what matters first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ._baselines import MOST_GRAPHS
from ._numbers import listing, many, number, percent
from ._record import Finding

if TYPE_CHECKING:
    from ._record import Audit, Round

# Beyond these a finding matters; below, it is told behind the others.
_LOW_CEILING = 0.95
_MANY_TWINS = 0.05
_LOPSIDED = 1.5  # members of the largest class to one of the smallest
_FEW_TESTED = 50  # graphs of a test fold
_FAR = 10.0  # factor by which a variance has changed
_LARGE_INPUT = 10.0  # mean square of the features
_ROUNDING = 1e-9  # by which factors of the same variance may differ
_COUNTING = ("sum", "vpa")  # tell numbers of equal neighbours apart


def findings(audit: Audit) -> tuple[Finding, ...]:
    """Return all sentences that hold: first those that matter, each half in the order below."""
    found = [finding for tell in _SENTENCES for finding in tell(audit)]
    return tuple(sorted(found, key=lambda finding: not finding.matters))


def _not_finite(audit: Audit) -> Iterator[Finding]:
    if audit.not_finite:
        count = len(audit.not_finite)
        text = (
            f"{many(count, 'graph')} {'has a feature' if count == 1 else 'have features'} that "
            f"{'is' if count == 1 else 'are'} not finite (number {listing(audit.not_finite)}): "
            "left out here, and refused by a run."
        )
        yield Finding("not finite", text, matters=True)


def _untold(audit: Audit) -> Iterator[Finding]:
    for text in audit.untold:
        yield Finding("not told", f"{text[0].upper()}{text[1:]}.", matters=True)


def _ceiling(audit: Audit) -> Iterator[Finding]:
    best, alike = audit.last.ceiling, audit.last.contradictory
    if best is None or alike is None or best.right == best.graphs:
        return
    text = (
        f"No message-passing network of up to {many(best.rounds, 'round')} can be right about more "
        f"than {percent(best.accuracy)} % of the graphs: {alike:,} of {best.graphs:,} cannot be "
        "told from a graph of another class."
    )
    if audit.structure.edge_attributes:
        text += " Edge attributes, which may tell more, do not count here."
    yield Finding("ceiling", text, matters=best.accuracy < _LOW_CEILING)


def _twins(audit: Audit) -> Iterator[Finding]:
    twins = audit.last.twins
    if twins is not None and twins.found:
        text = (
            f"{percent(twins.share)} % of the test graphs have a twin in training or validation: "
            f"a look-up table scores {percent(twins.accuracy)} %, the majority class "
            f"{percent(_majority(audit))} %."
        )
        coarse = max((one for one in audit.rounds if one.twins), key=_looked_up)
        if _looked_up(coarse) > twins.accuracy:
            text += (
                f" A coarser one, after {many(coarse.rounds, 'round')}, scores "
                f"{percent(_looked_up(coarse))} %."
            )
        yield Finding("twins", text, matters=twins.share >= _MANY_TWINS)


def _classes(audit: Audit) -> Iterator[Finding]:
    if audit.classes is None or len(audit.classes) < 2:
        return
    largest, smallest = max(audit.classes), min(audit.classes)
    if largest >= _LOPSIDED * smallest:
        text = (
            f"The classes are uneven: the largest of {len(audit.classes)} has "
            f"{percent(_majority(audit))} % of the graphs, the smallest "
            f"{percent(smallest / audit.graphs)} %."
        )
        yield Finding("classes", text, matters=True)


def _few_tested(audit: Audit) -> Iterator[Finding]:
    if audit.folds is not None and (tested := audit.graphs / audit.folds) < _FEW_TESTED:
        text = (
            f"A test fold has about {many(round(tested), 'graph')}: one graph is "
            f"{100 / tested:.1f} points of a fold's accuracy."
        )
        yield Finding("few graphs", text, matters=True)


def _baselines(audit: Audit) -> Iterator[Finding]:
    scores = {one.name: one for one in audit.baselines if one.mean is not None}
    if not scores:
        if audit.folds is not None and audit.graphs > MOST_GRAPHS:
            text = f"With more than {MOST_GRAPHS:,} graphs baselines are run on request alone."
            yield Finding("baselines", text, matters=False)
        return
    best = max(scores.values(), key=lambda one: one.mean or 0)
    text = f"The best baseline scores {percent(best.mean)} % ({best.label})."
    if best.name == "no_edges":
        text += " It sees no edges: look whether a graph network does better."
    if best.name == "no_features" and not audit.columns.tell_nothing:
        text += " It sees no features: look whether they help a graph network."
    if best.name == "majority":
        text += " Nothing does better than guessing."
    yield Finding("baselines", text, matters=True)


def _rounds(audit: Audit) -> Iterator[Finding]:
    counts = [one.distinct for one in audit.rounds]
    enough, last = counts.index(counts[-1]), len(counts) - 1
    if last == 0:
        return
    if enough == last and counts[-1] < audit.graphs:
        text = f"Round {last} still tells graphs apart: more rounds may tell more."
    elif enough == 0 and counts[0] == audit.graphs:
        text = "Node features and sizes alone tell all graphs apart."
    elif enough == 0:
        text = "Edges tell no graphs apart that node features and sizes do not."
    elif enough < last:
        text = f"{many(enough, 'round')} of message passing tell as many graphs apart as {last}."
        text = text.replace("1 round of message passing tell", "1 round of message passing tells")
    else:
        return
    yield Finding("rounds", text, matters=enough == 0 and counts[0] < audit.graphs)


def _variances(audit: Audit) -> Iterator[Finding]:
    if not audit.variances:
        return
    last = {aggr: layers[-1].correlated for aggr, layers in audit.variances.items()}
    layers = len(next(iter(audit.variances.values())))
    rho = next(iter(audit.variances.values()))[0].rho
    # Where all nodes are equal, mean and max keep the variance, and nothing else.
    choice = [aggr for aggr in last if not audit.columns.tell_nothing or aggr in _COUNTING] or last
    away = {aggr: abs(math.log(max(last[aggr], 1e-300))) for aggr in choice}
    least = min(away.values())
    nearest = [aggr for aggr in choice if away[aggr] <= least + _ROUNDING]
    whose = " of those that count neighbours" if audit.columns.tell_nothing else ""
    said = f"{listing(nearest)}{whose} {'stays' if len(nearest) == 1 else 'stay'} nearest to 1"
    if len(nearest) == len(choice) > 1:
        said = f"{listing(nearest)}{whose} stay as near to 1 as each other"
    text = (
        f"From a variance of 1, {many(layers, 'layer')} are expected to lead to "
        + listing([f"{number(value)} with {aggr}" for aggr, value in last.items()], most=len(last))
        + f" (messages into a node have a correlation of {rho:.2f} at first): {said}."
    )
    far = any(not 1 / _FAR <= value <= _FAR for value in last.values())
    yield Finding("variance", text, matters=far)


def _features(audit: Audit) -> Iterator[Finding]:
    columns = audit.columns
    if columns.tell_nothing:
        text = (
            "All nodes have the same features, and mean and max keep them equal wherever there is "
            f"a neighbour: only aggregations that count, like {listing(_COUNTING)}, see the edges."
        )
        yield Finding("features", text, matters=True)
    elif columns.constant:
        names = listing(columns.constant)
        text = (
            f"{many(len(columns.constant), 'column')} of {columns.width} of the node features "
            f"(number {names}, from 0) {'is' if len(columns.constant) == 1 else 'are'} the same "
            "for all nodes."
        )
        yield Finding("features", text, matters=False)
    if columns.dense and columns.mean_square > _LARGE_INPUT:
        text = (
            f"Node features are large: up to {number(columns.largest)}, with a mean square of "
            f"{number(columns.mean_square)}; a network starts from that unless they are scaled."
        )
        yield Finding("scale", text, matters=True)


def _edges(audit: Audit) -> Iterator[Finding]:
    found = audit.structure
    silent = found.without_messages - found.isolated
    for count, noun, what in (
        (found.empty_graphs, "graph", "without any node"),
        (found.edgeless_graphs - found.empty_graphs, "graph", "without any edge"),
        (found.isolated, "node", "without any edge"),
        (silent, "node", "that no edge leads to: aggregations give 0 there"),
        (found.self_loops, "self-loop", ""),
        (found.parallel, "parallel edge", "beyond the first between the same nodes"),
        (found.one_way, "pair", "of nodes with edges in one direction alone"),
    ):
        if count:
            verb = "is" if count == 1 else "are"
            text = f"There {verb} {many(count, noun)} {what}".rstrip()
            yield Finding("edges", f"{text}.", matters=False)


def _looked_up(one: Round) -> float:
    return one.twins.accuracy if one.twins is not None else 0.0


def _majority(audit: Audit) -> float:
    return max(audit.classes or (0,)) / audit.graphs


_SENTENCES: tuple[Callable[[Audit], Iterator[Finding]], ...] = (
    _not_finite,
    _untold,
    _ceiling,
    _twins,
    _classes,
    _few_tested,
    _baselines,
    _features,
    _variances,
    _rounds,
    _edges,
)
