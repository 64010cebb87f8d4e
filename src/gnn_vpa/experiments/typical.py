"""What a training on a GPU takes of which nothing was seen yet: what is typical of an H200.

A pace that was seen says much of the same data set and little of others: what a small data set
takes on a GPU is mostly the host's work, which compiles and captures, and processes that share a
GPU are each slower than one alone. So what was not seen is expected in proportion to what is
typical.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from .cell import Cell
from .estimate import Kind, Pace, kind_of, paces_of_run, size_of, work_of
from .groups import shares_steps
from .identity import labels
from .memory import DataSize
from .store import query_if_any

# Of one process on an H200: nanoseconds for a node (`estimate.size_of`) of an epoch of one fold,
# and seconds in which the host compiles and captures for a group. Fitted to a record of both of the
# paper's tables in bfloat16, in logarithms and weighted by the root of a group's time: 3,217 s of
# six processes that shared the GPU, each second counted as `mps.gain(6)` / 6 of one process alone.
# All is 721 s by these numbers and 729 s by the record; 89 of 98 groups are right within a factor
# of 2, and all but the two shortest within 3.
_TYPICAL_NS = {"gin": 1.3, "gcn": 1.3, "sgc": 0.5, "gat": 2.9}
_OF_MAX = 2.0  # as much for max as for a linear aggregation
_HOST_S = 1.0
_FACTOR = 3.0
# Seconds for an epoch of one fold, typical and seen, that stand beside what was seen: small data
# sets alone, for which the host works longer than the GPU, do not say how fast the GPU is.
_LITTLE_S = 0.003


class Counts(NamedTuple):
    """What a training's time grows with, of a data set.

    Attributes:
        nodes: Number of nodes.
        edges: Number of directed edges.

    Example:
        >>> Counts(3371, 7442).nodes
        3371
    """

    nodes: int
    edges: int


def typical_paces(
    cells: Iterable[Cell], sizes: Mapping[str, Counts | DataSize], *, gpu: bool = True
) -> list[Pace]:
    """Return what is typical of an H200, for the kinds of these cells; none for one's own models.

    Args:
        cells: The cells.
        sizes: Of data sets by content: for those that were not published.
        gpu: Whether they are trained on GPUs; on a CPU what is typical is right in proportion only.

    Example:
        >>> from gnn_vpa.training import Task
        >>> cells = [Cell("MUTAG", Task("gin", aggr)) for aggr in ("vpa", "sum", "max")]
        >>> [round(pace.seconds * 1e6) for pace in typical_paces(cells, {})]
        [300, 601]
    """
    work: Counter[Kind] = Counter()
    contents: dict[Kind, str] = {}
    for cell in cells:
        work[kind_of(cell)] += work_of(cell)
        contents[kind_of(cell)] = cell.content
    found = (_typical(kind, work[kind], sizes.get(contents[kind]), gpu=gpu) for kind in work)
    return [pace for pace in found if pace is not None]


def typical_of_run(out: str | Path, work: Mapping[Kind, int], device: str) -> list[Pace]:
    """Return what is typical of a run's kinds of cells, by the data that it has; none on the CPU.

    Args:
        out: The run's folder.
        work: How many epochs of one fold there are of each kind.
        device: Where it runs.

    Example:
        >>> work = {("MUTAG", "gin", ""): 2000, ("mine", "gin", ""): 2000}
        >>> len(typical_of_run("no/such/run", work, "cuda"))
        1
    """
    if not shares_steps(device):
        return []
    rows = query_if_any(out, "SELECT content, name, nodes, edges FROM datasets")
    called = labels({row["content"]: row["name"] for row in rows})
    sizes = {called[row["content"]]: Counts(row["nodes"], row["edges"]) for row in rows}
    found = (_typical(kind, work[kind], sizes.get(kind[0])) for kind in work)
    return [pace for pace in found if pace is not None]


def _typical(
    kind: Kind, work: int, known: Counts | DataSize | None, *, gpu: bool = True
) -> Pace | None:
    dataset, model, setting = kind
    size = size_of(dataset, known and (known.nodes, known.edges), gpu=gpu)
    if model not in _TYPICAL_NS or work == 0 or not isfinite(size):
        return None
    seconds = _TYPICAL_NS[model] * 1e-9 * size
    if gpu:
        # Cells of one kind are trained together, mostly.
        seconds = seconds * (_OF_MAX if "max" in setting.split(", ") else 1.0) + _HOST_S / work
    return Pace(dataset, model, seconds, size, gpu, setting, _FACTOR)


def known_paces(
    out: str | Path, cells: Iterable[Cell], device: str, sizes: Mapping[str, Counts | DataSize]
) -> list[Pace]:
    """Return the paces of a run's finished cells; on GPUs also what these let expect of others.

    Example:
        >>> from gnn_vpa.training import Task
        >>> cells = [Cell("MUTAG", Task("gin", "vpa"))]
        >>> [len(known_paces("no/such/run", cells, device, {})) for device in ("cuda", "cpu")]
        [1, 0]
    """
    seen = paces_of_run(out, device)
    return completed(seen, typical_paces(cells, sizes)) if shares_steps(device) else seen


def completed(seen: Sequence[Pace], typical: Sequence[Pace]) -> list[Pace]:
    """Return what was seen, and of other kinds what is typical, as much slower as the seen are.

    Example:
        >>> large = Pace("RDT-B", "gin", 0.4, 1e6, gpu=True)
        >>> typical = [Pace(name, "gin", 0.1, 1e6, gpu=True) for name in ("RDT-B", "COLLAB")]
        >>> [round(pace.seconds, 2) for pace in completed([large], typical)]
        [0.4, 0.39]
    """
    times, kinds = slower(seen, typical), {pace.kind for pace in seen}
    others = [pace for pace in typical if pace.kind not in kinds]
    return [*seen, *(replace(pace, seconds=pace.seconds * times) for pace in others)]


def slower(seen: Sequence[Pace], typical: Sequence[Pace]) -> float:
    """Return how many times as long trainings take as is typical of one process on an H200.

    Example:
        >>> slower([], [])
        1.0
    """
    usual = {pace.kind: pace.seconds for pace in typical}
    both = [(pace.seconds, usual[pace.kind]) for pace in seen if pace.kind in usual]
    return (sum(s for s, _ in both) + _LITTLE_S) / (sum(u for _, u in both) + _LITTLE_S)
