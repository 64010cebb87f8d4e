"""Seconds per epoch: of a cell of ours by `fit` alone, and of one fold of the peer."""

import math
import statistics
import time
from collections.abc import Iterator, Sequence
from itertools import islice

import torch
from torch_geometric.data import Batch

from gnn_vpa.graphs import GraphSet, splits
from gnn_vpa.training import Lane, Protocol, Task, fit

from .peer import Peer

TASK = Task("gin", "vpa")
FOLDS = 10


def lanes_of(graphs: GraphSet, count: int = FOLDS) -> list[Lane]:
    """Return so many trainings: the ten folds, then the same with the next seed, and so on."""
    parts = splits(graphs.y, FOLDS)
    return [Lane(i % FOLDS, parts[i % FOLDS], seed=i // FOLDS) for i in range(count)]


class Cell:
    """Lanes of ours, trained for few epochs and for more: the difference is that of the epochs.

    On the CPU as many processes share them as the peer has threads. These take seconds to start:
    few epochs are as many as those that are measured, so that all are at work in both.

    Args:
        graphs: The data set.
        lanes: What is trained at once.
        device: Where.
        seconds: About how long the measured epochs shall take, at most the protocol's 200.
        epochs: How many they are, in the place of that.
    """

    def __init__(
        self,
        graphs: GraphSet,
        lanes: Sequence[Lane],
        device: str,
        seconds: float = 6.0,
        epochs: int | None = None,
    ) -> None:
        self._graphs, self._lanes, self._device = graphs, lanes, device
        self.first = self.run(1)  # whatever is compiled or looked up once is paid here
        self.epochs = epochs or self._enough(seconds)
        self._few = self.epochs if device == "cpu" else 1
        self._short: list[float] = []
        self._long: list[float] = []

    def run(self, epochs: int) -> float:
        """Return the seconds of a training from start to outcome."""
        synchronise(self._device)
        begin = time.perf_counter()
        protocol, threads = Protocol(epochs=epochs), torch.get_num_threads()
        fit(self._graphs, TASK, protocol, self._lanes, device=self._device, workers=threads)
        synchronise(self._device)
        return time.perf_counter() - begin

    def measure(self) -> "Cell":
        """Add a measurement to those that the medians are taken of."""
        self._short.append(self.run(self._few))
        self._long.append(self.run(self._few + self.epochs))
        return self

    @property
    def epoch(self) -> float:
        """Seconds of an epoch of all lanes, validation and test included."""
        return (statistics.median(self._long) - statistics.median(self._short)) / self.epochs

    @property
    def preparation(self) -> float:
        """Seconds of a training that are not an epoch's."""
        return max(statistics.median(self._short) - self._few * self.epoch, 0.0)

    def _enough(self, seconds: float) -> int:
        one, three = self.run(1), self.run(3)
        # Where preparing takes longer than epochs their difference is noise: a bound from below.
        epoch = max((three - one) / 2, three / 100)
        return min(max(math.ceil(seconds / epoch), 1), Protocol().epochs)


def peer_epoch(peer: Peer, seconds: float = 6.0) -> float:
    """Return the seconds of an epoch of one fold of the peer, validation and test included.

    Where an epoch would take longer than ``seconds``, as many of its steps are timed, and their
    seconds per graph are taken for all of its graphs.
    """
    graphs = len(peer.loader.dataset)
    peer.train(islice(peer.loader, 3))
    peer.judge()
    synchronise(peer.device)
    begin, seen = time.perf_counter(), 0

    def some() -> Iterator[Batch]:
        nonlocal seen
        for batch in peer.loader:
            seen += batch.num_graphs
            yield batch
            if time.perf_counter() - begin > seconds:
                break

    peer.train(some())
    synchronise(peer.device)
    trained = time.perf_counter()
    peer.judge()
    synchronise(peer.device)
    return (trained - begin) * graphs / seen + time.perf_counter() - trained


def synchronise(device: str) -> None:
    """Wait until the device has done what it was asked for."""
    if device != "cpu":
        torch.cuda.synchronize()
