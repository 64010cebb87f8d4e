"""The reference of the command line: a page for each command, from what ``--help`` is made of."""

import re
from collections.abc import Iterator
from typing import Any

import typer

from gnn_vpa.cli._app import app

EXAMPLES = re.compile(r"^Examples?:\s*$", flags=re.MULTILINE)


def commands() -> Iterator[tuple[str, Any]]:
    """Yield each command (of click) with the words that call it."""

    def below(words: str, command: Any) -> Iterator[tuple[str, Any]]:
        if not hasattr(command, "commands"):
            yield words, command
            return
        for name, child in command.commands.items():
            yield from below(f"{words} {name}", child)

    yield from below("gnn-vpa", typer.main.get_command(app))


def _text(text: str) -> str:
    """Return text as Markdown that shows it, in one line."""
    return re.sub(r"([\\|<>*_\[\]`])", r"\\\1", " ".join(text.split()))


def _page(words: str, command: Any) -> str:
    context = command.make_context(words, [], resilient_parsing=True)
    about, _, examples = EXAMPLES.sub("\0", command.help or "", count=1).partition("\0")
    page = f"# {words}\n\n" + "\n\n".join(map(_text, about.strip().split("\n\n"))) + "\n\n"
    page += f"```sh\n{words} {' '.join(command.collect_usage_pieces(context))}\n```\n\n"
    if examples:
        lines = [line.strip() for line in examples.splitlines() if line.strip()]
        page += "## Examples\n\n```sh\n" + "\n".join(lines) + "\n```\n\n"
    page += "## Arguments and options\n\n"
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            page += f"`{record[0]}`\n: {_text(record[1]) or 'See above.'}\n\n"
    return page


def pages() -> dict[str, str]:
    """Return the text of each page by its path."""
    index = (
        "# Commands\n\nMade from the commands themselves; `gnn-vpa COMMAND --help` says the same."
    )
    index += " Exit codes: 0 done, 1 something went wrong and the message says what, 2 wrong use,"
    index += " 130 interrupted.\n\n| command | |\n|---|---|\n"
    written, entries = {}, []
    for words, command in commands():
        file = words.replace(" ", "-")
        first = (command.help or "").strip().split("\n\n")[0]
        index += f"| [`{words}`]({file}.md) | {_text(first)} |\n"
        entries.append(f"{words} <{file}>")
        written[f"commands/{file}.md"] = _page(words, command)
    index += "\n```{toctree}\n:hidden:\n\n" + "\n".join(entries) + "\n```\n"
    return {"commands/index.md": index, **written}
