"""The report as frames, text, picture and page."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch
from rich.console import Console
from torch import nn
from torch_geometric.nn import GIN

import gnn_vpa
from gnn_vpa.signal import Report

from .conftest import Sample


@pytest.fixture
def report(sample: Sample) -> Report:
    torch.manual_seed(0)
    return gnn_vpa.probe(GIN(8, 16, 3), sample.x, sample.edge_index)


def test_a_frame_has_a_row_for_each_step(report: Report) -> None:
    frame = report.to_frame()
    assert frame["index"].tolist() == list(range(len(report.steps)))
    for step, row in zip(report.steps, frame.itertuples(), strict=True):
        assert row.variance == step.forward.variance
        assert (row.layer, row.step, row.call) == (step.layer, step.step, step.call)
        if step.backward is not None:
            assert row.backward_rms == step.backward.rms
        assert row.gain == step.gain or row.gain != row.gain


@pytest.mark.parametrize("by", ["degree", "size"])
def test_a_frame_by_groups_has_a_row_for_each(by: str, sample: Sample) -> None:
    model = gnn_vpa.build_model("gin", 8, 2, "sum")
    report = gnn_vpa.probe(model, *sample)
    frame = report.to_frame(by)
    step = next(step for step in report.steps if step.step == "aggregation")
    mine = frame[frame["index"] == step.index]
    groups = getattr(step, f"by_{by}")
    assert mine["low"].tolist() == [group.low for group in groups]
    assert mine["share"].sum() == pytest.approx(1)
    later = [s for s in report.steps if s.step == "update"][-1]
    back = getattr(later, f"backward_by_{by}")
    mine = frame[frame["index"] == later.index]
    assert mine["backward_variance"].tolist() == [group.variance for group in back]


def test_printing_shows_every_layer_and_the_verdict(report: Report) -> None:
    text = str(report)
    for step in report.steps:
        assert step.name in text
    assert text.endswith(report.verdict)
    assert repr(report) == f"Report(steps={len(report.steps)})"


@pytest.mark.parametrize("width", [70, 100, 140])
def test_rich_draws_the_table_within_the_terminal(report: Report, width: int) -> None:
    console = Console(width=width, force_terminal=True, record=True)
    with console.capture() as capture:
        console.print(report)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capture.get()).splitlines()
    assert max(map(len, lines)) <= width
    assert any(line.startswith("convs.0 ") and "aggregation (sum)" in line for line in lines)
    assert any(line.startswith("convs.0.nn.lins.0 ") for line in lines)
    assert ("mean" in lines[0]) == (width == 140)
    assert "variance" in lines[0]


def test_a_long_network_is_shortened_and_says_so(sample: Sample) -> None:
    report = gnn_vpa.probe(GIN(8, 8, 40), sample.x, sample.edge_index)
    text = str(report)
    table, note, *_ = text.split("\n\n")
    assert len(table.splitlines()) < 90
    missing = int(re.match(r"(\d+) more steps in to_frame", note)[1])
    assert missing + len(table.splitlines()) - 1 == len(report.steps)


def test_a_picture_is_drawn_and_written(report: Report, tmp_path: Path) -> None:
    path = tmp_path / "new" / "signal.svg"
    figure = report.plot(path)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[0] == "Variance"
    assert len(titles) == 4
    assert [axes.get_yscale() for axes in figure.axes] == ["log"] * 4
    assert path.read_text().lstrip().startswith("<?xml")


def test_a_folder_is_no_file_and_nothing_is_written_beside_it(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told before anything is drawn, and before remedies are tried."""
    folder = tmp_path / "results"
    folder.mkdir()
    for module, name in (("_page", "render"), ("_figure", "draw")):
        monkeypatch.setattr(f"gnn_vpa.signal.probing.{module}.{name}", None)
    for write, like in ((report.plot, "signal.png"), (report.to_html, "signal.html")):
        with pytest.raises(gnn_vpa.UsageError, match=f"results is a folder: .*results/{like}"):
            write(folder)
    assert [*tmp_path.rglob("*")] == [folder]


def test_a_picture_of_no_known_kind_is_refused_in_our_words(report: Report, tmp_path: Path) -> None:
    with pytest.raises(gnn_vpa.UsageError, match=r"signal\.bmpp: .* must end in .*\.png"):
        report.plot(tmp_path / "signal.bmpp")
    assert not [*tmp_path.iterdir()]


def test_a_model_without_a_graph_is_drawn_too() -> None:
    report = gnn_vpa.probe(nn.Linear(4, 4), torch.randn(5, 4))
    assert "no message passing" in str([t.get_text() for t in report.plot().axes[2].texts])
    assert report.to_html()


class _Page(HTMLParser):
    """The elements of a page that want anything from outside, and whether all are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.outside: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "br", "img", "link"):
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href") and not (value or "").startswith("#"):
                self.outside.append(f"{tag} {value}")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in ("meta", "br", "img", "link"):
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_stands_alone(report: Report, tmp_path: Path) -> None:
    path = tmp_path / "new" / "signal.html"
    page = report.to_html(path)
    assert path.read_text(encoding="utf-8") == page
    parser = _Page()
    parser.feed(page.removeprefix("<!DOCTYPE html>"))
    assert parser.outside == []
    assert parser.open == []
    assert "<script" not in page
    for step in report.steps:
        assert step.name in page


def test_names_are_escaped(sample: Sample) -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.add_module("<b>&", nn.Linear(8, 8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor = self.get_submodule("<b>&")(x)
            return out

    report = gnn_vpa.probe(Odd(), sample.x)
    for text in (report.to_html(), report._repr_html_()):
        assert "&lt;b&gt;&amp;" in text
        assert "<b>" not in text


def test_a_notebook_shows_a_table(report: Report) -> None:
    parser = _Page()
    parser.feed(report._repr_html_())
    assert parser.open == []
