"""Estimators of scikit-learn: what `fit` costs beside the engine, and folds side by side.

scikit-learn's loop fits the same estimator to one fold after the other, in one process or in two.
The trainings are the same but for rounding; the table says how far it takes scores apart.
"""

import statistics
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch
from sklearn import model_selection
from sklearn.model_selection import StratifiedKFold

from gnn_vpa import GraphClassifier, cross_validate
from gnn_vpa.graphs import GraphSet, load
from gnn_vpa.trained import validation_split
from gnn_vpa.training import Lane, Protocol, Task, fit

from ._record import Record

FOLDS = 10
_FIT = {"data": "{}", "epochs": "{}", "engine, s": "{:.2f}", "fit, s": "{:.2f}", "ratio": "{:.2f}x"}
_FOLDS = {
    "data": "{}",
    "epochs": "{}",
    "loop, processes": "{}",
    "loop, s": "{:.1f}",
    "ours, processes": "{}",
    "ours, s": "{:.1f}",
    "ratio": "{:.2f}x",
    "largest difference of scores": "{:.4f}",
}


def report(datasets: Sequence[str], epochs: int, rounds: int, record: Record) -> None:
    """Measure, and write a row for each comparison."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        _fits("MUTAG", 200, rounds, record.table("fit", "GraphClassifier.fit", _FIT).row)
        table = record.table("folds", "cross_validate, ten folds", _FOLDS)
        for name in datasets:
            _cross_validations(name, epochs, table.row)
    finally:
        torch.set_num_threads(before)


def _fits(name: str, epochs: int, rounds: int, row: Callable[..., None]) -> None:
    graphs = load(name)
    data, y = graphs.to_pyg(), graphs.y.numpy()
    split = validation_split(graphs.y)
    lane = Lane(0, split._replace(test=split.valid))
    engine, whole = [], []
    for _ in range(rounds):
        engine.append(_seconds(lambda: _engine(graphs, lane, epochs)))
        classifier = GraphClassifier(epochs=epochs, device="cpu", random_state=0)
        whole.append(_seconds(lambda c=classifier: c.fit(data, y)))
    ours, alone = statistics.median(whole), statistics.median(engine)
    row(name, epochs, alone, ours, ours / alone)


def _engine(graphs: GraphSet, lane: Lane, epochs: int) -> None:
    fit(graphs, Task("gin", "vpa"), Protocol(epochs=epochs), [lane], workers=1)


def _cross_validations(name: str, epochs: int, row: Callable[..., None]) -> None:
    graphs = load(name)
    data, y = graphs.to_pyg(), graphs.y.numpy()
    classifier = GraphClassifier(epochs=epochs, device="cpu", random_state=0)
    cv = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    scores: dict[str, np.ndarray] = {}

    def ours() -> None:
        found = cross_validate(classifier, data, y, cv=cv, n_jobs=2)
        scores["ours"] = found["test_score"]

    def loop(processes: int) -> None:
        found = model_selection.cross_validate(classifier, data, y, cv=cv, n_jobs=processes)
        scores["loop"] = found["test_score"]

    mine = _seconds(ours)
    for processes in (1, 2):
        theirs = _seconds(lambda n=processes: loop(n))
        difference = float(np.abs(scores["ours"] - scores["loop"]).max())
        row(name, epochs, processes, theirs, 2, mine, theirs / mine, difference)


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin
