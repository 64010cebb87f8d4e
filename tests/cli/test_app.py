"""The command line as a process: what a shell, a pipe and an impatient user see."""

import os
import re
import subprocess
import sys
import time
from typing import Any

import pytest
import typer
from typer.core import TyperCommand, TyperGroup
from typer.testing import CliRunner

import gnn_vpa
from gnn_vpa.cli._app import app

from .conftest import Start

GNN_VPA = [sys.executable, "-m", "gnn_vpa"]


def test_version() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout == f"gnn-vpa {gnn_vpa.__version__}\n"


COMMANDS = [
    [name] if not isinstance(command, TyperGroup) else [name, subcommand]
    for name, command in typer.main.get_group(app).commands.items()
    for subcommand in getattr(command, "commands", [""])
]


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_lists_every_command_and_shows_examples(option: str) -> None:
    result = CliRunner().invoke(app, [option])
    assert result.exit_code == 0
    listed, examples = result.stdout.split("Example")
    assert {command[0] for command in COMMANDS} <= set(listed.split())
    assert "gnn-vpa " in examples


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_help_of_every_command_shows_an_example(command: list[str]) -> None:
    result = CliRunner().invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    assert f"gnn-vpa {' '.join(command)}" in result.stdout.split("Example")[1]


def test_paragraphs_of_help_are_as_wide_as_the_terminal() -> None:
    result = CliRunner().invoke(app, ["watch", "--help"], env={"COLUMNS": "200"})
    assert "The page is for this machine alone, and needs no network." in result.stdout


def test_a_mistyped_command_is_answered_with_the_nearest() -> None:
    result = CliRunner().invoke(app, ["varianse"])
    assert result.exit_code == 2
    assert "variance" in result.stderr


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from gnn_vpa.cli._app import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: print(sorted({'torch', 'scipy', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.endswith("[]\n")


def test_a_shell_gets_completions() -> None:
    environment = {
        **os.environ,
        "_GNN_VPA_COMPLETE": "complete_bash",
        "COMP_WORDS": "gnn-vpa var",
        "COMP_CWORD": "1",
    }
    done = subprocess.run(GNN_VPA, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["variance"]


def test_a_closed_pipe_is_silent() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        args = ["variance", "--max-neighbours", "3", "--trials", "10"]
        done = subprocess.run(
            [*GNN_VPA, *args], stdout=pipe, stderr=subprocess.PIPE, text=True, check=False
        )
    assert "Error" not in done.stderr
    assert "Traceback" not in done.stderr


def test_an_interrupt_ends_in_one_line_and_130(start: Start) -> None:
    args = ["variance", "--max-neighbours", "100000", "--trials", "1000000000"]
    reader, writer = os.pipe()
    command = start(*args, stdout=writer, stderr=writer)
    os.close(writer)
    with os.fdopen(reader) as shown:
        assert shown.readline().startswith("Measuring")
        time.sleep(0.5)
        command.interrupt()
        assert shown.read() == "Interrupted.\n"
    assert command.wait() == 130


def _help(command: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 200)
    result = CliRunner().invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    return " ".join(re.sub("[│╭╮╰╯─]", " ", result.stdout).split())


def _command(names: list[str]) -> TyperCommand:
    found: Any = typer.main.get_group(app)
    for name in names:
        found = found.commands[name]
    return found


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_shows_every_word_that_was_written(
    command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = _help(command, monkeypatch)
    declared = _command(command)
    for parameter in declared.params:
        text = " ".join((getattr(parameter, "help", None) or "").split())
        assert text in shown, parameter.name
        if isinstance(default := getattr(parameter, "show_default", None), str):
            assert f"[default: ({default})]" in shown, parameter.name
    text = " ".join((declared.help or "").replace("\\[", "[").split())
    assert text in shown


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_help_text_is_written_as_markup(command: list[str]) -> None:
    # Rich takes [default: x] and [extra] for its own, and leaves them out.
    declared = _command(command)
    for text in (declared.help, *(getattr(p, "help", None) for p in declared.params)):
        assert not re.search(r"(?<!\\)\[[a-z/]", text or ""), text
