"""Training: ten folds of GIN+vpa as lanes of ours, against a plain PyG loop for each fold.

Both sides train the same model by the same protocol, judge validation and test graphs after every
epoch, and have the same losses (tests/benchmarks/test_peer.py). They take turns; medians count.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch_geometric.data import Data

from gnn_vpa.errors import GnnVpaError
from gnn_vpa.graphs import GraphSet, Split, features, load
from gnn_vpa.training import Lane, Protocol

from . import products
from ._cell import FOLDS, Cell, lanes_of, peer_epoch
from ._memory import peak_of
from ._record import Record
from .peer import GIN, MANNERS, Manner, Peer, pyg_graphs

DATASETS = ("NCI1", "IMDB-BINARY", "COLLAB", "REDDIT-BINARY", "MUTAG")
PARTS = {
    "cpu": ("cells", "memory", "growth", "products", "demo"),
    "cuda": ("cells", "whole", "lanes", "memory", "growth", "demo"),
}


class Settings(NamedTuple):
    """What is measured, and how long."""

    device: str = "cpu"
    datasets: Sequence[str] = DATASETS
    parts: Sequence[str] = PARTS["cpu"]
    seconds: float = 6.0  # for each measurement
    rounds: int = 3  # turns that the contenders take
    epochs: int | None = None  # measured ones, in the place of as many as fit into the seconds
    lanes: Sequence[int] = (1, 10, 40)
    manners: Sequence[str] | None = None  # of the peer; all that the device has


def report(settings: Settings, record: Record) -> None:
    """Measure the parts that are asked for, one after the other."""
    settings = settings._replace(datasets=_present(settings.datasets, record))
    for part in settings.parts:
        _MEASURES[part](settings, record)


def cells(settings: Settings, record: Record) -> None:
    """One epoch of a ten-fold cell: the peer's one fold times ten, against ours."""
    columns = {
        "data set": "{}",
        "peer": "{}",
        "peer, ten folds": "{:.3f} s",
        "ours, ten folds": "{:.4f} s",
        "faster": "{:.1f}x",
        "our preparation": "{:.2f} s",
        "our first call": "{:.2f} s",
    }
    table = record.table("cells", "An epoch of ten folds of GIN+vpa", columns)
    threads = torch.get_num_threads()
    for graphs in map(load, settings.datasets):
        ours = _cell(settings, graphs, lanes_of(graphs))
        peers = _peers(graphs, settings)
        times: dict[Manner, list[float]] = {manner: [] for manner in peers}
        for _ in range(settings.rounds):
            for manner, peer in list(peers.items()):
                torch.set_num_threads(threads)  # all of them, whatever our side left
                try:
                    times[manner].append(FOLDS * peer_epoch(peer, settings.seconds))
                except Exception as error:  # a compiler may give up: the other manners count
                    reason = str(error).strip().partition("\n")[0]
                    record.note(f"{graphs.name}: the peer, {manner.name}, left out: {reason}")
                    del peers[manner], times[manner]
            ours.measure()
        for manner, seconds in times.items():
            theirs = statistics.median(seconds)
            both = (theirs, ours.epoch, theirs / ours.epoch)
            table.row(graphs.name, manner.name, *both, ours.preparation, ours.first)


def whole(settings: Settings, record: Record) -> None:
    """A ten-fold cell from start to outcome, after a first call that compiles what it must."""
    epochs = settings.epochs or Protocol().epochs
    columns = {"data set": "{}", "epochs": "{}", "ours": "{:.2f} s", "the first call": "{:.2f} s"}
    table = record.table("whole", "A whole ten-fold cell of GIN+vpa", columns)
    for graphs in map(load, settings.datasets):
        cell = Cell(graphs, lanes_of(graphs), settings.device, epochs=epochs)
        table.row(graphs.name, epochs, cell.run(epochs), cell.first)


def lanes(settings: Settings, record: Record) -> None:
    """What a lane costs beside others."""
    columns = {
        "data set": "{}",
        "lanes": "{}",
        "an epoch": "{:.4f} s",
        "for each lane": "{:.5f} s",
        "of one lane's alone": "{:.2f}",
    }
    table = record.table("lanes", "An epoch with more lanes side by side", columns)
    for graphs in map(load, settings.datasets):
        alone = None
        for count in settings.lanes:
            epoch = _measured(settings, graphs, lanes_of(graphs, count)).epoch
            alone = epoch if count == 1 else alone
            share = None if alone is None else epoch / count / alone
            table.row(graphs.name, count, epoch, epoch / count, share)


def memory(settings: Settings, record: Record) -> None:
    """Peak memory, each in a process of its own."""
    columns = {
        "data set": "{}",
        "who": "{}",
        "lanes": "{}",
        "before": "{:.2f} GB",
        "peak": "{:.2f} GB",
        "reserved": "{:.2f} GB",
    }
    table = record.table("memory", "Peak memory", columns)
    steps = 20
    for graphs in map(load, settings.datasets):
        for who, count in [("peer", 1), *(("ours", count) for count in settings.lanes)]:
            peak = peak_of(who, graphs.name, settings.device, count, steps)
            table.row(graphs.name, who, count, *(None if b is None else b / 1e9 for b in peak))


