"""The page in a real browser: what it logs, asks for, how it is laid out and printed."""

import re
import subprocess
import threading
from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

DARK, LIGHT = (f"--blink-settings=preferredColorScheme={scheme}" for scheme in (0, 1))
PROBE = """
const width = document.documentElement.clientWidth;
const wide = [...document.querySelectorAll("body *")].filter(
  e => !e.closest(".scroll *, .skip, .hidden") && e.getBoundingClientRect().right > width + 1);
const style = getComputedStyle(document.body);
const table = document.querySelector(".scroll");
parent.document.title = JSON.stringify({
  width, page: document.documentElement.scrollWidth, wide: wide.map(e => e.outerHTML.slice(0, 80)),
  scrolls: table.scrollWidth > table.clientWidth, ink: style.color, paper: style.backgroundColor,
  line: getComputedStyle(document.querySelector(".line.mean")).stroke,
  font: Math.min(...[...document.querySelectorAll("svg")].map(
    s => 11 * s.getBoundingClientRect().width / s.viewBox.baseVal.width)),
});
"""

Browse = Callable[..., subprocess.CompletedProcess[str]]
Look = Callable[..., dict[str, object]]


@pytest.fixture
def page(full_page: str, tmp_path: Path) -> Path:
    """The page as a file."""
    path = tmp_path / "report.html"
    path.write_text(full_page, encoding="utf-8")
    return path


def console(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def brightness(colour: object) -> float:
    """From 0 to 1, of "rgb(r, g, b)"."""
    return sum(map(int, re.findall(r"\d+", str(colour)))) / (3 * 255)


def test_the_console_stays_empty(page: Path, browse: Browse) -> None:
    assert console(browse(page.as_uri(), "--dump-dom")) == []


def test_the_console_would_have_told(page: Path, browse: Browse) -> None:
    """The page's own policy forbids what a network would be asked for."""
    image = '<img src="http://127.0.0.1:9/x.png" alt=""></body>'
    page.write_text(page.read_text("utf-8").replace("</body>", image), encoding="utf-8")
    assert "Content Security Policy" in console(browse(page.as_uri(), "--dump-dom"))[0]


def test_nothing_but_the_page_is_asked_for(page: Path, browse: Browse) -> None:
    asked: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def log_request(self, *_: object) -> None:
            asked.append(self.path)

        def log_message(self, *_: object) -> None:
            """A test's output is no place for a server's log."""

    handler = partial(Handler, directory=str(page.parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browse(f"http://127.0.0.1:{server.server_port}/{page.name}", "--dump-dom")
        server.shutdown()
    # Browsers ask for the icon of any site by themselves.
    assert [path for path in asked if path != "/favicon.ico"] == ["/report.html"]


def test_it_never_scrolls_sideways_and_is_light_or_dark_as_the_reader_prefers(
    page: Path, look: Look
) -> None:
    light, dark = look(page, PROBE, LIGHT, width=360), look(page, PROBE, DARK, width=1400)
    for found, width in ((light, 360), (dark, 1400)):
        assert found["width"] == width
        assert found["page"] == width
        assert found["wide"] == []
        assert found["scrolls"] is (width == 360)
        assert found["font"] >= 9.5  # the figures' text stays readable, in CSS pixels
    assert (light["paper"], light["line"]) == ("rgb(255, 255, 255)", "rgb(0, 114, 178)")
    assert brightness(dark["paper"]) < 0.2 < 0.8 < brightness(dark["ink"])
    assert dark["line"] != light["line"]


def test_it_prints(page: Path, browse: Browse) -> None:
    paper = page.with_suffix(".pdf")
    browse(page.as_uri(), DARK, f"--print-to-pdf={paper}", "--no-pdf-header-footer")
    content = paper.read_bytes()
    assert content.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type\s*/Page\b", content)) > 3
