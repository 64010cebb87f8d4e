import math
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest

from gnn_vpa.analysis import render_report, write_report

MakeFolds = Callable[..., pd.DataFrame]
NOTHING = pd.DataFrame()
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """The elements of a page, and whether they are nested as they should be."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def all(self, *tags: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag in tags]


def test_the_page_is_well_formed_and_named(full_page: str) -> None:
    page = Page(full_page)
    assert full_page.lstrip().lower().startswith("<!doctype html>")
    assert page.all("html") == [{"lang": "en"}]
    assert {"charset": "utf-8"} in page.all("meta")
    assert len(page.all("title")) >= 1


def test_nothing_is_asked_of_a_network(full_page: str) -> None:
    page = Page(full_page)
    policy = next(m for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert policy["content"] == "default-src 'none'; style-src 'unsafe-inline'"
    assert page.all("script", "link", "img", "iframe", "object", "embed") == []
    assert all((a["href"] or "").startswith("#") for a in page.all("a"))
    assert "url(" not in full_page
    assert "@import" not in full_page
    assert set(re.findall(r"https?://[^\"' ]+", full_page)) == {"http://www.w3.org/2000/svg"}


def test_links_lead_somewhere_and_ids_are_unique(full_page: str) -> None:
    page = Page(full_page)
    ids = Counter(attributes["id"] for _, attributes in page.elements if "id" in attributes)
    assert set(ids.values()) == {1}
    targets = [a["href"][1:] for a in page.all("a")]
    labels = [
        attributes[name]
        for _, attributes in page.elements
        for name in ("aria-labelledby", "aria-describedby")
        if name in attributes
    ]
    assert set(targets) | set(labels) <= set(ids)


def test_headings_go_down_one_step_at_a_time(full_page: str) -> None:
    levels = [int(tag[1]) for tag, _ in Page(full_page).elements if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_a_reader_who_does_not_see_finds_the_way(full_page: str) -> None:
    page = Page(full_page)
    assert len(page.all("main")) == len(page.all("header")) == len(page.all("nav")) == 1
    assert len(page.all("caption")) == len(page.all("table")) == 4 * 2 + 3
    assert all(th.get("scope") in ("col", "row") for th in page.all("th"))
    assert all(svg["role"] == "img" and svg["aria-label"] for svg in page.all("svg"))
    first = next(attributes for tag, attributes in page.elements if tag in ("a", "button", "input"))
    assert first["href"] == "#main"


def test_what_scrolls_can_be_reached_by_keyboard(full_page: str) -> None:
    scrolling = [d for d in Page(full_page).all("div") if d.get("class") == "scroll"]
    assert len(scrolling) == 4 * 2 + 3  # two of the answer for each model, and three
    assert all(
        d["tabindex"] == "0" and d["role"] == "region" and d["aria-label"] for d in scrolling
    )


def test_every_part_is_there(full_page: str) -> None:
    page = Page(full_page)
    figures = len(page.all("figure"))
    # The answer of four models over all and on each, their learning curves, and dots.
    assert figures == 4 * (1 + 9) + 4 * 9 + 9
    of_answer = 12 + 4 * 9
    assert full_page.count('<th scope="row">') == of_answer + 14 + 8 + 72
    for words in (
        "paper</span> (71.8 ± 4.0)",
        "Majority class",
        "WL subtree kernel + SVM",
        "2.13.0+cpu",
    ):
        assert words in full_page


def test_the_same_results_make_the_same_page(
    full_page: str,
    full_run: pd.DataFrame,
    make_curves: Callable[..., pd.DataFrame],
    provenance: dict[str, object],
) -> None:
    assert render_report(full_run, make_curves(full_run), provenance) == full_page


def test_what_differs_from_the_paper_is_marked_without_colour(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    far = {("MUTAG", "GIN", "vpa"): [0.4, 0.41, 0.42]}
    near = {("MUTAG", "GIN", "vpa"): [0.86, 0.87, 0.88]}
    assert "≠</small>" in render_report(make_folds(far), NOTHING, {})
    assert "≠</small>" not in render_report(make_folds(near), NOTHING, {})


def test_no_finished_fold() -> None:
    text = render_report(NOTHING, NOTHING, {})
    assert "No fold has finished" in text
    assert Page(text).all("table", "svg") == []


def test_one_cell_and_one_fold(
    make_folds: Callable[..., pd.DataFrame], make_curves: Callable[..., pd.DataFrame]
) -> None:
    folds = make_folds({("MUTAG", "GIN", "vpa"): [0.8]})
    page = Page(render_report(folds, make_curves(folds, 1), {}))
    assert len(page.all("table")) == 1
    assert len(page.all("figure")) == 2


def test_diverged_folds_are_shown_and_explained(
    make_folds: Callable[..., pd.DataFrame], make_curves: Callable[..., pd.DataFrame]
) -> None:
    folds = make_folds(
        {("MUTAG", "GIN", "sum"): [math.nan] * 3, ("MUTAG", "GIN", "vpa"): [0.8] * 3}
    )
    text = render_report(folds, make_curves(folds), {})
    assert "<small>3 diverged</small>" in text
    assert "3 of 6 trainings diverged: the loss was no longer a number" in text
    assert "fold 0 at epoch 17" in text


def test_data_of_ones_own_has_no_paper_beside_it(make_folds: Callable[..., pd.DataFrame]) -> None:
    text = render_report(make_folds({("mine", "GIN", "vpa"): [0.8, 0.9]}), NOTHING, {})
    assert "paper" not in re.sub(r"(?s)<style>.*</style>", "", text).replace("Setting: ", "")


def test_another_protocol_is_said_to_be_one(
    make_folds: Callable[..., pd.DataFrame], make_curves: Callable[..., pd.DataFrame]
) -> None:
    folds = make_folds({("MUTAG", "GIN", "vpa"): [0.8] * 3}, variant="printed")
    text = render_report(folds, make_curves(folds, 20), {})
    assert "Compare with the paper with care" in text
    assert "every cell has 3 folds instead of 10" in text
    assert "20 epochs instead of 200" in text
    assert "not as released but printed" in text


def test_the_papers_protocol_needs_no_care(
    make_folds: Callable[..., pd.DataFrame], make_curves: Callable[..., pd.DataFrame]
) -> None:
    folds = make_folds({("MUTAG", "GIN", "vpa"): [0.8] * 10})
    assert "with care" not in render_report(folds, make_curves(folds, 200), {})


def test_each_setting_has_its_own_table(make_folds: Callable[..., pd.DataFrame]) -> None:
    cell = {("IMDB-B", "GIN", "vpa"): [0.7, 0.8]}
    folds = pd.concat([make_folds(cell), make_folds(cell, features="degree")])
    text = render_report(folds, NOTHING, {})
    assert len(Page(text).all("table")) == 2
    assert "(72.0 ± 4.4)" in text
    assert "(73.7 ± 3.7)" in text


def test_names_cannot_break_out(
    make_folds: Callable[..., pd.DataFrame], make_curves: Callable[..., pd.DataFrame]
) -> None:
    nasty = "</style><script>alert('1')</script>"
    folds = make_folds({(nasty, nasty, "vpa"): [0.8, 0.9]}, variant=nasty)
    text = render_report(folds, make_curves(folds), {nasty: {nasty: [nasty, nasty]}})
    assert Page(text).all("script") == []


def test_provenance_is_shown_at_any_depth() -> None:
    text = render_report(NOTHING, NOTHING, {"a_b": {"c": {"d": [1, 2]}}, "e": None})
    assert "<dt>a_b</dt>" in text
    assert "1, 2" in text


def test_written_as_text_for_all_to_read(tmp_path: Path) -> None:
    path = write_report(NOTHING, NOTHING, {"name": "Ünï"}, tmp_path / "new" / "report.html")
    assert "Ünï" in path.read_text(encoding="utf-8")
    assert stat.S_IMODE(path.stat().st_mode) & 0o444 == 0o444
    assert [p.name for p in path.parent.iterdir()] == ["report.html"]


def test_a_failure_leaves_the_old_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")

    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.raises(OSError, match="No space"):
        write_report(NOTHING, NOTHING, {}, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def _signals(aggregations: Sequence[str], features: str = "auto", layers: int = 3) -> pd.DataFrame:
    method = {"dataset": "MUTAG", "model": "GCN", "variant": "released", "features": features}
    numbers = {"variance": 1.0, "backward_variance": 1.0, "distance": 0.5}
    return pd.DataFrame(
        [
            {**method, "aggregation": aggregation, "layer": f"convs.{layer}", **numbers}
            for aggregation in aggregations
            for layer in range(layers)
        ]
    )


def test_the_page_shows_the_signal_beside_the_accuracy(make_folds: MakeFolds) -> None:
    folds = make_folds({("MUTAG", "GCN", aggr): [0.8, 0.9] for aggr in ("sum", "vpa")})
    page = render_report(folds, folds[:0], {}, _signals(["sum", "vpa"]))
    assert "The signal at the start, beside the accuracy" in page
    assert "vpa 85.0 %" in page
    assert "Variance by layer of GCN on MUTAG" in page
    assert "The signal at the start" not in render_report(folds, folds[:0], {})
    one_layer = render_report(folds, folds[:0], {}, _signals(["sum", "vpa"], layers=1))
    assert "Variance by layer of GCN" not in one_layer  # one layer makes no line


def test_the_signal_of_features_that_are_the_datas_own_is_shown(make_folds: MakeFolds) -> None:
    folds = make_folds({("MUTAG", "GCN", "sum"): [0.8, 0.9]}, features="labels")
    page = render_report(folds, folds[:0], {}, _signals(["sum"], features="labels"))
    assert "Variance by layer of GCN on MUTAG" in page


def test_a_training_that_diverged_leaves_the_others_accuracy(make_folds: MakeFolds) -> None:
    folds = make_folds({("MUTAG", "GCN", "sum"): [math.nan, 0.9]})
    page = render_report(folds, folds[:0], {}, _signals(["sum"]))
    assert ">sum 90.0 %*</text>" in page
    assert "sum 90.0 % (1 of 2 folds), variance" in page


def test_no_control_character_of_a_name_is_on_the_page(
    make_folds: Callable[..., pd.DataFrame], make_curves: Callable[..., pd.DataFrame]
) -> None:
    nasty = "a\x1b[31m\x00\u202e\ud800b"
    folds = make_folds({(nasty, "GIN", "vpa"): [0.8, 0.9]}, variant=nasty)
    text = render_report(folds, make_curves(folds), {nasty: [nasty]})
    text.encode("utf-8")
    assert not set(text) & set("\x1b\x00\u202e")
    for picture in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        ElementTree.fromstring(picture)


def test_what_a_number_stands_for_is_beside_it(make_folds: Callable[..., pd.DataFrame]) -> None:
    folds = make_folds(
        {
            ("mine", "GIN", "sum"): [0.8] * 7 + [math.nan] * 3,
            ("mine", "GIN", "vpa"): [0.9] * 10,
            ("single", "GIN", "vpa"): [1.0] * 10,
        }
    )
    folds["classes"] = folds["dataset"].map({"mine": 2, "single": 1})
    text = re.sub(r"\s+", " ", render_report(folds, NOTHING, {}))
    assert "80.0 ± 0.0 (7 of 10 folds)" in text
    assert "100.0 ± 0.0 (one class)" in text
    assert "(7 of 20 pairs)" in text
    assert "<td>7 of 20</td>" in text
    assert "mine has only" not in text
    assert "single has only one class" in text


@pytest.mark.parametrize(
    ("precisions", "says"),
    [(["bfloat16"], True), (["float32", "bfloat16"], False), (["float32"], False), (None, False)],
)
def test_rounded_rows_are_named_where_all_trainings_have_them(
    make_folds: MakeFolds, precisions: list[str] | None, says: bool
) -> None:
    configuration = {} if precisions is None else {"precision": precisions}
    folds = make_folds({("MUTAG", "GIN", "vpa"): [0.8]})
    page = render_report(folds, NOTHING, {"configuration": configuration})
    assert ("rows were kept in bfloat16." in page) == says
