"""The page in a real browser: what it logs and how it is laid out."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch_geometric.nn import GIN

import gnn_vpa

from .conftest import Sample

pytestmark = pytest.mark.browser

DARK, LIGHT = (f"--blink-settings=preferredColorScheme={scheme}" for scheme in (0, 1))
LOOK = """
const width = document.documentElement.clientWidth;
const wide = [...document.querySelectorAll("body *")].filter(
  e => !e.closest(".scroll *, .skip") && e.getBoundingClientRect().right > width + 1);
const style = getComputedStyle(document.body);
const figure = document.querySelector("svg").getBoundingClientRect();
const text = document.querySelector("svg text");
parent.document.title = JSON.stringify({
  width, page: document.documentElement.scrollWidth, wide: wide.map(e => e.outerHTML.slice(0, 80)),
  ink: style.color, paper: style.backgroundColor, label: getComputedStyle(text).fill,
  figure: [figure.width, figure.height], rows: document.querySelectorAll("tbody tr").length,
});
"""

Browse = Callable[..., subprocess.CompletedProcess[str]]
Look = Callable[..., dict[str, object]]


@pytest.fixture
def page(sample: Sample, tmp_path: Path) -> Path:
    torch.manual_seed(0)
    path = tmp_path / "signal.html"
    gnn_vpa.probe(GIN(8, 16, 4), sample.x, sample.edge_index).to_html(path)
    return path


def brightness(colour: object) -> float:
    return sum(map(int, re.findall(r"\d+", str(colour))[:3])) / (3 * 255)


def test_the_console_stays_empty(page: Path, browse: Browse) -> None:
    logged = browse(page.as_uri(), "--dump-dom").stderr.splitlines()
    assert [line for line in logged if "CONSOLE" in line] == []


def test_it_never_scrolls_sideways_and_is_light_or_dark_as_the_reader_prefers(
    page: Path, look: Look
) -> None:
    light, dark = look(page, LOOK, LIGHT, width=360), look(page, LOOK, DARK, width=1400)
    for found, width in ((light, 360), (dark, 1400)):
        assert found["width"] == width
        assert found["page"] == width
        assert found["wide"] == []
        assert min(found["figure"]) > 300  # type: ignore[call-overload]
    assert brightness(light["paper"]) == 1
    assert brightness(dark["paper"]) < 0.2 < 0.8 < brightness(dark["ink"])
    assert dark["label"] == dark["ink"]
    assert light["label"] == light["ink"]
