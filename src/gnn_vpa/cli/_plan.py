"""What ``--plan`` shows: what would run, how much of it at once, and how long it will take."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from ..experiments import (
    Cell,
    Estimate,
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
    resolve_devices,
    time_models,
)
from ..experiments.estimate import kind_of
from ..experiments.groups import shares_steps
from ..experiments.kept import check_no_model
from ..experiments.memory import DataSize, memory_of_process, reason
from ..experiments.places import Places, Slots
from ..experiments.schedule import Planned, doublings, expect
from ..experiments.typical import known_paces
from ..experiments.workers import asked
from ..host import Host
from ._console import complain, print_table, progress, prose, say
from ._options import check_out

_FAR = 3.0  # within what factor another machine's paces are trusted
_MOST_ROWS = 12  # methods that are shown one by one; more are summed up by data set


def show_plan(
    cells: Sequence[Cell],
    out: Path,
    data_dir: Path | None,
    device: str,
    *,
    workers: int | None = None,
    slots: Slots | None = None,
    fresh: bool = False,
) -> None:
    """Show what is done and what would run, without training more than a moment.

    Args:
        cells: What was asked for.
        out: Folder of the run.
        data_dir: A folder to look for data in first.
        device: Where to train.
        workers: Number of processes, on GPUs on each of them.
        slots: What a cluster has; None: this host alone.
        fresh: Whether what is finished is trained anew.
    """
    check_out(out)
    check_no_model(out)
    devices = resolve_devices(device) if slots is None else [slots.device]
    device = devices[0]
    is_here = slots is None or not shares_steps(device) or resolve_device("auto") != "cpu"
    with progress("Looking at the data"):
        found = identify(cells, data_dir, dataset_names(out))
    for note in found.notes:
        complain(note)
    done, cells = set() if fresh else finished(out), found.cells
    rest = [cell for cell in cells if cell.key not in done]
    if not rest:
        say(f"All {len(cells)} cells are finished, in {out}.")
        return
    contents = {cell.content for cell in rest}
    sizes = {name: DataSize.of(data) for name, data in found.data.items() if name in contents}
    paces, basis = known_paces(out, rest, device, sizes), "from the cells that are finished"
    is_timed = not paces_of_run(out, device)
    if is_timed:
        basis = "as an H200 would take" if paces else "from a few epochs on the smallest data set"
        basis += "" if is_here else ": no GPU is here to tell"
        kinds = {pace.kind for pace in paces}
        others = [cell for cell in rest if kind_of(cell) not in kinds]
        if is_here and others:
            with progress("Training each model for a moment to see how quick it is here"):
                paces += time_models(others, data_dir=data_dir, device=device)
    # On the CPU cells are trained one by one; those that are alike are shown in one row there too.
    groups = grouped(rest, "cuda")
    with progress("Looking at the data"):
        wanted = list(_needs(groups, found, device if is_here else None))
    host, need = Host.here(), memory_of_process(rest, sizes)
    team = Team.of(device, len(rest), workers, host, need)
    rows = [_Row.of(*of_group, paces) for of_group in zip(groups, wanted, strict=True)]
    named = "what"
    if len(rows) > _MOST_ROWS:
        rows, named = _by_dataset(rows), "data set"
    if len(rows) > 1:
        rows.append(_Row.total("total", rows))
    header = [named, "cells", "trainings", "at once", "memory", "one process"]
    print_table(f"What would run on {', '.join(devices)}", header, [row.shown() for row in rows])
    planned = expect(grouped(rest, device), paces) if paces else []
    places = Places.of(devices, planned, team, workers, slots, is_timed=is_timed)
    expected = estimate(rest, paces)
    if expected.is_known:
        here = places.outlook(planned, places.count)
        factor = expected.factor if is_here else max(expected.factor, _FAR)
        expected = Estimate(here.seconds, factor)
        if len(planned) > 1:
            _show_outlook(planned, places)
    before = len(cells) - len(rest)
    kept = f"{before:,} of {len(cells):,} cells are finished. " if before else ""
    time = f"{expected}, {basis}" if expected.is_known else "no data set is here to tell"
    if device == "cpu" and slots is None and not workers and asked() is None and sizes:
        prose(f"{reason(team, host, need)}.")
    left = f"{len(rest):,} {'cell' if len(rest) == 1 else 'cells'}"
    prose(f"{kept}{left} would run{places}: {time}.")


def _show_outlook(planned: Sequence[Planned], places: Places) -> None:
    counts = sorted({*doublings(max(8, 2 * places.count)), places.count})
    lines = [
        [
            f"{count} (here)" if count == places.count else str(count),
            format_duration(ahead.seconds),
            ahead.limit,
        ]
        for count in counts
        for ahead in [places.outlook(planned, count)]
    ]
    print_table("What more of them would do", [places.unit, "time", "limited by"], lines)


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
    def of(cls, group: Group, needs: Needs | None, paces: Sequence[Pace]) -> "_Row":
        trainings = sum(cell.trainings for cell in group.cells)
        expected = estimate(group.cells, paces)
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
    groups: Sequence[Group], found: Identified, device: str | None
) -> Iterator[Needs | None]:
    """Yield what each group needs; None where that cannot be known: no data, training or device."""
    for group in groups:
        graphs = found.data.get(group.content)
        yield None if graphs is None or device is None else needs(group, graphs, device)
