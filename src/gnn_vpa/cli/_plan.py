"""What ``--plan`` shows: what would run, how much of it at once, and how long it will take."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from ..experiments import (
    Cell,
    Group,
    Identified,
    Needs,
    Pace,
    Team,
    dataset_names,
    estimate,
    finished,
    format_duration,
    grouped,
    identify,
    needs,
    paces_of_run,
    resolve_device,
    time_models,
)
from ..experiments.memory import DataSize, memory_of_process, reason
from ..experiments.workers import asked
from ..host import Host
from ._console import complain, print_table, progress, say
from ._options import check_out

_MOST_ROWS = 12  # methods that are shown one by one; more are summed up by data set


def show_plan(cells: Sequence[Cell], out: Path, data_dir: Path | None, device: str) -> None:
    """Show what is done and what would run, without training more than a moment."""
    check_out(out)
    device = resolve_device(device)
    with progress("Looking at the data"):
        found = identify(cells, data_dir, dataset_names(out))
    for note in found.notes:
        complain(note)
    done, cells = finished(out), found.cells
    rest = [cell for cell in cells if cell.key not in done]
    if not rest:
        say(f"All {len(cells)} cells are finished, in {out}.")
        return
    paces, basis = paces_of_run(out, device), "from the cells that are finished"
    if not paces:
        with progress("Training each model for a moment to see how quick it is here"):
            paces = time_models(rest, data_dir=data_dir, device=device)
        basis = "from a few epochs on the smallest data set"
    # On the CPU cells are trained one by one; those that are alike are shown in one row there too.
    groups = grouped(rest, "cuda")
    sizes: dict[str, DataSize] = {}
    with progress("Looking at the data"):
        wanted = list(_needs(groups, found, device, sizes))
    host, need = Host.here(), memory_of_process(rest, sizes)
    team = Team.of(device, len(rest), host=host, need=need)
    workers = team.cells * team.folds
    rows = [_Row.of(*of_group, paces, workers) for of_group in zip(groups, wanted, strict=True)]
    named = "what"
    if len(rows) > _MOST_ROWS:
        rows, named = _by_dataset(rows), "data set"
    if len(rows) > 1:
        rows.append(_Row.total("total", rows))
    header = [named, "cells", "trainings", "at once", "memory", "time"]
    print_table(f"What would run on {device}", header, [row.shown() for row in rows])
    before = len(cells) - len(rest)
    kept = f"{before:,} of {len(cells):,} cells are finished. " if before else ""
    side = f" in {workers} processes" if workers > 1 else ""
    expected = estimate(rest, paces, workers)
    time = f"{expected}, {basis}" if expected.is_known else "no data set is here to tell"
    if device == "cpu" and asked() is None and sizes:
        say(f"{reason(team, host, need)}.")
    say(f"{kept}{len(rest):,} cells would run{side}: {time}.")


@dataclass(frozen=True)
class _Row:
    """A line of the plan; None is what cannot be told."""

    what: str
    dataset: str
    cells: int
    trainings: int
    needs: Needs | None
    seconds: float | None

    @classmethod
    def of(cls, group: Group, needs: Needs | None, paces: Sequence[Pace], workers: int) -> "_Row":
        trainings = sum(cell.trainings for cell in group.cells)
        expected = estimate(group.cells, paces, workers)
        seconds = expected.seconds if expected.is_known else None
        dataset = group.cells[0].data
        return cls(str(group), dataset, len(group.cells), trainings, needs, seconds)

    @classmethod
    def total(cls, what: str, rows: Sequence["_Row"]) -> "_Row":
        """Sum rows up; of what they need at once the most counts."""
        times = [row.seconds for row in rows if row.seconds is not None]
        return cls(
            what,
            what,
            sum(row.cells for row in rows),
            sum(row.trainings for row in rows),
            max((row.needs for row in rows if row.needs), key=attrgetter("memory"), default=None),
            sum(times) if times else None,
        )

    def shown(self) -> list[str]:
        at_once = ["-", "-"] if self.needs is None else [str(self.needs.lanes), str(self.needs)]
        time = "-" if self.seconds is None else format_duration(self.seconds)
        return [self.what, f"{self.cells:,}", f"{self.trainings:,}", *at_once, time]


def _by_dataset(rows: Sequence[_Row]) -> list[_Row]:
    parts: dict[str, list[_Row]] = {}
    for row in rows:
        parts.setdefault(row.dataset, []).append(row)
    return [_Row.total(name, part) for name, part in parts.items()]


def _needs(
    groups: Sequence[Group], found: Identified, device: str, sizes: dict[str, DataSize]
) -> Iterator[Needs | None]:
    """Yield what each group needs; None where that cannot be known: no data, or no training.

    The sizes of the data sets that are here are noted in `sizes`.
    """
    for group in groups:
        graphs = found.data.get(group.content)
        if graphs is not None:
            sizes[group.content] = DataSize.of(graphs)
        yield None if graphs is None else needs(group, graphs, device)
