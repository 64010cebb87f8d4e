"""What ``--plan`` shows: what would run, how much of it at once, and how long it will take."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ..experiments import (
    Cell,
    Group,
    Identified,
    Needs,
    Pace,
    Team,
    calibrate,
    dataset_names,
    duration,
    estimate,
    finished,
    grouped,
    identify,
    needs,
    resolve_device,
    seen,
)
from ._console import complain, print_table, progress, say
from ._options import check_out


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
    paces, basis = seen(out, device), "from the cells that are finished"
    if not paces:
        with progress("Training each model for a moment to see how quick it is here"):
            paces = calibrate(rest, data_dir=data_dir, device=device)
        basis = "from a few epochs on the smallest data set"
    team = Team.of(device, len(rest))
    workers = team.cells * team.folds
    # On the CPU cells are trained one by one; those that are alike are shown in one row there too.
    groups = grouped(rest, "cuda")
    wanted = list(_needs(groups, found, device))
    rows = [_row(group, asked, paces, workers) for group, asked in zip(groups, wanted, strict=True)]
    header = ["what", "cells", "trainings", "at once", "memory", "time"]
    print_table(f"What would run on {device}", header, rows)
    before = len(cells) - len(rest)
    kept = f"{before} of {len(cells)} cells are finished. " if before else ""
    side = f" in {workers} processes" if workers > 1 else ""
    time = f"{estimate(rest, paces, workers)}, {basis}" if paces else "no data set is here to tell"
    say(f"{kept}{len(rest)} cells would run{side}: {time}.")


def _needs(groups: Sequence[Group], found: Identified, device: str) -> Iterator[Needs | None]:
    """Yield what each group needs; None where that cannot be known: no data, or no training."""
    for group in groups:
        graphs = found.data.get(group.content)
        yield None if graphs is None or group.protocol is None else needs(group, graphs, device)


def _row(group: Group, asked: Needs | None, paces: Sequence[Pace], workers: int) -> list[str]:
    trainings = sum(cell.folds for cell in group.cells)
    at_once = ["-", "-"] if asked is None else [str(asked.lanes), str(asked)]
    time = duration(estimate(group.cells, paces, workers).seconds) if paces else "-"
    return [str(group), str(len(group.cells)), str(trainings), *at_once, time]
