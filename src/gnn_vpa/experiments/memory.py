"""How much memory a process takes that trains on the CPU, and how many of them that allows."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Self

from ..graphs import GraphSet
from ..host import Host
from ._workers import Team, affordable
from .cell import Cell

# Measured, with a tenth or two to spare: `python -m benchmarks grid` compares both again.
_PROGRAM = 480_000_000  # bytes of a process that has imported all it needs
_OF_NODE, _OF_EDGE = 320, 64  # bytes that refining and training take at their peak
_OF_DATA = 2  # features are read from the data's arrays, and held beside them


class DataSize(NamedTuple):
    """What the memory that a data set needs grows with.

    Attributes:
        nodes: Number of nodes.
        edges: Number of directed edges.
        held: Bytes of the data set itself.

    Example:
        >>> from gnn_vpa.graphs import load
        >>> DataSize.of(load("MUTAG"))[:2]
        (3371, 7442)
    """

    nodes: int
    edges: int
    held: int

    @classmethod
    def of(cls, graphs: GraphSet) -> Self:
        """Look at a data set."""
        return cls(graphs.num_nodes, graphs.num_edges, graphs.nbytes)

    @property
    def trained(self) -> int:
        """Bytes that a training takes at its peak, beside the data set itself."""
        # A self-loop for each node, which some models have, is an edge.
        return self.nodes * (_OF_NODE + _OF_EDGE) + self.edges * _OF_EDGE + self.held * _OF_DATA


def memory_of_process(cells: Iterable[Cell], data: Mapping[str, DataSize]) -> int:
    """Return the bytes that a process takes at its peak which runs any of the cells.

    ``data`` has sizes by content. A process holds the data of all cells, and trains one cell at a
    time.

    Example:
        >>> from gnn_vpa.training import Task
        >>> cell = Cell("RDT-M5K", Task("gin", "vpa"), content="its checksum")
        >>> size = DataSize(nodes=2_542_071, edges=5_947_556, held=44_000_000)
        >>> in_bytes(memory_of_process([cell], {"its checksum": size}))
        '2.0 GB'
    """
    sizes = [data[name] for name in dict.fromkeys(cell.content for cell in cells) if name in data]
    held, trained = sum(size.held for size in sizes), max((s.trained for s in sizes), default=0)
    return _PROGRAM + held + trained


def reason(team: Team, host: Host, need: int) -> str:
    """Say how many processes there are, and why.

    Example:
        >>> reason(Team(4), Host(cores=8, memory=9 * 10**9), need=2_100_000_000)
        '4 processes: 8 cores, memory for 4 (2.1 GB each)'
    """
    count = team.cells * team.folds
    processes = "1 process" if count == 1 else f"{count} processes"
    cores = "1 core" if host.cores == 1 else f"{host.cores} cores"
    if host.memory is None:
        return f"{processes}: {cores}"
    if (fitting := host.memory // need) == 0:
        room = f"it may take {in_bytes(need)} of memory, and {in_bytes(host.memory)} are free"
        return f"{processes}: {cores}, but {room}"
    used = "" if count == affordable(host, need) else f"; {team.folds} for each cell"
    return f"{processes}: {cores}, memory for {fitting} ({in_bytes(need)} each){used}"


def in_bytes(number: int) -> str:
    """Write a number of bytes as people say it.

    Example:
        >>> in_bytes(1_530_000_000), in_bytes(64_000_000)
        ('1.5 GB', '64 MB')
    """
    return f"{number / 1e9:.1f} GB" if number >= 1e9 else f"{number / 1e6:.0f} MB"
