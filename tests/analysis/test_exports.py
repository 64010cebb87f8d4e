import csv
import io
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from gnn_vpa.analysis import (
    Cell,
    Row,
    ScoreTable,
    Setting,
    score_table,
    to_csv,
    to_latex,
    to_markdown,
)
from gnn_vpa.escape import csv_text, plain


def test_markdown_has_a_row_a_method_and_equal_columns(full_run: pd.DataFrame) -> None:
    lines = to_markdown(score_table(full_run)).splitlines()
    assert len(lines) == 2 + 14
    assert {line.count("|") for line in lines} == {9 + 4}
    assert lines[0].endswith("| NCI1 | Avg | p |")
    assert "(2.0e-5)" in lines[2]


def test_markdown_marks_the_best_and_may_leave_the_paper_out(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    folds = make_folds({("MUTAG", "GIN", "sum"): [0.8] * 2, ("MUTAG", "GIN", "vpa"): [0.9] * 2})
    assert "| **90.0 ± 0.0** (86.7 ± 4.4; +3.3) ≠ |" in to_markdown(score_table(folds))
    assert "86.7" not in to_markdown(score_table(folds), paper=False)


def test_markdown_shows_what_is_missing(make_folds: Callable[..., pd.DataFrame]) -> None:
    folds = make_folds({("MUTAG", "GIN", "vpa"): [0.8], ("PTC", "GCN", "vpa"): [0.8]})
    gin = to_markdown(score_table(folds)).splitlines()[2]
    assert gin == "| GIN+vpa | 80.0 (86.7 ± 4.4; \N{MINUS SIGN}6.7) | \N{EN DASH} | \N{EN DASH} |"


def test_markdown_keeps_a_name_in_its_column(make_folds: Callable[..., pd.DataFrame]) -> None:
    folds = make_folds({("a|b", "GIN", "vpa"): [0.8]})
    assert r"a\|b" in to_markdown(score_table(folds)).splitlines()[0]


NASTY = r"50%_of & $1 #2 {x} ~^\ <y>"


def test_latex_lines_are_complete_and_names_escaped(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    folds = make_folds({(NASTY, "GIN", "vpa"): [0.8, 0.9], ("MUTAG", "GIN", "vpa"): [0.8, 0.9]})
    text = to_latex(score_table(folds))
    body = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert all(len(re.findall(r"(?<!\\)&", line)) == 3 for line in body)
    assert r"50\%\_of \& \$1 \#2 \{x\}" in text
    assert text.count(r"\begin{tabular}{lccc}") == text.count(r"\end{tabular}") == 1
    assert text.isascii()


def test_latex_separates_the_models(full_run: pd.DataFrame) -> None:
    text = to_latex(score_table(full_run))
    assert text.count(r"\midrule") == 5
    assert r"\textbf{" in text


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex on the PATH")
def test_latex_compiles(
    full_run: pd.DataFrame, make_folds: Callable[..., pd.DataFrame], tmp_path: Path
) -> None:
    nasty = make_folds(
        {(NASTY, "GIN", "sum"): [0.8, float("nan")], (NASTY, "GIN", "vpa"): [0.9] * 2}
    )
    tables = "\n\n".join(to_latex(score_table(folds)) for folds in (full_run, nasty))
    source = (
        "\\documentclass{article}\\usepackage{booktabs}\\begin{document}"
        f"\\tiny {tables}\\end{{document}}"
    )
    (tmp_path / "table.tex").write_text(source, encoding="ascii")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "table.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


def test_csv_has_a_row_a_fold_and_reads_back(full_run: pd.DataFrame) -> None:
    shuffled = full_run.sample(frac=1, random_state=0)
    assert to_csv(shuffled) == to_csv(full_run)
    back = pd.read_csv(
        io.StringIO(to_csv(full_run)), keep_default_na=False, na_values={"test_score": [""]}
    )
    assert len(back) == len(full_run)
    assert back["test_score"].sum() == pytest.approx(full_run["test_score"].sum())


# What a file must say of a mean over seven of ten folds, and of a data set of one class.
@pytest.fixture
def doubtful(make_folds: Callable[..., pd.DataFrame]) -> pd.DataFrame:
    folds = make_folds(
        {
            ("mine", "GIN", "sum"): [0.8] * 7 + [float("nan")] * 3,
            ("mine", "GIN", "vpa"): [0.9] * 10,
            ("single", "GIN", "sum"): [1.0] * 10,
            ("single", "GIN", "vpa"): [1.0] * 10,
        }
    )
    return folds.assign(num_folds=10, classes=folds["dataset"].map({"mine": 2, "single": 1}))


def test_markdown_says_beside_a_number_what_it_stands_for(doubtful: pd.DataFrame) -> None:
    text = to_markdown(score_table(doubtful))
    assert "| GIN+sum | 80.0 ± 0.0 (7 of 10 folds) | **100.0 ± 0.0** (one class) |" in text
    assert "| 90.0 (1 data set of one class, 1 incomplete) | 0.008 (17 of 20 pairs) |" in text


def test_latex_says_beside_a_number_what_it_stands_for(doubtful: pd.DataFrame) -> None:
    text = to_latex(score_table(doubtful))
    assert r"80.0 $\pm$ 0.0 (7 of 10 folds) & \textbf{100.0 $\pm$ 0.0} (one class) &" in text
    assert r"(17 of 20 pairs) \\" in text


def test_csv_says_in_every_row_what_was_asked_for_and_of_how_many_classes(
    doubtful: pd.DataFrame,
) -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(doubtful))))
    lost = [row["fold"] for row in rows if row["status"] == "diverged"]
    assert lost == ["7", "8", "9"]
    assert {row["num_folds"] for row in rows} == {"10"}
    assert {row["dataset"]: row["classes"] for row in rows} == {"mine": "2", "single": "1"}


