"""Predictions for new graphs: graphs a second beside a plain PyG loop, and memory of an iterator.

The peer is PyG's GIN with its own variance-preserving aggregation in eval mode, over a `DataLoader`
at the batch size that suits it best. Both have the same weights, and say the same (to rounding).
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import islice

import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

from gnn_vpa.graphs import GraphSet, load
from gnn_vpa.trained import DataRecord, Record, TrainedModel, encoding_of, target_of
from gnn_vpa.training import Protocol, Task

from ._record import Record as Results
from .peer import GIN, pyg_graphs

DATASETS = ("NCI1", "COLLAB")
BATCH_SIZES = (64, 256)
COPIES = (1, 4, 16)  # of NCI1, how often the iterator yields it


def untrained(graphs: GraphSet) -> TrainedModel:
    """Return a model whose weights have learned nothing; that costs the same."""
    torch.manual_seed(0)
    task, encoding, target = Task("gin", "vpa"), encoding_of(graphs), target_of(graphs)
    record = Record(DataRecord(graphs.name, "", 0, 0, 0, 0, 0), "accuracy", "test", {"accuracy": 0})
    module = task.build(encoding.width, target.outputs)
    return TrainedModel(module, task, Protocol(), encoding, target, record)


def peer_of(model: TrainedModel) -> GIN:
    """Return PyG's network with the same weights."""
    peer = GIN(model.encoding.width, model.target.outputs).eval()
    state = {name.removeprefix("head."): t for name, t in model.module.state_dict().items()}
    peer.load_state_dict(state, strict=False)
    return peer


@torch.no_grad()
def loop(peer: GIN, data: list[Data], batch_size: int) -> torch.Tensor:
    """Predict as PyG's examples do."""
    batches = DataLoader(data, batch_size=batch_size)
    return torch.cat([peer(b.x, b.edge_index, b.batch, b.num_graphs) for b in batches])


def report(datasets: tuple[str, ...] | list[str], rounds: int, results: Results) -> None:
    """Measure all contenders in turns."""
    table = results.table(
        "predict",
        f"Graphs a second, {torch.get_num_threads()} threads, median of {rounds} turns",
        {
            "data set": "{}", "PyG": "{:.0f}", "batch size": "{}", "ours, a data set": "{:.0f}",
            "times": "{:.1f}", "ours, a list of Data": "{:.0f}", "times ": "{:.1f}",
        },
    )  # fmt: skip
    for name in datasets:
        graphs = load(name)
        model, data = untrained(graphs), pyg_graphs(graphs)
        given = data if graphs.own_features is not None else graphs.to_pyg()
        peer = peer_of(model)
        work: dict[str, Callable[[], object]] = {
            f"{size}": partial(loop, peer, data, size) for size in BATCH_SIZES
        }
        work |= {"set": partial(model.outputs, graphs), "list": partial(model.outputs, given)}
        difference = (loop(peer, data, 64) - torch.from_numpy(model.outputs(graphs))).abs().max()
        results.note(f"{name}: largest difference of outputs {float(difference):.1e}")
        seconds: dict[str, list[float]] = {key: [] for key in work}
        for _ in range(rounds):
            for key, run in work.items():
                begin = time.perf_counter()
                run()
                seconds[key].append(time.perf_counter() - begin)
        pace = {key: graphs.num_graphs / statistics.median(own) for key, own in seconds.items()}
        best = max(BATCH_SIZES, key=lambda size: pace[f"{size}"])
        peers = pace[f"{best}"]
        table.row(
            name, peers, best, pace["set"], pace["set"] / peers, pace["list"], pace["list"] / peers
        )
    _report_memory(results)


def _report_memory(results: Results) -> None:
    table = results.table(
        "predict memory",
        "Memory that predictions for an iterator add, MiB",
        {"graphs": "{:,}", "MiB": "{:.1f}"},
    )
    for copies in COPIES:
        command = [sys.executable, "-m", "benchmarks.predict", str(copies)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
        count, added = json.loads(done.stdout.splitlines()[-1])
        table.row(count, added / (1 << 20))


def _memory(copies: int) -> tuple[int, int]:
    """Return the number of graphs, and the peak of memory that they add."""
    import resource

    graphs = load("NCI1")
    model, data = untrained(graphs), graphs.to_pyg()
    for _ in islice(model.iter_outputs(iter(data)), 8):  # what is allocated once
        pass
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    count = sum(len(part) for part in model.iter_outputs(g for _ in range(copies) for g in data))
    return count, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024


if __name__ == "__main__":
    print(json.dumps(_memory(int(sys.argv[1]))))
