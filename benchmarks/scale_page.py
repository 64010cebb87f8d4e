"""The page of what more GPUs gain, docs/scale.md, and its figure.

Everything on it is computed from `results/scale/paces.csv` (the pace of each group of
`results/paper` on an H200), from `results/scale/local.csv` (`python -m benchmarks scale`) and by
`experiments.schedule`.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from gnn_vpa.analysis.figures._svg import WIDTH, Scale, element, path, picture, text
from gnn_vpa.experiments import Cell, format_duration, grouped, preset
from gnn_vpa.experiments.estimate import Pace
from gnn_vpa.experiments.schedule import (
    LANES_OF_STEP,
    START_S,
    Outlook,
    doublings,
    expect,
    outlook,
    short_slots,
)
from gnn_vpa.files import write_whole

GPUS = doublings(256)
SEEDS = 93  # of Table 1's 108 cells: some 10,000 cells
_EACH = 3  # processes that shared the GPU when `results/paper` was recorded
SEEN_S = 980  # both tables on one H200, so many processes, as far as they were seen
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, WIDTH - 16, 24, 200
_COLOURS = ("#0072B2", "#D55E00")


_INTRODUCTION = """\
# More processes, GPUs and machines: what to expect

Made by `python -m benchmarks scale --page` from measured times and a simulation. Several GPUs at
once were not seen.

- `--device cuda` uses every GPU that is visible, `--device cuda:0,cuda:2` some. Where NVIDIA's
  multi-process service is installed, a long grid has six processes on each GPU, and the service
  is started for it (`--workers N` asks for another number, `GNN_VPA_MPS=0` turns it off). On a
  CPU there is a process for each core.
- Cells that can share every step are a group. Whoever is free takes the longest group that is
  left; of the processes that share a GPU, one takes short groups first, which are mostly work of
  the host. A group that is longer than its share is divided, where that makes the whole shorter.
- `--plan` says the same of your grid on your host: the time with 1, 2, 4, ... processes or GPUs,
  and what limits it.

![Time against the number of GPUs](img/scale.svg)
"""
_ASSUMED = """\
## What this assumes

- **The paces are those of an H200** in float32, with three processes under the multi-process
  service, as recorded in [results/paper](../results/paper): a GPU is three slots here. The record
  was made in parts; a group that was interrupted counts with its longer seed.
- **One GPU was seen**: {one:.0f} s are expected of both tables, and {seen} s were measured, in
  parts that were added up. With rows in bfloat16, which are usual there now, and six processes one
  GPU took 589 s for all of it.
- **A process is at work after {start:.0f} s**, on every GPU alike, and nothing else is lost
  between hosts.
- **Groups keep their pace** when others run on other GPUs; and a part of a group takes as long as
  if it had {lanes} lanes more than it has (NCI1, 10 and 30 lanes): parts cost more together than
  the whole.
- **Too much rather than too little**: a group of many seeds is taken to cost as much for each cell
  as the paper's groups do, which have fewer lanes; and a group that is alone on its GPU at the end
  as much as beside two others.
"""
_CHECKED = """\
## Checked on one machine

`python -m benchmarks scale` runs a grid of small cells on the CPU with one process, predicts what
several take from its cells' times, and measures it. Processes beyond the cores share them. The
load is the number of programs that wanted a core just before: where it is more than the cores,
cells take another time at every moment. So each run is also simulated with the times that its own
cells took, which checks the schedule alone.
"""
_COLUMNS = (
    *("processes", "cores", "start of a process", "predicted", "simulated", "measured"),
    *("measured / predicted", "measured / simulated", "load before"),
)


class Grid(NamedTuple):
    """A grid, and what is expected of it on each number of GPUs."""

    name: str
    cells: int
    groups: int
    ahead: list[Outlook]

    @classmethod
    def of(cls, name: str, cells: Sequence[Cell], paces: Sequence[Pace]) -> "Grid":
        planned = expect(grouped(cells, "cuda"), paces)
        ahead = [
            outlook(planned, _EACH * gpus, START_S["cuda"], short=short_slots(gpus, _EACH))
            for gpus in GPUS
        ]
        return cls(name, len(cells), len(planned), ahead)


def write_page(root: Path) -> Path:
    """Write the page and its figure into a repository, and return the page."""
    page = root / "docs" / "scale.md"
    of_grids = grids(root)
    write_whole(root / "docs" / "img" / "scale.svg", figure(of_grids))
    write_whole(page, page_text(of_grids, root))
    return page


def grids(root: Path) -> list[Grid]:
    """Return the paper's experiments, and a grid of some 10,000 cells."""
    paces = recorded_paces(root)
    asked = {
        "`reproduce paper`": preset("paper"),
        f"Table 1 with {SEEDS} seeds": preset("table1", seeds=range(SEEDS)),
    }
    return [Grid.of(name, cells, paces) for name, cells in asked.items()]


