"""Results as they are measured: rows of Markdown to read, lines of JSON to compute with."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Record:
    """Prints at once, and appends at once to a file and to the same with the ending jsonl."""

    def __init__(self, out: Path | None = None, **context: Any) -> None:
        self._out = out
        self._context = context

    def text(self, text: str) -> None:
        """Show a line or several."""
        print(text, flush=True)
        _append(self._out, text)

    def table(self, part: str, title: str, columns: Mapping[str, str]) -> "Table":
        """Begin a table; ``columns`` maps the name of each to its format."""
        self.text(f"\n### {title}\n")
        self.text(_row(columns))
        self.text("|" + "---|" * len(columns))
        return Table(self, part, columns)

    def note(self, text: str) -> None:
        """Say something without a place in the tables."""
        print(text, file=sys.stderr, flush=True)
        self.values("note", {"text": text})

    def values(self, part: str, values: Mapping[str, Any]) -> None:
        """Keep values for a program to read."""
        if self._out is not None:
            line = json.dumps({"part": part, **self._context, **values})
            _append(self._out.with_suffix(".jsonl"), line)


class Table:
    """A table that grows by a row at a time."""

    def __init__(self, record: Record, part: str, columns: Mapping[str, str]) -> None:
        self._record, self._part, self._columns = record, part, columns

    def row(self, *values: Any) -> None:
        """Add a row, a value for each column; None where there is none."""
        named = dict(zip(self._columns, values, strict=True))
        shown = ["" if v is None else self._columns[name].format(v) for name, v in named.items()]
        self._record.text(_row(shown))
        self._record.values(self._part, named)


def _row(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def _append(path: Path | None, text: str) -> None:
    if path is not None:
        with path.open("a") as file:
            file.write(text + "\n")
