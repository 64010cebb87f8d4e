"""From an exception to a message and an exit code, in one place for all commands."""

import errno
import inspect
import re
from typing import Any

import typer
from typer.core import TyperGroup

from ..errors import GnnVpaError, UsageError
from ._console import complain
from ._ray import spell_ray

_FULL = (errno.ENOSPC, errno.EDQUOT)
_LINE_END = re.compile(r"(?<!\n)\n(?!\n)")


class ExplainingGroup(TyperGroup):
    """A group of commands whose foreseeable errors end in a message, not in a traceback.

    Example:
        >>> typer.Typer(cls=ExplainingGroup).info.cls.__name__
        'ExplainingGroup'
    """

    def __init__(self, **given: Any) -> None:
        """Take what typer found, and let paragraphs of help be as wide as the terminal."""
        super().__init__(**given)
        for command in self.commands.values():
            command.help = command.help and _LINE_END.sub(" ", inspect.cleandoc(command.help))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read what was typed."""
        return super().parse_args(ctx, spell_ray(args))

    def invoke(self, ctx: Any) -> Any:
        """Run the command that ``ctx`` asks for."""
        try:
            return super().invoke(ctx)
        except UsageError as error:
            _stop(f"Error: {error}", exit_code=2)
        except GnnVpaError as error:
            _stop(f"Error: {error}", exit_code=1)
        except KeyboardInterrupt:
            _stop("Interrupted.", exit_code=130)
        except OSError as error:
            if error.errno in _FULL:
                where = f" ({error.filename})" if error.filename else ""
                _stop(f"Error: the disk is full{where}: free some space, then run it again.", 1)
            if error.filename is not None:
                _stop(
                    f"Error: cannot use {error.filename}: {error.strerror}. See that it can be "
                    "used, or name another.",
                    1,
                )
            raise


def _stop(message: str, exit_code: int) -> None:
    complain(message)
    raise typer.Exit(exit_code)