def recorded_paces(root: Path) -> list[Pace]:
    """Return the paces of the record, which was made in several parts.

    A group that was interrupted has the seconds of its last part alone: so of all seeds the longest
    counts, without what took ten times as long, by an earlier version.
    """
    return [
        Pace(row["dataset"], row["model"], float(row["seconds"]), 1.0, True, row["setting"])
        for row in _rows(root, "paces")
    ]


def page_text(of_grids: Sequence[Grid], root: Path) -> str:
    """Return the page."""
    paper, large = of_grids
    assumed = _ASSUMED.format(
        one=paper.ahead[0].seconds, seen=SEEN_S, start=START_S["cuda"], lanes=LANES_OF_STEP
    )
    header = [f"| {' | '.join(_COLUMNS)} |", "|" + "---|" * len(_COLUMNS)]
    checked = [_CHECKED, *header, *map(_row, _rows(root, "local")), ""]
    return "\n".join([_INTRODUCTION, _table(paper), _table(large), assumed, *checked])


def _table(grid: Grid) -> str:
    ahead = grid.ahead
    rows = [
        f"| {gpus} | {format_duration(each.seconds)} | {ahead[0].seconds / each.seconds:.1f} "
        f"| {each.limit} |"
        for gpus, each in zip(GPUS, ahead, strict=True)
    ]
    title = f"## {grid.name}: {grid.cells:,} cells, {grid.groups} groups"
    header = ["| GPUs | time | times as fast as one | limited by |", "|---|---|---|---|"]
    return "\n".join([title, "", *header, *rows, ""])


def _row(row: Mapping[str, str]) -> str:
    start, predicted, simulated, measured = (
        float(row[name]) for name in ("start", "predicted", "simulated", "measured")
    )
    return (
        f"| {row['processes']} | {row['cores']} | {start:.1f} s | {predicted:.1f} s "
        f"| {simulated:.1f} s | {measured:.1f} s | {measured / predicted:.2f} "
        f"| {measured / simulated:.2f} | {row['load']} |"
    )


def _rows(root: Path, name: str) -> list[dict[str, str]]:
    with (root / "results" / "scale" / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def figure(of_grids: Sequence[Grid]) -> str:
    """Draw the time against the number of GPUs, and what a perfect division would take."""
    times = [[ahead.seconds / 60 for ahead in grid.ahead] for grid in of_grids]
    least = min(min(series) for series in times) / 2
    x = Scale(1.0, float(GPUS[-1]), _LEFT, _RIGHT, log=True)
    y = Scale(least, max(max(series) for series in times) * 1.5, _BOTTOM, _TOP, log=True)
    parts = list(_axes(x, y))
    said = []
    for grid, series, colour in zip(of_grids, times, _COLOURS, strict=True):
        ideal = [(x(n), y(series[0] / n)) for n in GPUS if series[0] / n >= least]
        parts.append(
            element("path", d=path(ideal), fill="none", stroke=colour, stroke_dasharray="3 3")
        )
        points = [(x(n), y(minutes)) for n, minutes in zip(GPUS, series, strict=True)]
        parts.append(element("path", d=path(points), fill="none", stroke=colour, stroke_width=1.8))
        parts += [element("circle", cx=a, cy=b, r=2.6, fill=colour) for a, b in points]
        name = grid.name.strip("`")
        parts.append(text(name, x(2.0) + 6, y(series[1]) - 6, fill=colour))
        said.append(f"{name} from {series[0]:.0f} to {series[-1]:.0f} minutes")
    description = f"{'; '.join(said)}, on 1 to {GPUS[-1]} GPUs; dashed: divided without a loss."
    return picture(_BOTTOM + 36, "Time against the number of GPUs", description, parts) + "\n"


def _axes(x: Scale, y: Scale) -> Iterator[str]:
    for gpus in GPUS[::2]:
        yield text(str(gpus), x(float(gpus)), _BOTTOM + 14, text_anchor="middle")
    yield text("GPUs", (_LEFT + _RIGHT) / 2, _BOTTOM + 30, text_anchor="middle")
    for tick in y.ticks(4):
        line = path([(_LEFT, y(tick)), (_RIGHT, y(tick))])
        yield element("path", d=line, stroke="currentColor", opacity=0.15)
        yield text(f"{tick:g}", _LEFT - 5, y(tick) + 3.5, text_anchor="end")
    middle = (y.start + y.end) / 2
    yield text("minutes", 10, middle, text_anchor="middle", transform=f"rotate(-90 10 {middle:g})")
