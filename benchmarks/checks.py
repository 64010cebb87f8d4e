"""What the checks of data and results cost, beside the run that they guard.

Checked are: all arrays of a data set when it is read, its content (SHA-256) by which results know
it, and a checkpoint's checksum. A run is GIN+vpa, ten folds, 200 epochs: a few are trained.
"""

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

from gnn_vpa.graphs import load, splits
from gnn_vpa.training import Lane, Protocol, Task, fit

from ._record import Record

DATASETS = ("MUTAG", "IMDB-BINARY", "NCI1", "COLLAB")
_EPOCHS, _CHECKPOINT = 3, 64 << 20  # a checkpoint of ten folds of GIN is some 10 MB


def report(datasets: Sequence[str], record: Record) -> None:
    """Seconds of the checks, of a run, and the share of the former."""
    columns = {
        "data set": "{}",
        "arrays": "{:.1f} ms",
        "content": "{:.1f} ms",
        "a checkpoint": "{:.1f} ms",
        "a run": "{:.0f} s",
        "checks of it": "{:.3f} %",
    }
    table = record.table("checks", "Checks beside a run", columns)
    written = bytes(_CHECKPOINT)
    checksum = _seconds(lambda: hashlib.sha256(written).digest())
    for name in datasets:
        graphs = load(name)
        arrays = _seconds(lambda: replace(graphs))  # noqa: B023 - called at once
        content = _seconds(lambda: replace(graphs).checksum()) - arrays  # noqa: B023
        seconds = _run(name)
        written_in_all = checksum * max(1.0, seconds / 20)  # one every 20 s
        share = (arrays + content + written_in_all) / seconds
        table.row(name, arrays * 1e3, content * 1e3, checksum * 1e3, seconds, 100 * share)


def _run(name: str) -> float:
    graphs = load(name)
    lanes = [Lane(fold, split) for fold, split in enumerate(splits(graphs.y))]
    times: list[float] = []
    fit(graphs, Task("gin", "vpa"), Protocol(_EPOCHS), lanes, workers=1,
        progress=lambda _: times.append(time.perf_counter()))  # fmt: skip
    # Reports come epoch by epoch, group after group; the first ones hold what is prepared.
    return (times[-1] - times[0]) / (len(times) - 1) * len(times) / _EPOCHS * 200


def _seconds(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(5):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return median(taken)
