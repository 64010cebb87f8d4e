import re

import torch
from torch_geometric.data import Data

import gnn_vpa
from gnn_vpa.auditing import render
from gnn_vpa.auditing._page import piece
from gnn_vpa.graphs import GraphSet

from .conftest import Make


def test_a_page_has_the_sentences_the_tables_and_a_picture(toys: Make) -> None:
    found = gnn_vpa.audit(toys(12), folds=2, baselines=True)
    page = found.to_html()
    assert page.startswith("<!DOCTYPE html>")
    for finding in found.findings:
        assert finding.text in page.replace("&#39;", "'").replace("\N{NO-BREAK SPACE}", " ")
    for title in ("What networks can know", "Without any graph network", "Classes", "Sizes"):
        assert title in page
    assert "<svg" in page
    assert "<script" not in page
    assert re.findall(r'(?:src|href)="(?!#)', page) == []


def test_several_data_sets_share_a_page_and_a_table(toys: Make) -> None:
    audits = [
        gnn_vpa.audit(GraphSet.from_pyg(toys(4), name), folds=2, baselines=False)
        for name in ("first", "second")
    ]
    page = render(audits)
    assert page.count("<article") == 2
    assert "2 data sets: first, second" in page


def test_names_from_outside_are_text(toys: Make) -> None:
    evil = GraphSet.from_pyg(toys(2), "<script>alert(1)</script>\x1b[31m")
    found = gnn_vpa.audit(evil, folds=2, baselines=False)
    for text in (found.to_html(), piece(found)):
        assert "<script" not in text
        assert "\x1b" not in text
    assert "\x1b" not in str(found)


def test_a_page_needs_neither_classes_nor_edges() -> None:
    none = torch.empty(2, 0, dtype=torch.int64)
    page = gnn_vpa.audit([Data(edge_index=none, num_nodes=2)]).to_html()
    assert "The graphs have no labels" in page
    assert "<svg" not in page


def test_a_notebook_shows_the_sentences_and_the_tables(toys: Make) -> None:
    found = gnn_vpa.audit(toys(4), folds=2, baselines=False)
    shown = found._repr_html_()
    assert shown.count("<li>") == len(found.findings)
    assert "<caption>Classes</caption>" in shown
