"""What an audit without baselines costs: each data set in a process of its own."""

import json
import subprocess
import sys
import time
from collections.abc import Sequence

from ._memory import resident
from ._record import Record

DATASETS = (
    "IMDB-BINARY", "IMDB-MULTI", "REDDIT-BINARY", "REDDIT-MULTI-5K", "COLLAB", "MUTAG", "PROTEINS",
    "PTC_FM", "NCI1",
)  # fmt: skip


def report(datasets: Sequence[str], record: Record) -> None:
    """Seconds and peak memory, imports and reading the cached data among them."""
    columns = {
        "data set": "{}",
        "all of it": "{:.1f} s",
        "the audit": "{:.1f} s",
        "peak memory": "{:.2f} GB",
        "told apart": "{:,}",
        "best accuracy": "{:.1f} %",
        "twins": "{:.1f} %",
        "look-up": "{:.1f} %",
    }
    table = record.table("audit", "Audit", columns)
    total = 0.0
    for name in datasets:
        begin = time.perf_counter()
        command = [sys.executable, "-m", "benchmarks.audit", name]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
        seconds = time.perf_counter() - begin
        total += seconds
        table.row(name, seconds, *json.loads(done.stdout.splitlines()[-1]))
    record.text(f"\nAll {len(datasets)}: {total:.0f} s.")


def _measure(name: str) -> tuple[float, ...]:
    import gnn_vpa

    begin = time.perf_counter()
    found = gnn_vpa.audit(name, baselines=False)
    seconds = time.perf_counter() - begin
    last = found.last
    assert last.ceiling is not None
    assert last.twins is not None
    shares = (last.ceiling.accuracy, last.twins.share, last.twins.accuracy)
    return seconds, resident("VmHWM") / 1e9, last.distinct, *(100 * share for share in shares)


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1])))
