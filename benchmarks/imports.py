"""What ``import gnn_vpa`` adds to importing torch and PyG."""

import statistics
import subprocess
import sys

_PROGRAM = """
import time, torch, torch_geometric, torch_geometric.nn
begin = time.perf_counter()
import gnn_vpa
gnn_vpa.convert, gnn_vpa.aggregate
print(time.perf_counter() - begin)
"""


def report(rounds: int = 7) -> str:
    times = [
        float(
            subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, check=True).stdout
        )
        for _ in range(rounds)
    ]
    median = statistics.median(times) * 1e3
    return f"`import gnn_vpa` and its first use add {median:.0f} ms (median of {rounds})."
