"""The figure of the signal by layer."""

import math
import re
from itertools import pairwise

import pandas as pd

from gnn_vpa.analysis import signal_lines


def signals(**variances: list[float]) -> pd.DataFrame:
    rows = [
        {"dataset": "MUTAG", "model": "GCN", "aggregation": aggr, "layer": str(n), "variance": v}
        for aggr, line in variances.items()
        for n, v in enumerate(line)
    ]
    return pd.DataFrame(rows)


def heights(svg: str) -> dict[str, list[float]]:
    found = re.findall(r'<circle cx="[\d.]+" cy="([\d.]+)"[^>]*class="area (\w+)"', svg)
    return {name: [float(y) for y, n in found if n == name] for _, name in found}


def test_a_larger_variance_is_higher_by_its_logarithm() -> None:
    at = heights(signal_lines(signals(sum=[1, 100, 10_000], vpa=[1, 1, 1]), {}))
    first, second, third = at["sum"]
    assert first > second > third
    assert math.isclose(first - second, second - third, abs_tol=0.11)
    assert len(set(at["vpa"])) == 1


def test_labels_tell_the_score_and_do_not_overlap() -> None:
    svg = signal_lines(
        signals(sum=[1, 2], mean=[1, 2], max=[1, 2], vpa=[1, 2.01]),
        {"sum": "71.0 %", "vpa": "72.0 %"},
    )
    labels = dict(re.findall(r'<text x="256" y="([\d.]+)"[^>]*>([^<]+)</text>', svg))
    assert set(labels.values()) == {"sum 71.0 %", "vpa 72.0 %", "mean", "max"}
    at = sorted(map(float, labels))
    assert all(b - a >= 12.9 for a, b in pairwise(at))
    assert at[-1] <= 180


def test_what_has_no_variance_is_said() -> None:
    assert "No layer has a variance" in signal_lines(signals(mean=[0.0, 0.0]), {})
    partly = signal_lines(signals(mean=[1.0, 0.0], sum=[1.0, math.inf]), {})
    assert partly.startswith("<svg")
    assert len(heights(partly)["mean"]) == 1


def test_long_names_and_many_lines_have_room() -> None:
    names = {f"power(0.{n:03})": [1.0, 2.0] for n in range(1, 31)}
    svg = signal_lines(signals(**names), dict.fromkeys(names, "71.0 %"))
    height = float(re.search(r'viewBox="0 0 340 ([\d.]+)"', svg)[1])
    labels = re.findall(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*>(power[^<]+)</text>', svg)
    assert len(labels) == 30
    assert all(float(x) + 6 * len(label) <= 340 for x, _, label in labels)
    assert all(0 < float(y) < height for _, y, _ in labels)
