"""The numbers of an audit as tables: the same in a terminal, in text and on a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ._numbers import MISSING, many, number, percent
from ._record import Audit
from ._structure import Spread


class Table(NamedTuple):
    """A table; the first column has the names of the rows."""

    title: str
    header: tuple[str, ...]
    rows: list[list[str]]
    note: str = ""


def tables(audit: Audit) -> list[Table]:
    """Return the tables that there is something to put in."""
    made = (_rounds, _baselines, _classes, _labels, _graphs, _layers)
    return [table for tables_of in made for table in tables_of(audit)]


def overview(audits: Sequence[Audit]) -> Table:
    """Return several data sets in one table, as many rounds as each has."""
    rows = [
        [
            audit.name,
            f"{audit.graphs:,}",
            f"{audit.last.distinct:,}",
            percent(audit.last.ceiling and audit.last.ceiling.accuracy),
            percent(audit.last.twins and audit.last.twins.share),
            percent(audit.last.twins and audit.last.twins.accuracy),
            percent(max(audit.classes) / audit.graphs if audit.classes else None),
            percent(_best_baseline(audit)),
        ]
        for audit in audits
    ]
    header = ("data set", "graphs", "distinct", "best", "twins", "look-up", "majority", "baseline")
    rounds = audits[0].last.rounds if audits else 0
    return Table(
        f"What networks of {rounds} rounds can do, in percent of the graphs",
        header,
        rows,
        "distinct: told apart by networks of so many rounds. best: what the best of them can have "
        "right. twins: test graphs with a twin in training or validation. look-up: copying its "
        "label. majority: the largest class. baseline: the best of those that were run.",
    )


def _best_baseline(audit: Audit) -> float | None:
    return max((one.mean for one in audit.baselines if one.mean is not None), default=None)


def _rounds(audit: Audit) -> Iterator[Table]:
    header = ("rounds", "distinct", "contradictory", "best", "twins", "look-up")
    rows = [
        [
            str(one.rounds),
            f"{one.distinct:,}",
            MISSING if one.contradictory is None else f"{one.contradictory:,}",
            percent(one.ceiling and one.ceiling.accuracy),
            percent(one.twins and one.twins.share),
            percent(one.twins and one.twins.accuracy),
        ]
        for one in audit.rounds
    ]
    yield Table(
        "What networks can know, by rounds of message passing",
        header,
        rows,
        f"distinct: of {many(audit.graphs, 'graph')}, those told apart. contradictory: graphs that "
        "cannot be told from one of another class. In percent: the best accuracy on all graphs; "
        "test graphs with a twin in training or validation; the accuracy of copying its label, or "
        "guessing the majority class where there is none.",
    )


def _baselines(audit: Audit) -> Iterator[Table]:
    rows = [
        [one.label, percent(one.mean), percent(one.std)]
        if one.reason is None
        else [f"{one.label}: left out, {one.reason}", MISSING, MISSING]
        for one in audit.baselines
    ]
    if rows:
        note = f"Test accuracy in percent over {audit.folds} folds, chosen by validation accuracy."
        yield Table("Without any graph network", ("baseline", "mean", "± std"), rows, note)


def _classes(audit: Audit) -> Iterator[Table]:
    if audit.classes is not None:
        rows = [
            [str(number), f"{count:,}", percent(count / audit.graphs)]
            for number, count in enumerate(audit.classes)
        ]
        yield Table("Classes", ("class", "graphs", "%"), rows)


def _labels(audit: Audit) -> Iterator[Table]:
    if audit.labels is not None:
        rows = [
            [str(number), *(f"{count:,}" for count in label)]
            for number, label in enumerate(audit.labels)
        ]
        yield Table("Labels, by number of graphs", ("label", "0", "1", "missing"), rows)


def _graphs(audit: Audit) -> Iterator[Table]:
    found = audit.structure
    spreads = {"nodes": found.nodes, "edges": found.edges, "in-degree": found.degree}
    yield Table(
        "Sizes of the graphs",
        ("", "least", "median", "mean", "most"),
        [[name, *_spread(spread)] for name, spread in spreads.items()],
        "Edges are directed: an undirected one counts twice.",
    )
    counts = {
        "graphs without nodes": found.empty_graphs,
        "graphs without edges": found.edgeless_graphs,
        "nodes without any edge": found.isolated,
        "nodes that no edge leads to": found.without_messages,
        "self-loops": found.self_loops,
        "parallel edges": found.parallel,
        "pairs with edges one way": found.one_way,
        "columns of node features": audit.columns.width,
        "constant columns": len(audit.columns.constant),
        "different rows of features": audit.columns.kinds,
        "columns of edge attributes": found.edge_attributes,
    }
    rows = [[name, f"{count:,}"] for name, count in counts.items()]
    yield Table("Edges and features", ("", "number"), rows, f"Node features: {audit.features}.")


def _spread(spread: Spread) -> list[str]:
    return [number(value) for value in spread]


def _layers(audit: Audit) -> Iterator[Table]:
    if not audit.variances:
        return
    rows = [
        [str(place), *(f"{number(one.correlated)} ({one.rho:.2f})" for one in layer)]
        for place, layer in enumerate(zip(*audit.variances.values(), strict=True), 1)
    ]
    yield Table(
        "Expected variance by layer (and correlation of messages)",
        ("layer", *audit.variances),
        rows,
        "From features of mean square 1, with weights that keep the variance where the aggregation "
        "does; followed through a sample of the graphs with the correlation that is measured.",
    )
