"""The page in a real browser: what it logs and how it is laid out."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from html import escape, unescape
from pathlib import Path

import pytest
import torch
from torch_geometric.nn import GIN

import gnn_vpa

from .conftest import Sample

BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(BROWSER is None, reason="neither Chromium nor Chrome is on the PATH"),
]

DARK, LIGHT = (f"--blink-settings=preferredColorScheme={scheme}" for scheme in (0, 1))
LOOK = """<script>
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
</script>"""

Browse = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def browse(tmp_path: Path) -> Browse:
    """Run the browser on a page with some flags."""

    def run(url: str, *flags: str) -> subprocess.CompletedProcess[str]:
        assert BROWSER is not None
        command = [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"]
        command += ["--disable-dev-shm-usage", "--hide-scrollbars", "--enable-logging=stderr"]
        command += [f"--user-data-dir={tmp_path / 'profile'}", *flags, url]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)

    return run


@pytest.fixture
def page(sample: Sample, tmp_path: Path) -> Path:
    torch.manual_seed(0)
    path = tmp_path / "signal.html"
    gnn_vpa.probe(GIN(8, 16, 4), sample.x, sample.edge_index).to_html(path)
    return path


def look(page: Path, browse: Browse, *flags: str, width: int = 1400) -> dict[str, object]:
    """What a script finds in a copy of the page that lets it run, in a frame of some width."""
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text("utf-8"))
    frame = page.with_name("frame.html")
    frame.write_text(
        '<meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>none</title>'
        f'<iframe width="{width}" height="900" style="border: 0" '
        f'srcdoc="{escape(text.replace("</body>", LOOK + "</body>"))}"></iframe>',
        encoding="utf-8",
    )
    dom = browse(frame.as_uri(), "--dump-dom", *flags).stdout
    title = re.search(r"<title>(.*?)</title>", dom, re.DOTALL)
    assert title is not None
    found: dict[str, object] = json.loads(unescape(title[1]))
    return found


def brightness(colour: object) -> float:
    return sum(map(int, re.findall(r"\d+", str(colour))[:3])) / (3 * 255)


def test_the_console_stays_empty(page: Path, browse: Browse) -> None:
    logged = browse(page.as_uri(), "--dump-dom").stderr.splitlines()
    assert [line for line in logged if "CONSOLE" in line] == []


@pytest.mark.parametrize("width", [360, 1400])
def test_the_page_never_scrolls_sideways(page: Path, browse: Browse, width: int) -> None:
    found = look(page, browse, width=width)
    assert found["width"] == width
    assert found["page"] == width
    assert found["wide"] == []
    assert min(found["figure"]) > 300  # type: ignore[type-var, arg-type]


def test_light_and_dark_are_what_the_reader_prefers(page: Path, browse: Browse) -> None:
    light, dark = (look(page, browse, scheme) for scheme in (LIGHT, DARK))
    assert brightness(light["paper"]) == 1
    assert brightness(dark["paper"]) < 0.2 < 0.8 < brightness(dark["ink"])
    assert dark["label"] == dark["ink"]
    assert light["label"] == light["ink"]
