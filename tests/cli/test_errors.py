"""Every error that can be foreseen ends in a message and an exit code, not in a traceback."""

import errno

import pytest
import typer
from typer.testing import CliRunner

from gnn_vpa.cli._errors import ExplainingGroup
from gnn_vpa.errors import GnnVpaError, UsageError


def _failing_app(error: BaseException) -> typer.Typer:
    app = typer.Typer(cls=ExplainingGroup, pretty_exceptions_enable=False)

    @app.command()
    def fail() -> None:
        raise error

    @app.callback()
    def root() -> None:
        """Make ``fail`` a subcommand."""

    return app


@pytest.mark.parametrize(
    ("error", "exit_code", "message"),
    [
        (UsageError("aggr: 'median' is unknown."), 2, "Error: aggr: 'median' is unknown.\n"),
        (GnnVpaError("MUTAG.zip ends early."), 1, "Error: MUTAG.zip ends early.\n"),
        (KeyboardInterrupt(), 130, "Interrupted.\n"),
        (
            OSError(errno.ENOSPC, "No space left on device"),
            1,
            "Error: the disk is full: free some space, then run it again.\n",
        ),
        (
            OSError(errno.ENOSPC, "No space left on device", "runs/a.png"),
            1,
            "Error: the disk is full (runs/a.png): free some space, then run it again.\n",
        ),
        (
            PermissionError(errno.EACCES, "Permission denied", "runs/a.png"),
            1,
            "Error: cannot use runs/a.png: Permission denied. See that it can be used, or name "
            "another.\n",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_a_foreseeable_error_is_one_line(error: Exception, exit_code: int, message: str) -> None:
    result = CliRunner().invoke(_failing_app(error), ["fail"])
    assert result.exit_code == exit_code
    assert result.stderr == message
    assert result.stdout == ""


def test_a_bug_is_not_hidden() -> None:
    bug = ZeroDivisionError("a bug")
    assert CliRunner().invoke(_failing_app(bug), ["fail"]).exception is bug


def test_an_operating_system_error_without_a_file_is_not_hidden() -> None:
    bug = OSError(errno.EINVAL, "Invalid argument")
    assert CliRunner().invoke(_failing_app(bug), ["fail"]).exception is bug
