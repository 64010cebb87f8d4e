"""Speed over time: ratios of every run in a file, and what became slower than noise.

A ratio is our time over the peer's in the same run, where both took turns. Times themselves say
more of the machine than of the code, and are not kept. Ratios are compared with those of the same
kind of machine alone.
"""

import json
import platform
import re
import statistics
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch

from gnn_vpa.host import Host

FILE = Path(__file__).with_name("history.jsonl")
FEWEST = 3  # earlier runs, below which nobody can tell a change from noise
RECENT = 20  # earlier runs that count: one that was disturbed does not hide changes for ever
LEAST = 0.10  # of the median: a smaller change is never named


class Ratios:
    """The ratios of one run: ``ratios.add("loop", "MUTAG", ours=..., peer=...)``."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}

    def add(self, *names: str, ours: float, peer: float) -> None:
        """Keep a ratio under names that say what was measured; the same names only once."""
        name = " / ".join(names)
        if name in self.values:
            raise ValueError(f"{name} was measured twice in a run")
        self.values[name] = ours / peer


def append(ratios: Ratios, device: str, path: Path = FILE) -> None:
    """Add a run to the history."""
    entry = {
        "commit": _commit(path),
        "machine": machine(device),
        # Four digits are more than the noise leaves.
        "ours over peer": {n: float(f"{value:.4g}") for n, value in ratios.values.items()},
    }
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry, ensure_ascii=False) + "\n")


def machine(device: str, cpuinfo: Path = Path("/proc/cpuinfo")) -> dict[str, Any]:
    """Return the kind of this machine, and nothing that tells it from others of its kind."""
    text = cpuinfo.read_text("utf-8") if cpuinfo.exists() else ""
    model = re.search(r"^model name\s*:\s*(.+)$", text, flags=re.MULTILINE)
    kind: dict[str, Any] = {
        "cpu": model[1].strip() if model else platform.machine(),
        "cores": Host.here().cores,
        "torch": torch.__version__,
    }
    if device == "cuda":
        kind["gpu"] = torch.cuda.get_device_name()
    return kind


def _commit(history: Path) -> str:
    """Return the commit that was measured; ``+`` behind it if files differ from it."""

    def git(*command: str) -> str:
        done = subprocess.run(
            ["git", *command], cwd=Path(__file__).parent, check=True, capture_output=True, text=True
        )
        return done.stdout

    try:
        commit = git("rev-parse", "--short=12", "HEAD").strip()
        changed = git("status", "--porcelain", "--untracked-files=no").splitlines()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return commit + ("+" if any(history.name not in line for line in changed) else "")


class Change(NamedTuple):
    """The newest ratio of a measurement beside the earlier ones.

    Attributes:
        name: What was measured.
        machine: The kind of machine, as a line of text.
        commit: The newest commit.
        newest: Its ratio.
        earlier: The ratios before it, the most recent ones, oldest first.
    """

    name: str
    machine: str
    commit: str
    newest: float
    earlier: tuple[float, ...]

    @property
    def verdict(self) -> str:
        """Return ``slower``, ``faster``, ``the same``, or ``too little history``."""
        if len(self.earlier) < FEWEST:
            return "too little history"
        median = statistics.median(self.earlier)
        spread = max(abs(ratio - median) for ratio in self.earlier)
        if abs(self.newest - median) <= max(spread, LEAST * median):
            return "the same"
        return "slower" if self.newest > median else "faster"


def read(path: Path) -> list[dict[str, Any]]:
    """Read a history; a line that is none is an error that names it."""
    entries = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        try:
            entry = json.loads(line)
            ratios = entry["ours over peer"]
            valid = all(isinstance(ratio, float | int) and ratio > 0 for ratio in ratios.values())
            known = isinstance(entry["commit"], str) and isinstance(entry["machine"], dict)
        except (ValueError, KeyError, TypeError, AttributeError):
            valid = known = False
        if not (valid and known):
            raise SystemExit(f"{path.name}, line {number}: no run of the benchmarks")
        entries.append(entry)
    return entries


def changes(entries: Iterable[dict[str, Any]]) -> Iterator[Change]:
    """Yield each measurement of each kind of machine, in the order in which they came."""
    runs: dict[tuple[str, str], list[tuple[str, float]]] = {}
    for entry in entries:
        kind = ", ".join(f"{key} {value}" for key, value in sorted(entry["machine"].items()))
        for name, ratio in entry["ours over peer"].items():
            runs.setdefault((kind, name), []).append((entry["commit"], ratio))
    for (kind, name), ratios in runs.items():
        (*earlier, (commit, newest)) = ratios
        yield Change(name, kind, commit, newest, tuple(ratio for _, ratio in earlier[-RECENT:]))


def compare(path: Path = FILE) -> tuple[str, bool]:
    """Say what changed by more than noise, and whether anything became slower."""
    if not path.exists():
        return f"There is no history yet: make bench begins one in {path.name}.", False
    found = list(changes(read(path)))
    lines = []
    for kind in dict.fromkeys(change.machine for change in found):
        own = [change for change in found if change.machine == kind]
        lines.append(f"{kind}:")
        by_verdict = {v: [c for c in own if c.verdict == v] for v in ("slower", "faster")}
        for verdict, named in by_verdict.items():
            for change in named:
                median = statistics.median(change.earlier)
                lines.append(
                    f"  {verdict} at {change.commit}: {change.name}: {change.newest:.3g} of the "
                    f"peer's time, {min(change.earlier):.3g} to {max(change.earlier):.3g} before "
                    f"({change.newest / median:.2f} times the median of {len(change.earlier)})"
                )
        same = sum(change.verdict == "the same" for change in own)
        few = sum(change.verdict == "too little history" for change in own)
        if same:
            lines.append(f"  {same} as before, within noise or {LEAST:.0%}")
        if few:
            lines.append(
                f"  {few} with too little history: a comparison needs {FEWEST} earlier runs"
            )
    return "\n".join(lines), any(change.verdict == "slower" for change in found)
