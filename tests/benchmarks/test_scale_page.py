"""The page of what more GPUs gain says what is computed today."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from gnn_vpa.experiments.schedule import Outlook


def test_the_page_and_its_figure_are_what_is_made_from_the_record(
    root: Path, benchmark_module: Callable[[str], ModuleType]
) -> None:
    module = benchmark_module("scale_page")
    of_grids = module.grids(root)
    again = "run python -m benchmarks scale --page"
    assert (root / "docs" / "scale.md").read_text() == module.page_text(of_grids, root), again
    assert (root / "docs" / "img" / "scale.svg").read_text() == module.figure(of_grids), again


def test_the_figure_names_its_grids(benchmark_module: Callable[[str], ModuleType]) -> None:
    module = benchmark_module("scale_page")
    ahead = [Outlook(3 * n, 6000.0 / n, "the work itself") for n in module.GPUS]
    drawn = module.figure([module.Grid(name, 9, 3, ahead) for name in ("`one`", "two")])
    assert "one from 100 to 0 minutes; two from" in drawn