def growth(settings: Settings, record: Record) -> None:
    """Time against edges: as many graphs, of more and more nodes of the same degree."""
    columns = {"edges": "{:,}", "an epoch": "{:.4f} s", "for each million edges": "{:.4f} s"}
    table = record.table("growth", "An epoch of ten lanes on random graphs", columns)
    sizes = (25, 50, 100, 200, 400) if settings.device == "cpu" else (100, 200, 400, 800, 1600)
    points = []
    for size in sizes:
        graphs = random_graphs(size)
        epoch = _measured(settings, graphs, lanes_of(graphs)).epoch
        points.append((graphs.num_edges, epoch))
        table.row(graphs.num_edges, epoch, epoch / graphs.num_edges * 1e6)
    slopes = {"all": growth_rate(points), "of the last three": growth_rate(points[-3:])}
    record.values("growth", slopes)
    shown = ", ".join(f"{slope:.2f} ({name})" for name, slope in slopes.items())
    record.text(f"\nTime grows as edges to the power of {shown}.")


def step(settings: Settings, record: Record) -> None:
    """Training steps against their matrix products alone, with as many threads."""
    columns = {
        "data set": "{}",
        "steps of ten lanes": "{:.2f} ms",
        "products alone": "{:.2f} ms",
        "ratio": "{:.2f}",
        "threads": "{}",
    }
    table = record.table("products", "A training step against its matrix products", columns)
    size, threads = Protocol().batch_size, torch.get_num_threads()
    for graphs in map(load, settings.datasets):
        chosen = [lane._replace(split=_hardly_judged(lane)) for lane in lanes_of(graphs)]
        epoch = _measured(settings, graphs, chosen).epoch
        steps = statistics.mean(len(lane.split.train) for lane in chosen) / size
        torch.set_num_threads(threads)
        alone = products.seconds_of(products.step_of(graphs, size), FOLDS, settings.seconds)
        ours = epoch / steps
        table.row(graphs.name, ours * 1e3, alone * 1e3, ours / alone, threads)


def demo(settings: Settings, record: Record) -> None:
    """The job of `make demo`: 40 trainings of MUTAG, from the command to the report."""
    columns = {"epochs": "{}", "seconds": "{:.1f} s"}
    table = record.table("demo", "gnn-vpa demo: 40 trainings of MUTAG and a report", columns)
    epochs = settings.epochs or Protocol().epochs
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "gnn_vpa", "demo", "--out", folder]
        command += ["--epochs", str(epochs), "--device", settings.device]
        begin = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        table.row(epochs, time.perf_counter() - begin)


_MEASURES = {
    "cells": cells,
    "whole": whole,
    "lanes": lanes,
    "memory": memory,
    "growth": growth,
    "products": step,
    "demo": demo,
}
ALL = tuple(_MEASURES)


def random_graphs(nodes: int, degree: int = 8, count: int = 320) -> GraphSet:
    """Return graphs without structure, so that no two of their nodes look alike for long."""
    draw = torch.Generator().manual_seed(0)
    graphs = []
    for number in range(count):
        ends = torch.randint(nodes, (2, nodes * degree // 2), generator=draw)
        edges = torch.cat([ends, ends.flip(0)], dim=1)
        graphs.append(Data(edge_index=edges, num_nodes=nodes, y=number % 2))
    return GraphSet.from_pyg(graphs, name=f"random graphs of {nodes} nodes")


def growth_rate(points: Sequence[tuple[int, float]]) -> float:
    """Return the slope of log seconds over log edges, by least squares."""
    edges, seconds = np.log(np.array(points)).T
    return float(np.polyfit(edges, seconds, 1)[0])


def _hardly_judged(lane: Lane) -> Split:
    """Leave one graph to judge: a public way to time the training steps alone."""
    return lane.split._replace(valid=lane.split.valid[:1], test=lane.split.test[:1])


def _cell(settings: Settings, graphs: GraphSet, chosen: Sequence[Lane]) -> Cell:
    return Cell(graphs, chosen, settings.device, settings.seconds, settings.epochs)


def _measured(settings: Settings, graphs: GraphSet, chosen: Sequence[Lane]) -> Cell:
    cell = _cell(settings, graphs, chosen)
    for _ in range(settings.rounds):
        cell.measure()
    return cell


def _peers(graphs: GraphSet, settings: Settings) -> dict[Manner, Peer]:
    data, fold = pyg_graphs(graphs), lanes_of(graphs, 1)[0].split
    width, device, wanted = features(graphs).width, settings.device, settings.manners
    return {
        manner: Peer(data, fold, GIN(width, graphs.num_classes), Protocol(), device, manner)
        for manner in MANNERS[device]
        if wanted is None or manner.name in wanted
    }


def _present(names: Sequence[str], record: Record) -> list[str]:
    """Return the data sets that are here, and say which are not."""
    present = []
    for name in names:
        try:
            present.append(load(name).name)
        except GnnVpaError as error:
            record.note(f"{name} left out: {error}")
    return present
