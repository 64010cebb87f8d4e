"""A run in Markdown: every number of the paper with ours beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..escape import markdown
from ..files import refuse_folder, write_whole
from .report import SECTIONS, Part, Pictures, parts
from .settings import Setting, left_out

if TYPE_CHECKING:
    import pandas as pd


def write_markdown(
    folds: pd.DataFrame,
    curves: pd.DataFrame,
    provenance: Mapping[str, object],
    path: str | os.PathLike[str],
    signals: pd.DataFrame | None = None,
    ceiling: Mapping[tuple[str, str], float] | None = None,
) -> Path:
    """Write a run's results in Markdown, its figures in the folder `img` beside it.

    Of each setting what the sections of the report have to say in Markdown: what came out in
    sentences, the paper's table with ours in front of it, the column p beside the paper's, every
    cell with its z, the share of cells with ``|z| ≤ 2``, learning curves and more. Settings and
    provenance come last.

    Args:
        folds: a row for each finished training, of one setting or several.
        curves: their learning curves; may be empty.
        provenance: what the run was: versions, configuration, checksums and the like.
        path: the file to write.
        signals: the signal at the start, as for `render_report`.
        ceiling: the best score that any network can reach, as for `render_report`.

    Returns:
        The path that was written.

    Example:
        >>> import pandas as pd, tempfile
        >>> columns = ["dataset", "model", "aggregation", "variant", "features", "fold", "seed"]
        >>> rows = [["MUTAG", "GIN", "vpa", "released", "auto", fold, 0, 0.8 + fold / 10, "done"]
        ...         for fold in range(2)]
        >>> folds = pd.DataFrame(rows, columns=[*columns, "test_score", "status"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = write_markdown(folds, pd.DataFrame(), {}, f"{folder}/record.md")
        ...     "1 of 1 cell has |z| ≤ 2 (100 %)" in made.read_text()
        True
    """
    path = Path(path)
    refuse_folder(path, "report.md")
    pictures = Pictures(path)
    text = "# Ours beside the paper's\n\n"
    text += "".join(f"{markdown(sentence)}\n\n" for sentence in left_out(folds))
    for part in parts(folds, curves, signals, ceiling):
        text += "" if part.alone else f"## {markdown(_title(part.setting))}\n\n"
        text += sections(part, pictures)
    text += "\n".join(["## Settings and provenance", "", *entries(provenance), ""])
    write_whole(path, text)
    return path


def sections(part: Part, pictures: Pictures) -> str:
    """The results of one setting, section by section."""
    return "".join(section.markdown(part, pictures) for section in SECTIONS)


def _title(setting: Setting) -> str:
    text = str(setting)
    return text[0].upper() + text[1:]


def entries(value: object, indent: str = "") -> Iterator[str]:
    """Nested values as a nested list."""
    if isinstance(value, Mapping):
        for name, entry in value.items():
            if isinstance(entry, Mapping):
                yield f"{indent}- {markdown(str(name))}:"
                yield from entries(entry, indent + "  ")
            else:
                listed = entry if isinstance(entry, list | tuple) else [entry]
                yield f"{indent}- {markdown(f'{name}: ' + ', '.join(map(str, listed)))}"
