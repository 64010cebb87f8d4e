"""The site builds without a warning; every name, command, link and number in it is there."""

import fcntl
import functools
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from html import unescape
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[1]
Extension: TypeAlias = Callable[[str], ModuleType]
NOT_SOURCES = ("build", "dist", "docs", "runs")  # of the folders in the root, for the site


@pytest.fixture
def extension(monkeypatch: pytest.MonkeyPatch) -> Iterator[Extension]:
    """Import one of the modules that make the site: `extension("records")`."""
    known = set(sys.modules)
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    yield importlib.import_module
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(ROOT / "docs")):
            del sys.modules[name]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built without running tutorials; once, however many workers ask for it."""
    for package in ("sphinx", "myst_parser", "sphinx_gallery", "pydata_sphinx_theme"):
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install -e '.[docs]'")
    base = tmp_path_factory.getbasetemp()
    copy = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "site"
    out = copy / "out"
    with copy.with_suffix(".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)  # until it is closed
        if not (copy / "log").exists():
            copy.mkdir()
            shutil.copytree(
                ROOT / "docs", copy / "docs", ignore=shutil.ignore_patterns("_generated")
            )
            for path in ROOT.iterdir():
                if not path.name.startswith(".") and path.name not in NOT_SOURCES:
                    (copy / path.name).symlink_to(path)
            command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-t", "quick"]
            done = subprocess.run(
                [*command, "docs", "out"],
                cwd=copy,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                capture_output=True,
                text=True,
                timeout=500,
            )
            (copy / "log").write_text(f"{done.returncode}\n{done.stdout}{done.stderr}")
    code, _, log = (copy / "log").read_text().partition("\n")
    assert code == "0", log
    return out


class Page(HTMLParser):
    """What a page links to, loads, and can be linked at."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element's addresses and its name."""
        values = {name: value for name, value in attrs if value}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in ("script", "img", "iframe", "source") and "src" in values:
            self.loads.append(values["src"])
        if tag == "link" and values.get("rel") in ("stylesheet", "icon", "preload"):
            self.loads.append(values["href"])


@functools.cache
def pages_of(site: Path) -> dict[Path, Page]:
    return {
        path: Page(path) for path in sorted(site.rglob("*.html")) if "_static" not in path.parts
    }


def test_every_link_of_the_site_leads_somewhere(site: Path) -> None:
    pages = pages_of(site)
    assert len(pages) > 60
    wrong = []
    for path, page in pages.items():
        for link in {*page.links, *page.loads}:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
            if parts.path.endswith("playground.html") and not (ROOT / "docs/playground").exists():
                continue
            if not target.exists():
                wrong.append(f"{path.relative_to(site)}: {link}")
            anchors = pages[target].anchors if target in pages else {unquote(parts.fragment)}
            if parts.fragment and unquote(parts.fragment) not in anchors:
                wrong.append(f"{path.relative_to(site)}: {link}")
    assert wrong == []


def test_no_page_loads_anything_from_a_network(site: Path) -> None:
    loads = {load for page in pages_of(site).values() for load in page.loads}
    assert loads
    assert [load for load in loads if urlsplit(load).netloc] == []


def test_the_text_for_programs_lists_pages_that_are_there(site: Path) -> None:
    listed = re.findall(r"\]\((.+?)\)", (site / "llms.txt").read_text("utf-8"))
    assert {"index.html", "ten-minutes.html", "theory.html"} <= set(listed)
    assert [name for name in listed if not (site / name).exists()] == []
    assert "# Theory" in (site / "llms-full.txt").read_text("utf-8")


def test_the_reference_has_an_entry_for_every_public_name(extension: Extension) -> None:
    reference = extension("reference")
    homes = reference.home_of_names()
    text = "".join(reference.pages().values())
    described = set(re.findall(r"^\.\. (?:auto\w+|py:data):: (\S+)$", text, flags=re.MULTILINE))
    assert set(homes.values()) == described
    assert homes["gnn_vpa.ops.Graph"] == "gnn_vpa.Graph"


def test_the_commands_have_a_page_each_with_every_option(extension: Extension) -> None:
    commands = extension("commands")
    pages = commands.pages()
    found = dict(commands.commands())
    assert {"gnn-vpa run", "gnn-vpa data get"} <= set(found)
    for words, command in found.items():
        page = pages[f"commands/{words.replace(' ', '-')}.md"]
        assert page.startswith(f"# {words}\n")
        for parameter in command.params:
            if not getattr(parameter, "hidden", False):
                name = parameter.opts[-1] if parameter.opts[-1].startswith("-") else "\n: "
                assert name in page, f"{words}: {name}"


