"""Files that are written whole or not at all.

Everything that the library leaves on a disk is written here, results in SQLite and downloads that
go on apart: a full disk, a failing one or a kill leaves the file that was there before, or none.
"""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def refuse_folder(path: str | os.PathLike[str], like: str) -> None:
    """Refuse a folder where a file is to be named; to be asked before anything is computed.

    Args:
        path: What was named.
        like: A name that such a file could have.

    Raises:
        UsageError: It is a folder.

    Example:
        >>> refuse_folder("..", "page.html")
        Traceback (most recent call last):
            ...
        gnn_vpa.errors.UsageError: .. is a folder: name a file, for example ../page.html
    """
    if Path(path).is_dir():
        raise UsageError(f"{path} is a folder: name a file, for example {Path(path, like)}")


@contextmanager
def replacing(path: str | os.PathLike[str], *, lasting: bool = True) -> Iterator[Path]:
    """Give a temporary file to write to, and let it take the place of ``path`` in the end.

    The temporary file is in the same folder, which is made where it is not there, and has the same
    ending, from which matplotlib and others tell the format. Its content is on the disk before it
    takes the place of another. A link stays a link, to a new content. What is no plain file, like
    ``/dev/stdout``, is written to as it is.

    Args:
        path: The file.
        lasting: Whether to wait until it is on the disk. What is only of use while this process
            lives need not be: it is whole to whoever reads it, unless the machine itself fails.

    Raises:
        OSError: It cannot be written; ``filename`` says which file. Nothing has changed.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with replacing(Path(folder, "new", "a.txt")) as part:
        ...         _ = part.write_text("whole")
        ...     Path(folder, "new", "a.txt").read_text(), len(list(Path(folder, "new").iterdir()))
        ('whole', 1)
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        yield target
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    # A name of its own for each writer, which tells whose it is if a kill leaves it behind.
    part = target.with_name(f"{target.stem[:50]}.{secrets.token_hex(4)}.part{target.suffix}")
    try:
        try:
            os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
            if target.exists():
                part.chmod(stat.S_IMODE(target.stat().st_mode))
            yield part
            if lasting:
                _sync(part)
            part.replace(target)
            if lasting:
                _sync(target.parent)
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)
    except OSError as error:
        if error.errno is not None:
            error.filename, error.filename2 = str(path), None  # not the temporary one
        raise


def write_whole(
    path: str | os.PathLike[str], content: str | bytes, *, lasting: bool = True
) -> None:
    """Write a file whole or not at all; text as UTF-8, with line ends as they are.

    Args:
        path: The file.
        content: What is to be in it.
        lasting: See `replacing`.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_whole(Path(folder, "a.txt"), "ä")
        ...     Path(folder, "a.txt").read_text(encoding="utf-8")
        'ä'
    """
    with replacing(path, lasting=lasting) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)


def save_figure(figure: "Figure", path: str | os.PathLike[str]) -> None:
    """Write a matplotlib figure whole or not at all; its ending says as what.

    Raises:
        UsageError: It is a folder, or matplotlib draws no such files.

    Example:
        >>> import tempfile
        >>> from matplotlib.figure import Figure
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_figure(Figure(), Path(folder, "a.svg"))
        ...     Path(folder, "a.svg").read_text()[:5]
        '<?xml'
    """
    refuse_folder(path, "figure.png")
    target = Path(path)
    if not target.suffix:  # as matplotlib does
        target = target.with_name(f"{target.name}.{figure.canvas.get_default_filetype()}")
    kinds = sorted(figure.canvas.get_supported_filetypes())
    if target.suffix[1:].lower() not in kinds:
        raise UsageError(f"{path}: a figure's file must end in one of .{', .'.join(kinds)}")
    with replacing(target) as part:
        figure.savefig(part, dpi=150)


def _sync(path: Path) -> None:
    """Wait until a file's content, or a folder's entries, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:
        if path.is_file():  # some file systems cannot sync a folder
            raise
    finally:
        os.close(handle)
