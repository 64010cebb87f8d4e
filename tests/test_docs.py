"""The code in the pages runs, block after block, as a reader would type it; their links exist."""

import contextlib
import io
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from gnn_vpa.cli._app import app

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [
    *(ROOT / "README.md", ROOT / "CONTRIBUTING.md"),
    *sorted(DOCS.glob("*.md")),
    *sorted(DOCS.glob("howto/*.md")),
]

TUTORIALS = sorted(DOCS.glob("tutorials/*.py"))

# A block that cannot run here says why, for readers of the source: <!-- not run: needs a GPU -->
SKIP = re.compile(r"^<!-- not run: \S.* -->\n+\Z", flags=re.MULTILINE)
FENCE = re.compile(r"^```python\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)

each_page = pytest.mark.parametrize(
    "page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix()
)


def blocks(text: str) -> list[str]:
    """Return the blocks that run, each with its line numbers in the page."""
    fences = list(FENCE.finditer(text))
    spelled = re.findall(r"^[ \t]*[`~]{3,}[ \t]*py", text, flags=re.MULTILINE | re.IGNORECASE)
    assert len(fences) == len(spelled), "a block of Python begins with ```python and ends with ```"
    skipped = [bool(SKIP.search(text, 0, fence.start())) for fence in fences]
    marks = re.findall(r"^<!-- not run", text, flags=re.MULTILINE)
    assert sum(skipped) == len(marks), "a mark has a reason, and a block below it"
    return [
        "\n" * text.count("\n", 0, fence.start(1)) + fence[1]
        for fence, left_out in zip(fences, skipped, strict=True)
        if not left_out
    ]


@each_page
def test_the_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some of them write files
    names: dict[str, object] = {}  # a page is one session
    known = set(sys.modules)
    for block in blocks(page.read_text("utf-8")):
        exec(compile(block, str(page), "exec"), names)
    for name in set(sys.modules) - known:  # a module that a page writes is its own
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def test_continuous_integration_runs_every_make_command_of_the_readme() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    promised = re.findall(r"^make [a-z-]+", "\n".join(SHELL.findall(text)), flags=re.MULTILINE)
    assert {"make demo", "make test", "make docs"} <= set(promised)
    run = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()
    assert set(promised) <= set(run)


def test_the_verdict_in_the_readme_is_what_the_probe_says() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    shown = re.search(r"```text\n(.*?)```", text, flags=re.DOTALL)
    assert shown is not None
    first, *_ = blocks(text)
    said = io.StringIO()
    names: dict[str, object] = {}
    exec(first, names)  # what the page imports
    with contextlib.redirect_stdout(said):
        exec(blocks(text[: shown.start()])[-1], names)
    assert said.getvalue().split() == shown[1].split()


@each_page
def test_every_local_link_exists(page: Path) -> None:
    for link in re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text("utf-8")):
        assert (page.parent / link).exists(), f"{page.name} links to {link}, which is not there"


def test_a_block_knows_its_lines_and_may_be_left_out_with_a_reason() -> None:
    text = "# A page\n\n```python\nx = 1\n```\n"
    text += "\n<!-- not run: needs a GPU -->\n```python\n1 / 0\n```\n"
    assert blocks(text) == ["\n\n\nx = 1\n"]
    for wrong in ("needs a GPU -->\n", "needs a GPU"):
        with pytest.raises(AssertionError, match="a reason, and a block below it"):
            blocks(text.replace(wrong, ""))
    with pytest.raises(AssertionError, match="begins with ```python"):
        blocks(text.replace("```python\nx", "```py\nx"))


# Commands: a wrong option or a name that is gone is seen without running them -------------------

SHELL = re.compile(r"^```sh\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^(?:#    |    )(gnn-vpa .+)$", flags=re.MULTILINE)  # and in tutorials
INLINE = re.compile(r"(?<!`)`{1,2}(gnn-vpa [^`]+)`", flags=re.DOTALL)


def commands(text: str) -> list[str]:
    """Return the lines of a page that call gnn-vpa, without comments and other programs."""
    shells = SHELL.findall(text.replace("\\\n", ""))
    lines = [line for shell in shells for line in shell.split("\n")] + INDENTED.findall(text)
    lines += [re.sub(r"\s+#?\s*", " ", line) for line in INLINE.findall(text)]
    found = (re.search(r"(?:^|\s)(gnn-vpa .+?)(?:\s+#.*)?$", line) for line in lines)
    return [match[1].strip(" .") for match in found if match is not None]


def refused(line: str) -> str:
    """Return what the command line does not know of a line, or nothing. Nothing is run."""
    words = shlex.split(line)[1:]
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        name = words.pop(0)
        if name not in command.commands:
            return name
        command = command.commands[name]
    known = {"--help"}
    for parameter in command.params:
        known |= {*parameter.opts, *parameter.secondary_opts}
    asked = {word.partition("=")[0] for word in words if word.startswith("--")}
    return ", ".join(sorted(asked - known))


@pytest.mark.parametrize(
    "page", [*PAGES, *TUTORIALS], ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_the_command_line_knows_every_command_and_option_of_a_page(page: Path) -> None:
    wrong = {line: refused(line) for line in commands(page.read_text("utf-8"))}
    assert {line: why for line, why in wrong.items() if why} == {}


def test_a_command_that_is_gone_would_be_seen() -> None:
    text = "```sh\ngnn-vpa rn MUTAG\ngnn-vpa run MUTAG --agr vpa  # a comment\nls\n```\n"
    text += "Or `gnn-vpa data\nlost`, and:\n\n    gnn-vpa audit MUTAG --html a.html\n"
    assert [refused(line) for line in commands(text)] == ["rn", "--agr", "", "lost"]
    assert len(commands((ROOT / "README.md").read_text("utf-8"))) > 6
    assert any(commands(page.read_text("utf-8")) for page in TUTORIALS)