def test_numbers_in_pages_are_those_of_the_records(extension: Extension) -> None:
    records = extension("records")
    pages = records.pages()
    assert ROOT / "README.md" in pages
    for page in pages:
        text = page.read_text("utf-8")
        assert records.written(text) == text, f"{page.name}: run python docs/_ext/records.py"


def test_a_wrong_number_in_a_page_would_be_seen(extension: Extension) -> None:
    records = extension("records")
    text = "<!-- records: fair_answer -->\nvpa leads on 6 of 6.\n<!-- end of records -->\n"
    assert records.written(text) != text


def test_the_baseline_without_edges_is_ahead_on_proteins() -> None:
    # docs/which-aggregation.md says so.
    section = (ROOT / "docs/fair.md").read_text("utf-8").split("## PROTEINS_full", 1)[1]
    rows = re.findall(r"^\| (\S+) \| \S+ ± \S+ \| (?:ours|published) \|", section, flags=re.M)
    assert rows[0] == "Baseline"


MAIN = (
    *("index", "ten-minutes", "theory", "which-aggregation", "results", "faq", "glossary"),
    *("howto/index", "howto/convert", "fair", "probe", "_generated/tutorials/index"),
    *(
        "_generated/tutorials/02_probe",
        "_generated/reference/index",
        "_generated/reference/gnn_vpa.run",
    ),
    *("_generated/reference/gnn_vpa.ops", "_generated/commands/gnn-vpa-run"),
)


@pytest.fixture(params=["quick", "whole"])
def built(request: pytest.FixtureRequest) -> Path:
    """The site as the tests build it, and as `make docs` does, where that was run."""
    if request.param == "quick":
        folder: Path = request.getfixturevalue("site")
        return folder
    whole = ROOT / "build" / "site"
    if not (whole / "index.html").exists():
        pytest.skip("the whole site was not built: make docs")
    return whole


Browse: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]


def looked_at(pages: list[Path], browse: Browse, folder: Path) -> dict[str, list[str]]:
    """Return what is wrong with pages, by page, width and colours."""
    assert [page for page in pages if not page.exists()] == []
    script = (ROOT / "tests" / "look_at_site.js").read_text("utf-8")
    frame = folder / "frame.html"
    frame.write_text(
        f'<!DOCTYPE html><meta charset="utf-8"><title>none</title><body><script>{script}\n'
        f"main({json.dumps([page.as_uri() for page in pages])}, [1280, 400]);</script>",
        encoding="utf-8",
    )
    # Frames of files are of another origin each, unless this flag is set.
    flags = ("--dump-dom", "--allow-file-access-from-files", "--virtual-time-budget=60000")
    title = re.search(r"<title>(.*?)</title>", browse(frame.as_uri(), *flags).stdout, re.DOTALL)
    assert title is not None
    told = json.loads(unescape(title[1]))
    assert told["looked"] == 4 * len(pages)
    found: dict[str, list[str]] = told["found"]
    return found


@pytest.mark.browser
def test_the_main_pages_can_be_read_wide_and_narrow_in_light_and_dark(
    built: Path, browse: Browse, tmp_path: Path
) -> None:
    found = looked_at([built / f"{name}.html" for name in MAIN], browse, tmp_path)
    assert found == {}, json.dumps(found, indent=1)


@pytest.mark.browser
def test_what_is_wrong_with_a_page_is_seen(browse: Browse, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        '<!DOCTYPE html><html><title> </title><main><article><h1 id="a">A</h1><h3 id="a">C</h3>'
        '<img src="x.png" alt=""><a href="#"></a><p style="color: #999">pale</p>'
        "<table><tr><th></th></tr></table><details open><summary><i></i></summary></details>"
        '<div role="region" aria-label="B"></div><div role="region" aria-label="B"></div>'
        '<div style="overflow-x: auto; width: 90px"><p style="width: 200px">far</p></div>'
        '<button><b style="display: none">hidden</b></button>'
        '<div style="width: 500px">wide</div></article></main></html>',
        encoding="utf-8",
    )
    found = looked_at([page], browse, tmp_path)
    wide, narrow = found[f"{page.as_uri()} 1280 light"], found[f"{page.as_uri()} 400 light"]
    seen = {problem.split(":")[0].split(" 2.")[0] for problem in narrow}
    assert seen - {problem.split(":")[0].split(" 2.")[0] for problem in wide} == {
        "scrolls sideways"
    }
    assert {"no language", "no title", "no alternative text", "no name", "contrast"} <= seen
    assert {"a heading is skipped", "ids used twice", "heads nothing"} <= seen
    assert {"regions of one name", "scrolls, and not by keyboard"} <= seen
    nameless = [problem for problem in wide if problem.startswith("no name")]
    assert [re.search(r"<(\w+)", problem)[1] for problem in nameless] == ["a", "summary", "button"]
