"""The page in a real browser: what it logs and how it is laid out."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import gnn_vpa
from gnn_vpa.auditing import render

from .conftest import Make

pytestmark = pytest.mark.browser

LOOK = """
const width = document.documentElement.clientWidth;
const wide = [...document.querySelectorAll("body *")].filter(
  e => !e.closest(".scroll *, .skip, .hidden") && e.getBoundingClientRect().right > width + 1);
const bars = [...document.querySelectorAll(".bar")].map(e =>
  e.getBoundingClientRect().width / e.parentElement.clientWidth);
parent.document.title = JSON.stringify({
  width, page: document.documentElement.scrollWidth, wide: wide.map(e => e.outerHTML.slice(0, 80)),
  shortest: Math.min(...bars), longest: Math.max(...bars),
});
"""

Browse = Callable[..., subprocess.CompletedProcess[str]]
Look = Callable[..., dict[str, object]]


@pytest.fixture(scope="module")
def page(toys: Make, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "audit.html"
    audits = [gnn_vpa.audit(toys(n), folds=2, baselines=True) for n in (12, 14)]
    path.write_text(render(audits), encoding="utf-8")
    return path


def test_the_console_stays_empty(page: Path, browse: Browse) -> None:
    logged = browse(page.as_uri(), "--dump-dom").stderr.splitlines()
    assert [line for line in logged if "CONSOLE" in line] == []


@pytest.mark.parametrize("width", [360, 1400])
def test_the_page_never_scrolls_sideways(page: Path, look: Look, width: int) -> None:
    found = look(page, LOOK, width=width)
    assert (found["width"], found["page"], found["wide"]) == (width, width, [])
    # The majority has a half, and the best possible is all: bars show shares of the whole.
    assert found["shortest"] < 0.51 < 0.85 < found["longest"] <= 1