def test_a_negative_number_stays_a_number_in_csv(make_folds: Callable[..., pd.DataFrame]) -> None:
    folds = make_folds({("mine", "GIN", "vpa"): [0.8]}).assign(train_loss=-0.5)
    assert ",-0.5," in to_csv(folds)


SPECIAL = "\\`*_[]<>|~&$#%{}^=+-@\"' \t\n\r\x00\x07\x1b\x9b\u2028\u202e\ud800"
NAMES = st.text(st.one_of(st.sampled_from(SPECIAL), st.characters()), min_size=1, max_size=20)
FIXTURE = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def table_of(name: str) -> ScoreTable:
    cells: dict[str, Cell | None] = {name: Cell(86.2, 4.1, 7, note="7 of 10 folds")}
    rows = tuple(Row("GIN", aggr, cells, None, None, None) for aggr in ("sum", "vpa"))
    return ScoreTable(Setting("released", "auto"), (name,), (rows,))


@settings(deadline=None)
@given(name=NAMES)
@example(name="a|b\n| c |\n")
@example(name="<script>alert(1)</script>")
@example(name="\\|`[x](y)")
def test_markdown_has_a_cell_a_column_whatever_a_data_set_is_called(name: str) -> None:
    page = MarkdownIt("commonmark").enable("table").render(to_markdown(table_of(name)))
    assert [len(re.findall(r"<t[hd][ >]", row)) for row in page.split("<tr>")] == [0, 2, 2, 2]
    assert "<script" not in page


@settings(deadline=None)
@given(name=NAMES)
@example(name="\\end{tabular} & \\\\")
@example(name="% a comment\n")
def test_latex_has_a_cell_a_column_whatever_a_data_set_is_called(name: str) -> None:
    lines = to_latex(table_of(name)).splitlines()
    assert len(lines) == 8  # tabular, three rules, a header, two rows, the end
    body = [line for line in lines if line.endswith(r" \\")]
    assert [len(re.findall(r"(?<!\\)&", line)) for line in body] == [1] * 3
    assert not re.search(r"(?<!\\)[%#~^]", "".join(lines))
    for opened in ("{", "}"), (r"\begin", r"\end"):
        text = re.sub(r"\\[{}]", "", "".join(lines))
        assert text.count(opened[0]) == text.count(opened[1])


@FIXTURE
@given(name=NAMES)
@example(name="=cmd|' /C calc'!A0")
@example(name='"quoted", with a comma')
def test_csv_reads_back_whatever_a_data_set_is_called(
    make_folds: Callable[..., pd.DataFrame], name: str
) -> None:
    text = to_csv(make_folds({(name, "GIN", "vpa"): [0.8, 0.9]}))
    for row in csv.DictReader(io.StringIO(text)):
        assert csv_text(row["dataset"]) == plain(name)
        assert not any(cell.lstrip().startswith(("=", "+", "-", "@")) for cell in row.values())
    back = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    assert back["dataset"].map(csv_text).tolist() == [plain(name)] * 2
