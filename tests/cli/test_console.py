"""What a terminal shows: text as it is, colours only where they are wanted, numbers flush right."""

import os
import pty
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from gnn_vpa.cli._console import complain, headline, print_table, progress, prose, say

from .conftest import Start

Show = Callable[..., tuple[str, int]]
COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3\d|4\d|9\d|10\d)[;m]")
NASTY = "[red]x[/red] \x1b[31m:smile:\x07"
SHOWN = "[red]x[/red] [31m:smile:"


@pytest.fixture
def in_terminal(start: Start) -> Show:
    """Run the command line where both streams are a terminal; return what it shows."""

    def show(arguments: Sequence[str], **environment: str) -> tuple[str, int]:
        ours, theirs = pty.openpty()
        plain = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        plain |= {"TERM": "xterm-256color", "COLUMNS": "80"}
        command = start(*arguments, stdout=theirs, stderr=theirs, env=plain | environment)
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 65536):
                shown += part
        except OSError:  # the other end is closed
            pass
        os.close(ours)
        return shown.decode(), command.wait()

    return show


FAILING = {
    "an error of ours": ["report", "no/such/run"],
    "a mistyped command": ["varianse"],
    "a wrong option": ["run", "MUTAG", "--epochs", "many"],
    "results": ["variance", "--max-neighbours", "3", "--trials", "10"],
    "help": ["run", "--help"],
}


@pytest.mark.parametrize("arguments", FAILING.values(), ids=FAILING)
def test_no_color_holds_for_everything_that_is_shown(
    arguments: list[str], in_terminal: Show
) -> None:
    shown, code = in_terminal(arguments, NO_COLOR="1")
    assert code in (0, 2)
    assert not COLOUR.findall(shown)


def test_an_error_is_red_where_colours_are_wanted(in_terminal: Show) -> None:
    shown, code = in_terminal(FAILING["an error of ours"])
    assert code == 2
    assert "\x1b[31mError: there are no results" in shown


def test_a_dumb_terminal_is_asked_for_nothing(in_terminal: Show) -> None:
    shown, _ = in_terminal(FAILING["an error of ours"], TERM="dumb")
    assert "\x1b" not in shown
    assert shown.startswith("Error: there are no results")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")


@pytest.mark.usefixtures("terminal")
def test_text_is_shown_as_it_is_in_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(NASTY, ["name", NASTY], [[NASTY, "1"], ["b", NASTY]])
    say(NASTY)
    complain(NASTY)
    with progress(NASTY):
        pass
    shown = capsys.readouterr()
    assert shown.out.count(SHOWN) == 5
    assert shown.err.count(SHOWN) >= 2
    assert "\x07" not in shown.out + shown.err
    assert "\x1b[31m" not in shown.out + shown.err


SENTENCE = "  With GIN, mean may be best in 1 % of: -16.1 to a/long/" + "path/" * 30 + " it is."


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("write", [prose, headline])
def test_a_terminal_gets_sentences_broken_between_words(
    write: Callable[[str], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    write(SENTENCE)
    lines = re.sub(r"\x1b\[\d*m", "", capsys.readouterr().out).splitlines()
    assert " ".join(line.strip() for line in lines) == SENTENCE.strip()
    assert not any(line.strip().startswith("%") for line in lines)
    assert all(line.startswith("  ") and (len(line) <= 30 or " " not in line[2:]) for line in lines)


@pytest.mark.parametrize("write", [prose, headline])
def test_a_pipe_gets_sentences_in_one_line(
    write: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    write(SENTENCE)
    assert capsys.readouterr().out == f"{SENTENCE}\n"


def test_text_is_one_cell_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("title", ["name", "n"], [["a\tb\nc\x1b", "1"]])
    assert capsys.readouterr().out == "name\tn\na b c\t1\n"


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("sign", ["-", "\N{MINUS SIGN}", "+", ""])
def test_numbers_of_either_sign_are_flush_right(
    sign: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [["a", f"{sign}1.5", "x"], ["b", "10.25", "-y"], ["c", "\N{EN DASH}", ""]]
    print_table("title", ["name", "difference", "text"], rows)
    text = re.sub(r"\x1b\[\d*m", "", capsys.readouterr().out)
    lines = [line for line in text.splitlines() if re.match(r"[abc] ", line)]
    ends = {line.rindex(cell) + len(cell) for line, (_, cell, _) in zip(lines, rows, strict=True)}
    assert len(ends) == 1
    assert {line.index(row[2]) for line, row in zip(lines[:2], rows, strict=False)} == {
        text.splitlines()[1].index("text")
    }


def test_a_name_cannot_break_the_bars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gnn_vpa.cli._progress import Terminal
    from gnn_vpa.experiments import Cell, Group
    from gnn_vpa.training import Task

    monkeypatch.setenv("FORCE_COLOR", "1")
    group = Group((Cell("[/red] {x} \x1b[31m", Task("gin", "vpa")),))
    with Terminal(tmp_path) as bars:
        bars.start(group)
        bars.epochs(group, 3)
        bars.note(str(group))
