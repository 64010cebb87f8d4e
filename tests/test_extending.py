"""What CONTRIBUTING shows: an aggregation, a model and a section are a file or an entry each."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN, GIN
from typer.testing import CliRunner

import gnn_vpa
from gnn_vpa.aggregations import AGGREGATIONS, names
from gnn_vpa.analysis import render_report, write_markdown
from gnn_vpa.analysis.report import SECTIONS
from gnn_vpa.analysis.settings import KEYS
from gnn_vpa.cli._app import app
from gnn_vpa.graphs import GraphSet, splits
from gnn_vpa.nn import MODELS
from gnn_vpa.signal import predicted_variance, signal_by_layer
from gnn_vpa.training import Lane, Protocol, Task, fit

AGGREGATION = """
from gnn_vpa.aggregations import AGGREGATIONS, Aggregation

AGGREGATIONS["third"] = Aggregation("third", "linear", 1 / 3, "#56B4E9", "3 3", "h")
"""

MODEL = '''
"""A model in a file of its own."""

from gnn_vpa.nn.gcn import GCN


class Twice(GCN):
    """The GCN with layers of twice the width."""

    name = "twice"

    def __init__(self, in_channels, num_classes, aggr="vpa", *, width=8, depth=2):
        super().__init__(in_channels, num_classes, aggr, width=2 * width, depth=depth)
'''

SECTION = '''
"""A section of the report in a file of its own."""

from gnn_vpa.analysis.report import SECTIONS, Section, fill
from gnn_vpa.escape import markdown


class Longest(Section):
    """The training that took longest."""

    name = "longest"
    title = "The longest training"

    def html(self, part):
        return fill("<p>It was on {{ name }}.</p>", name=part.folds["dataset"].max())

    def markdown(self, part, pictures):
        name = markdown(part.folds["dataset"].max())
        return f"{part.level} {self.title}\\n\\nIt was on {name}.\\n\\n"


SECTIONS.insert(1, Longest())
'''


def _import(folder: Path, name: str, text: str) -> ModuleType:
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def third(tmp_path: Path) -> Iterator[str]:
    _import(tmp_path, "an_aggregation", AGGREGATION)
    yield "third"
    del AGGREGATIONS["third"]


@pytest.fixture
def twice(tmp_path: Path) -> Iterator[str]:
    _import(tmp_path, "a_model", MODEL)
    yield "twice"
    del MODELS["twice"]


@pytest.fixture
def longest(tmp_path: Path) -> Iterator[str]:
    before = [*SECTIONS]
    _import(tmp_path, "a_section", SECTION)
    yield "The longest training"
    SECTIONS[:] = before


@pytest.fixture(scope="module")
def graphs() -> GraphSet:
    pair = torch.tensor([[0, 1], [1, 0]])
    line = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    some = [Data(edge_index=e, num_nodes=3, y=i) for i, e in enumerate((pair, line))] * 20
    return GraphSet.from_pyg(some, name="toy")


def _lanes(graphs: GraphSet) -> list[Lane]:
    return [Lane(fold, split) for fold, split in enumerate(splits(graphs.y, folds=4))]


def test_an_aggregation_that_is_added_is_everywhere(third: str, graphs: GraphSet) -> None:
    assert third in names()
    ends, x = torch.tensor([[1, 2, 3], [0, 0, 0]]), torch.ones(4, 1)
    assert gnn_vpa.aggregate(x, ends, third)[0].item() == pytest.approx(3 ** (2 / 3))
    assert predicted_variance(third, 8) == pytest.approx(8 ** (1 / 3))
    for name, model in MODELS.items():
        assert third in model.aggregations()
        network = gnn_vpa.build_model(name, 1, 2, third)
        network(x, ends, torch.zeros(4, dtype=torch.int64))
        assert signal_by_layer(network, x, ends, torch.zeros(4, dtype=torch.int64))
    for outcome in fit(graphs, Task("gin", third), Protocol(epochs=30), _lanes(graphs)):
        assert outcome.curve_train_loss[-1] < outcome.curve_train_loss[0] / 2


def test_an_aggregation_that_is_added_converts_layers_that_sum(third: str) -> None:
    _, gin = gnn_vpa.convert(GIN(3, 4, 1), aggr=third)
    assert [change.after for change in gin.entries] == ["VPGINConv with third"]
    for model in (GCN(3, 4, 1), GAT(3, 4, 1)):
        _, left = gnn_vpa.convert(model, aggr=third)
        assert [change.after for change in left.entries] == [None]
        assert "vpa is the only one" in left.entries[0].reason


def test_a_model_that_is_added_trains_and_is_predicted(twice: str, graphs: GraphSet) -> None:
    model = gnn_vpa.build_model(twice, 1, 2, "power(0.3)", width=4)
    ends, batch = torch.tensor([[1, 2, 3], [0, 0, 0]]), torch.zeros(4, dtype=torch.int64)
    assert len(signal_by_layer(model, torch.ones(4, 1), ends, batch)) > 0
    for outcome in fit(graphs, Task(twice, "sum"), Protocol(epochs=30), _lanes(graphs)):
        assert outcome.curve_train_loss[-1] < outcome.curve_train_loss[0]


def test_a_model_that_is_added_is_on_the_command_line(twice: str, tu_dir: Path) -> None:
    data = ["--graphs", "5", "--data-dir", str(tu_dir)]
    for command in (["theory", "MUTAG", "--draws", "1"], ["probe", "MUTAG"]):
        result = CliRunner().invoke(app, [*command, "--model", twice, *data])
        assert result.exit_code == 0, result.output
    assert twice in CliRunner().invoke(app, ["info"]).stdout


def test_no_help_has_a_list_of_models_that_would_fall_behind() -> None:
    for command in ("run", "train", "probe", "theory"):
        said = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).stdout
        assert "gnn-vpa info" in said
        assert "gin, gcn" not in said


def _pages(folder: Path) -> tuple[str, str]:
    """A page and a Markdown file of one training on data with a nasty name."""
    row = ["a<b>*c*", "GIN", "vpa", "released", "auto", 0, 0, 0.8, "done"]
    folds, curves = pd.DataFrame([row], columns=[*KEYS, "test_score", "status"]), pd.DataFrame()
    written = write_markdown(folds, curves, {}, folder / "report.md").read_text("utf-8")
    return render_report(folds, curves, {}), written


def test_a_section_that_is_added_is_in_the_page_and_in_markdown(
    longest: str, tmp_path: Path
) -> None:
    page, written = _pages(tmp_path)
    assert f'<a href="#longest-1">{longest}</a>' in page
    assert f'<h2 id="longest-1-title">{longest}</h2>' in page
    assert "<p>It was on a&lt;b&gt;*c*.</p>" in page
    order = ("Which aggregation is right?</h2>", f">{longest}</h2>", ">Accuracy</h2>")
    first, second, third = map(page.index, order)
    assert first < second < third
    assert f"\n## {longest}\n\nIt was on a\\<b\\>\\*c\\*.\n\n## Accuracy\n" in written


def test_a_section_that_is_taken_back_is_nowhere(tmp_path: Path) -> None:
    for text in _pages(tmp_path):
        assert "longest" not in text
