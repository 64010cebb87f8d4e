"""Peak memory of a training, in a process of its own."""

import json
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch


class Peak(NamedTuple):
    """Bytes: of the process on the CPU, of PyTorch's allocator on CUDA.

    On CUDA ``before`` is 0, and ``reserved`` is what the allocator took from the device, with what
    captured steps keep to themselves.
    """

    before: int  # all imported, the data loaded
    peak: int
    reserved: int | None = None


def peak_of(who: str, dataset: str, device: str, lanes: int, steps: int) -> Peak:
    """Measure ``"ours"`` (an epoch of all lanes) or the ``"peer"`` (one fold, so many steps)."""
    order = json.dumps([who, dataset, device, lanes, steps])
    command = [sys.executable, "-m", "benchmarks._memory", order]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return Peak(*json.loads(done.stdout.splitlines()[-1]))


def _measure(who: str, dataset: str, device: str, lanes: int, steps: int) -> Peak:
    from gnn_vpa.graphs import features, load
    from gnn_vpa.training import Protocol, fit

    from ._cell import TASK, lanes_of
    from .peer import GIN, Peer, pyg_graphs

    graphs = load(dataset)
    chosen = lanes_of(graphs, lanes)
    before = 0 if device == "cuda" else resident("VmRSS")
    if who == "ours":
        fit(graphs, TASK, Protocol(epochs=1), chosen, device=device)
    else:
        model = GIN(features(graphs).width, graphs.num_classes)
        peer = Peer(pyg_graphs(graphs), chosen[0].split, model, Protocol(), device)
        peer.train(islice(peer.loader, steps))
        peer.judge()
    if device == "cuda":
        return Peak(before, torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
    return Peak(before, resident("VmHWM"))


def resident(field: str) -> int:
    # Not ru_maxrss: a process inherits that from the one that started it.
    status: Any = dict(
        line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines()
    )
    return int(status[field].split()[0]) * 1024


if __name__ == "__main__":
    print(json.dumps(_measure(*json.loads(sys.argv[1]))))
