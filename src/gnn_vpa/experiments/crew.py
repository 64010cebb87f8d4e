"""Who trains the cells of a run: how many processes, on which devices, in which order."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path

from ..graphs import GraphSet
from ..host import Host
from ..training import own
from .cell import Cell
from .groups import grouped, shares_steps
from .memory import DataSize, memory_of_process, reason
from .mps import Sharing, Sooner, processes_for
from .progress import Progress
from .schedule import (
    Planned,
    divided,
    expect,
    longest_first,
    part_numbers,
    short_first,
    short_slots,
)
from .standby import Standby
from .store import finished
from .typical import known_paces
from .workers import Order, Team, asked


@dataclass(frozen=True)
class Crew:
    """The processes of a run, each with its order; whoever is free takes the next group.

    Attributes:
        mine: What this process does.
        others: What processes beside it do.
        is_watched: Whether this process trains nothing before the others have left.
        environment: Variables of the others.

    Example:
        >>> from pathlib import Path
        >>> Crew(Order([], Path("runs/none"), None, "cpu")).others
        []
    """

    mine: Order
    others: Sequence[Order] = field(default_factory=list)
    is_watched: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def gather(
    order: Order,
    devices: Sequence[str],
    data: Mapping[str, GraphSet],
    workers: int | Team | None,
    progress: Progress,
    sooner: Sooner | None = None,
) -> Iterator[Crew]:
    """Divide an order among processes, and say why so many.

    Args:
        order: What is to be done.
        devices: Where, see `resolve_devices`.
        data: The data, by content.
        workers: Number of processes, on each GPU where there are any; or how they share the work.
        progress: Told what was decided.
        sooner: What was begun for it before data were read, see `ahead`.

    Example:
        >>> from pathlib import Path
        >>> order = Order([], Path("runs/none"), None, "cpu")
        >>> with gather(order, ["cpu"], {}, 1, Progress()) as crew:
        ...     crew.mine.folds
        1
    """
    for model in dict.fromkeys(cell.task.model for cell in order.cells if cell.task.source):
        if (why := own.elsewhere(model)) is not None:
            if devices == ["cpu"] or len(devices) > 1:
                progress.note(f"1 process: {model} cannot be shared with others, {why}")
            yield Crew(order)
            return
    if shares_steps(order.device):
        with _on_gpus(order, devices, data, workers, progress, sooner or Sooner()) as crew:
            yield crew
    else:
        yield _on_cores(order, data, workers, progress)


def _on_cores(
    order: Order,
    data: Mapping[str, GraphSet],
    workers: int | Team | None,
    progress: Progress,
) -> Crew:
    if isinstance(workers, Team):
        team = workers
    elif workers or asked():
        team = Team.of("cpu", len(order.cells), workers)
    else:
        host, need = Host.here(), memory_of_process(order.cells, _sizes(data))
        team = Team.of("cpu", len(order.cells), host=host, need=need)
        progress.note(reason(team, host, need))
    cells = order.cells
    if team.cells > 1:
        cells = _cells(longest_first(_expected(order, data)))
    mine = replace(order, cells=cells, folds=team.folds)
    return Crew(mine, [mine] * (team.cells - 1))


@contextmanager
def _on_gpus(
    order: Order,
    devices: Sequence[str],
    data: Mapping[str, GraphSet],
    workers: int | Team | None,
    progress: Progress,
    sooner: Sooner,
) -> Iterator[Crew]:
    planned = _expected(order, data)
    wanted = _wanted(workers, order.cells)
    with sooner.shared_gpus(devices, planned, wanted, progress.note) as sharing:
        # Where a GPU has several processes, all GPUs have their first before one has a second.
        slots = [device for _ in range(sharing.processes) for device in devices]
        parts, ways = planned, [order.cells]
        if len(slots) > 1:
            short = short_slots(len(devices), sharing.processes)
            parts = longest_first(divided(planned, len(slots), short))
            order = replace(order, cells=_cells(parts))
            ways = [order.cells] * (len(slots) - short)
            ways += [_cells([parts[n] for n in short_first([s for _, s in parts])])] * short
        if len(parts) > len(planned):
            order = replace(order, parts=part_numbers(parts))
        slots = slots[: len(parts)]
        if len(devices) > 1 and not sharing.is_served:
            progress.note(f"{_processes(len(slots))}: one group at a time on {', '.join(devices)}")
        orders = [
            replace(order, cells=way, device=device, sharing=sharing.processes)
            for device, way in zip(slots, ways, strict=False)
        ]
        if sharing.is_served:
            yield Crew(order, orders, True, sharing.environment)
        else:
            yield Crew(orders[0], orders[1:])


@contextmanager
def ahead(
    cells: Sequence[Cell], out: str | Path, devices: Sequence[str], workers: int | Team | None
) -> Iterator[tuple[Standby, Sooner]]:
    """Start what lets processes share a GPU, and the processes, while data are read.

    Whether several are going to share one is told by what is known of the data without them. Where
    a part of the cells is finished it is not known which, and nothing is started.

    Example:
        >>> with ahead([], "runs/none", ["cpu"], workers=4) as (standby, sooner):
        ...     standby.dismiss()
    """
    with Standby() as standby, Sooner() as sooner:
        if cells and shares_steps(devices[0]) and not finished(out):
            planned = expect(grouped(cells, devices[0]))
            known = [each for each in planned if isfinite(each.seconds)]
            wanted = _wanted(workers, cells)
            if processes_for(devices, known, wanted) > 1:

                def start(sharing: Sharing) -> None:
                    if sharing.is_served:
                        standby.fill(sharing.processes * len(devices), sharing.environment)

                sooner.begin(devices, known, wanted, start)
        yield standby, sooner


def _wanted(workers: int | Team | None, cells: Sequence[Cell]) -> int | None:
    """Return how many processes are asked for on each GPU, if any number is."""
    wanted = workers.cells if isinstance(workers, Team) else workers or asked()
    return None if wanted is None else min(wanted, len(cells))


def _processes(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"


def _expected(order: Order, data: Mapping[str, GraphSet]) -> list[Planned]:
    groups, sizes = grouped(order.cells, order.device), _sizes(data)
    paces = known_paces(order.out, order.cells, order.device, sizes)
    return expect(groups, paces, sizes, gpu=shares_steps(order.device))


def _sizes(data: Mapping[str, GraphSet]) -> dict[str, DataSize]:
    return {content: DataSize.of(graphs) for content, graphs in data.items()}


def _cells(planned: Sequence[Planned]) -> list[Cell]:
    return [cell for group, _ in planned for cell in group.cells]
