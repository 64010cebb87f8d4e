import io
import re
import shutil
import subprocess

import pandas as pd
import pytest

from gnn_vpa.analysis import accuracy_table, to_csv, to_latex, to_markdown


def test_markdown_has_a_row_a_method_and_equal_columns(full_run) -> None:
    lines = to_markdown(accuracy_table(full_run)).splitlines()
    assert len(lines) == 2 + 14
    assert {line.count("|") for line in lines} == {9 + 4}
    assert lines[0].endswith("| NCI1 | Avg | p |")
    assert "(2.0e-5)" in lines[2]


def test_markdown_marks_the_best_and_may_leave_the_paper_out(make_folds) -> None:
    folds = make_folds({("MUTAG", "GIN", "sum"): [0.8] * 2, ("MUTAG", "GIN", "vpa"): [0.9] * 2})
    assert "| **90.0 ± 0.0** (86.7 ± 4.4; +3.3) ≠ |" in to_markdown(accuracy_table(folds))
    assert "86.7" not in to_markdown(accuracy_table(folds), paper=False)


def test_markdown_shows_what_is_missing(make_folds) -> None:
    folds = make_folds({("MUTAG", "GIN", "vpa"): [0.8], ("PTC", "GCN", "vpa"): [0.8]})
    gin = to_markdown(accuracy_table(folds)).splitlines()[2]
    assert gin == "| GIN+vpa | 80.0 (86.7 ± 4.4; \N{MINUS SIGN}6.7) | \N{EN DASH} | \N{EN DASH} |"


def test_markdown_keeps_a_name_in_its_column(make_folds) -> None:
    folds = make_folds({("a|b", "GIN", "vpa"): [0.8]})
    assert r"a\|b" in to_markdown(accuracy_table(folds)).splitlines()[0]


NASTY = r"50%_of & $1 #2 {x} ~^\ <y>"


def test_latex_lines_are_complete_and_names_escaped(make_folds) -> None:
    folds = make_folds({(NASTY, "GIN", "vpa"): [0.8, 0.9], ("MUTAG", "GIN", "vpa"): [0.8, 0.9]})
    text = to_latex(accuracy_table(folds))
    body = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert all(len(re.findall(r"(?<!\\)&", line)) == 3 for line in body)
    assert r"50\%\_of \& \$1 \#2 \{x\}" in text
    assert text.count(r"\begin{tabular}{lccc}") == text.count(r"\end{tabular}") == 1
    assert text.isascii()


def test_latex_separates_the_models(full_run) -> None:
    text = to_latex(accuracy_table(full_run))
    assert text.count(r"\midrule") == 5
    assert r"\textbf{" in text


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex on the PATH")
def test_latex_compiles(full_run, make_folds, tmp_path) -> None:
    nasty = make_folds(
        {(NASTY, "GIN", "sum"): [0.8, float("nan")], (NASTY, "GIN", "vpa"): [0.9] * 2}
    )
    tables = "\n\n".join(to_latex(accuracy_table(folds)) for folds in (full_run, nasty))
    source = (
        "\\documentclass{article}\\usepackage{booktabs}\\begin{document}"
        f"\\tiny {tables}\\end{{document}}"
    )
    (tmp_path / "table.tex").write_text(source, encoding="ascii")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "table.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


def test_csv_has_a_row_a_fold_and_reads_back(full_run) -> None:
    shuffled = full_run.sample(frac=1, random_state=0)
    assert to_csv(shuffled) == to_csv(full_run)
    back = pd.read_csv(
        io.StringIO(to_csv(full_run)), keep_default_na=False, na_values={"test_acc": [""]}
    )
    assert len(back) == len(full_run)
    assert back["test_acc"].sum() == pytest.approx(full_run["test_acc"].sum())
