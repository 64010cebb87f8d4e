"""A run in Markdown: complete, and no more than the numbers say."""

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest
from markdown_it import MarkdownIt

from gnn_vpa.analysis import write_markdown
from gnn_vpa.analysis.format import MINUS
from gnn_vpa.paper import published

KEYS = ["dataset", "model", "aggregation", "variant", "features", "fold", "seed"]
_FAR = ("MUTAG", "GIN", "vpa")
_SETS = set(published("table1")["dataset"])


@pytest.fixture
def exact() -> pd.DataFrame:
    """Folds whose means are the paper's, all of Table 1, but for one cell far away."""
    rows = []
    for cell in published("table1").itertuples():
        mean = 5.0 if (cell.dataset, cell.model, cell.aggregation) == _FAR else cell.mean
        for fold, step in enumerate((-1.0, 0.0, 1.0)):
            accuracy = (mean + step * max(cell.std, 0.5)) / 100
            keys = [cell.dataset, cell.model, cell.aggregation, "released", "auto", fold, 0]
            rows.append([*keys, accuracy, "done"])
    return pd.DataFrame(rows, columns=[*KEYS, "test_score", "status"])


def test_every_cell_of_the_paper_with_its_z(exact: pd.DataFrame, tmp_path: Path) -> None:
    text = write_markdown(exact, pd.DataFrame(), {}, tmp_path / "record.md").read_text()
    lines = [line.split(" | ") for line in text.splitlines()]
    cells = [line for line in lines if len(line) == 6 and line[0].lstrip("| ") in _SETS]
    assert len(cells) == 108
    far = [line for line in cells if line[5].rstrip(" |").strip(f"+{MINUS}") > "0.1"]
    assert [line[:2] for line in far] == [["| MUTAG", "GIN+vpa"]]
    assert "107 of 108 cells have |z| ≤ 2 (99 %)." in text


def test_the_columns_avg_and_p_stand_beside_the_papers(exact: pd.DataFrame, tmp_path: Path) -> None:
    text = write_markdown(exact, pd.DataFrame(), {}, tmp_path / "record.md").read_text()
    averages = [line for line in text.splitlines() if line.startswith("| Avg |")]
    assert len(averages) == 12
    assert any(line.startswith("| GIN+sum |") and "2.0e-5" in line for line in text.splitlines())


def test_curves_become_figures_beside_it(exact: pd.DataFrame, tmp_path: Path) -> None:
    keys = exact[exact["dataset"].isin(["MUTAG", "PTC"]) & (exact["model"] == "GIN")][KEYS]
    curves = pd.concat([keys.assign(epoch=epoch, train_loss=1.0 - epoch / 4) for epoch in range(3)])
    text = write_markdown(exact, curves, {}, tmp_path / "docs" / "r.md").read_text()
    links = [line.split("(")[1].rstrip(")") for line in text.splitlines() if line.startswith("![")]
    answers = [f"img/r-released-auto-answer-{model}.svg" for model in ("gin", "gcn", "sgc", "gat")]
    curves_of = ["img/r-released-auto-gin-mutag.svg", "img/r-released-auto-gin-ptc.svg"]
    assert links == [*answers, *curves_of]
    for link in links:
        picture = (tmp_path / "docs" / link).read_text()
        assert picture.startswith("<svg")
        assert "currentColor" not in picture


def test_provenance_is_a_nested_list(exact: pd.DataFrame, tmp_path: Path) -> None:
    provenance = {"epochs": [200], "versions": {"torch": "2.13"}}
    text = write_markdown(exact, pd.DataFrame(), provenance, tmp_path / "r.md").read_text()
    assert "- epochs: 200\n- versions:\n  - torch: 2.13\n" in text


NASTY = "a|b\n# <script>alert(1)</script> `x` \x1b[31m"


def _cells_by_row(text: str) -> list[int]:
    page = MarkdownIt("commonmark").enable("table").render(text)
    return [
        len(re.findall(r"<t[hd][ >]", row))
        for table in page.split("<table>")[1:]
        for row in table.split("<tr>")[1:]
    ]


def test_a_name_cannot_break_out_of_the_page(
    make_folds: Callable[..., pd.DataFrame],
    make_curves: Callable[..., pd.DataFrame],
    tmp_path: Path,
) -> None:
    folds = make_folds({(NASTY, "GIN", aggr): [0.8, 0.9] for aggr in ("sum", "vpa")}, NASTY)
    made = write_markdown(folds, make_curves(folds), {NASTY: {NASTY: [NASTY]}}, tmp_path / "r.md")
    text = made.read_text(encoding="utf-8")
    page = MarkdownIt("commonmark").enable("table").render(text)
    assert "<script" not in page
    assert "\x1b" not in text
    assert page.count("<h1>") == 1
    assert _cells_by_row(text) == [7] * 3 + [3] * 3 + [7] * 2  # the answer, scores, tests
    for picture in (tmp_path / "img").iterdir():
        ElementTree.parse(picture)


def test_data_sets_that_differ_in_signs_alone_have_a_picture_each(
    make_folds: Callable[..., pd.DataFrame],
    make_curves: Callable[..., pd.DataFrame],
    tmp_path: Path,
) -> None:
    folds = make_folds({(name, "GIN", "vpa"): [0.8, 0.9] for name in ("a b", "a-b", "数")})
    write_markdown(folds, make_curves(folds), {}, tmp_path / "r.md")
    drawn = {path.name: path.read_text("utf-8") for path in (tmp_path / "img").iterdir()}
    titles = {re.search("<title>(.*?)</title>", picture)[1] for picture in drawn.values()}
    assert titles == {f"Training loss of GIN on {name}" for name in ("a b", "a-b", "数")}


def test_every_cell_says_what_it_stands_for(exact: pd.DataFrame, tmp_path: Path) -> None:
    exact.loc[0, "status"] = "diverged"
    text = write_markdown(exact, pd.DataFrame(), {}, tmp_path / "r.md").read_text()
    dataset, model, aggregation = exact.loc[0, ["dataset", "model", "aggregation"]]
    (line,) = [
        li for li in text.splitlines() if li.startswith(f"| {dataset} | {model}+{aggregation}")
    ]
    assert "(2 of 3 folds) |" in line
    assert any("| 26 of 27 |" in li for li in text.splitlines())


def test_settings_that_differ_in_signs_alone_have_a_picture_each(
    make_folds: Callable[..., pd.DataFrame],
    make_curves: Callable[..., pd.DataFrame],
    tmp_path: Path,
) -> None:
    cell = {("MUTAG", "GIN", "vpa"): [0.8, 0.9]}
    folds = pd.concat([make_folds(cell, variant) for variant in ("K=5", "K=-5")])
    text = write_markdown(folds, make_curves(folds), {}, tmp_path / "r.md").read_text("utf-8")
    links = re.findall(r"\((img/[^)]+)\)", text)
    assert len(set(links)) == len(links) == len([*(tmp_path / "img").iterdir()]) == 2


def test_no_finished_fold_is_said(tmp_path: Path) -> None:
    nothing = pd.DataFrame()
    text = write_markdown(nothing, nothing, {}, tmp_path / "r.md").read_text("utf-8")
    assert "- No fold has finished with an accuracy" in text
    assert "| method |" not in text
