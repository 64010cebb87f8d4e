"""The page of what more GPUs gain says what is computed today."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from gnn_vpa.experiments.schedule import Outlook


def test_the_page_and_its_figure_are_what_is_made_from_the_record(
    root: Path, benchmark_module: Callable[[str], ModuleType]
) -> None:
    module = benchmark_module("scale_page")
    of_grids = module.grids(root)
    again = "run python -m benchmarks scale --page"
    assert (root / "docs" / "scale.md").read_text() == module.page_text(of_grids, root), again
    assert (root / "docs" / "img" / "scale.svg").read_text() == module.figure(of_grids), again


def test_a_group_that_was_interrupted_counts_with_its_longer_seed(
    benchmark_module: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = benchmark_module("scale_page")
    row: dict[str, object] = {
        "dataset": "NCI1",
        "aggregation": "vpa",
        "features": "auto",
        "options": "{}",
    }
    row |= {"batch_size": 64}
    paces = [("gin", 0.1), ("gin", 0.4), ("gat", 0.1), ("gat", 3.0)]
    rows = [{**row, "model": model, "pace": pace} for model, pace in paces]
    monkeypatch.setattr(module, "query", lambda *_: rows)
    found = {pace.model: pace.seconds for pace in module.recorded_paces(Path())}
    assert found == {"gin": 0.4, "gat": 0.1}  # thirty times as long is another version's


def test_the_figure_names_its_grids(benchmark_module: Callable[[str], ModuleType]) -> None:
    module = benchmark_module("scale_page")
    ahead = [Outlook(3 * n, 6000.0 / n, "the work itself") for n in module.GPUS]
    drawn = module.figure([module.Grid(name, 9, 3, ahead) for name in ("`one`", "two")])
    assert "one from 100 to 0 minutes; two from" in drawn
