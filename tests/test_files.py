"""Files that are whole or not there, and no way around the one helper that sees to it."""

import ast
import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import cast

import pandas as pd
import pytest
from matplotlib.figure import Figure

from gnn_vpa.analysis import write_markdown, write_report
from gnn_vpa.auditing import Audit
from gnn_vpa.errors import UsageError
from gnn_vpa.files import replacing, save_figure, write_whole
from gnn_vpa.trained import TrainedModel, export_model

NOTHING = cast("pd.DataFrame", None)

# What writes a file, by the name of the function, and the files that may use it with a reason.
_WRITERS = {
    "write_text", "write_bytes", "savefig", "save_file", "to_csv", "to_json", "to_parquet",
    "NamedTemporaryFile", "mkstemp", "savez", "tofile", "touch", "replace", "rename", "dump",
}  # fmt: skip
_ALLOWED = {
    "files.py": {"open", "write_bytes", "savefig", "replace"},  # the helper itself
    "results.py": {"to_csv"},  # of `analysis`, which returns a text
    "graphs/cache.py": {"save_file"},  # to the path that `replacing` gives
    "graphs/download.py": {"open", "replace"},  # goes on with what has arrived
    "experiments/locks.py": {"open"},  # a lock has no content to lose
    "experiments/mps.py": {"open"},  # what another program writes while it starts
    "experiments/tensorboard.py": {"open"},  # a file that grows, as TensorBoard reads it
    "training/checkpoint.py": {"save"},  # to memory
    "training/own/source.py": {"dump"},  # a syntax tree, to a text
    "page.py": {"savefig"},  # to memory
    "analysis/summary.py": {"rename"},  # a column
    "cli/watch.py": {"open"},  # a browser
    "cli/predict.py": {"open"},  # the path that `replacing` gives
    "trained/container.py": {"rename"},  # a folder, made beside and put in place whole
    "host.py": {"write_text"},  # to the kernel
}


def _writers(tree: ast.AST) -> set[str]:
    """The functions that a module calls and that write to a path."""
    found = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        name = getattr(function, "attr", getattr(function, "id", ""))
        texts = [a.value for a in node.args if isinstance(a, ast.Constant)]
        texts += [k.value.value for k in node.keywords if isinstance(k.value, ast.Constant)]
        owner = function.value if isinstance(function, ast.Attribute) else None
        match name:
            case "open":
                modes = [t for t in texts if isinstance(t, str) and len(t) <= 3]
                flags = {a.attr for a in ast.walk(node) if isinstance(a, ast.Attribute)}
                conditional = any(isinstance(argument, ast.IfExp) for argument in node.args)
                writes = any(set(mode) & set("wax+") for mode in modes)
                if writes or conditional or flags & {"O_WRONLY", "O_RDWR", "O_CREAT"}:
                    found.add(name)
            case "to_csv" | "to_json":
                if node.args:  # without a path they return a text
                    found.add(name)
            case "replace" | "rename":  # of a path: one argument; a text's has two
                named = isinstance(owner, ast.Name) and owner.id == "os"
                if named or (owner is not None and len(node.args) == 1 and not node.keywords):
                    found.add(name)
            case "save":
                if isinstance(owner, ast.Name) and owner.id in ("torch", "np"):
                    found.add(name)
            case _ if name in _WRITERS:
                found.add(name)
    return found


def test_nothing_is_written_to_a_file_but_by_the_helper(root: Path) -> None:
    source = root / "src" / "gnn_vpa"
    for path in source.rglob("*.py"):
        name = path.relative_to(source).as_posix()
        found = _writers(ast.parse(path.read_text()))
        assert found <= _ALLOWED.get(name, set()), f"{name} bypasses gnn_vpa.files"


@pytest.mark.parametrize(
    "code",
    [
        "path.write_text('a')", "path.open('w')", "open(path, 'ab')", "figure.savefig(path)",
        "frame.to_csv(path)", "torch.save(x, path)", "os.replace(a, b)", "part.replace(path)",
        "os.open(path, os.O_RDWR)", "path.open(mode='x')", "path.open('a' if done else 'w')",
    ],
)  # fmt: skip
def test_a_way_around_the_helper_would_be_seen(code: str) -> None:
    assert _writers(ast.parse(code))


@pytest.mark.parametrize(
    "code", ["path.open('rb')", "open(path)", "frame.to_csv(index=False)", "text.replace('a', 'b')"]
)
def test_what_writes_nothing_is_not_taken_for_a_writer(code: str) -> None:
    assert not _writers(ast.parse(code))


def test_an_error_leaves_what_was_there(tmp_path: Path) -> None:
    write_whole(tmp_path / "a.txt", "old")
    with pytest.raises(UnicodeEncodeError), replacing(tmp_path / "a.txt") as part:
        part.write_text("half of it" + "\N{SNOWMAN}", encoding="ascii")
    assert (tmp_path / "a.txt").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_the_content_is_on_the_disk_before_it_takes_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (done.append("sync"), sync(fd))[1])
    monkeypatch.setattr(Path, "replace", lambda *a: (done.append("replace"), replace(*a))[1])
    write_whole(tmp_path / "a.txt", "new")
    assert done == ["sync", "replace", "sync"]  # the last is the folder's


def test_a_full_disk_names_the_file_that_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fsync(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="No space left") as caught:
        write_whole(tmp_path / "a.txt", "new")
    assert caught.value.filename == str(tmp_path / "a.txt")
    assert list(tmp_path.iterdir()) == []


def test_permissions_are_those_of_any_new_file_or_stay(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    write_whole(tmp_path / "new", "a")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "plain").stat().st_mode
    (tmp_path / "plain").chmod(0o600)
    write_whole(tmp_path / "plain", "a")
    assert (tmp_path / "plain").stat().st_mode & 0o777 == 0o600


def test_a_link_stays_and_points_to_the_new_content(tmp_path: Path) -> None:
    write_whole(tmp_path / "there" / "a.txt", "old")
    (tmp_path / "link").symlink_to(tmp_path / "there" / "a.txt")
    write_whole(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "a.txt").read_text() == "new"


def test_what_is_no_plain_file_is_written_to(tmp_path: Path) -> None:
    write_whole("/dev/null", "gone")
    assert not Path("/dev/null").is_file()


def test_a_figure_without_an_ending_gets_one(tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    save_figure(Figure(), tmp_path / "figure")
    assert [path.name for path in tmp_path.iterdir()] == ["figure.png"]


def test_a_folder_is_refused_in_our_words_before_anything_is_computed(tmp_path: Path) -> None:
    """What they would write is not looked at: it is nothing."""
    writers: dict[str, Callable[[Path], object]] = {
        "audit.json": partial(Audit.to_json, cast("Audit", None)),
        "audit.html": partial(Audit.to_html, cast("Audit", None)),
        "model.pt2": partial(export_model, cast("TrainedModel", None)),
        "report.html": lambda path: write_report(NOTHING, NOTHING, {}, path),
        "report.md": lambda path: write_markdown(NOTHING, NOTHING, {}, path),
        "figure.png": partial(save_figure, cast("Figure", None)),
    }
    for like, write in writers.items():
        with pytest.raises(UsageError, match=f"is a folder: name a file, .*/{like}$"):
            write(tmp_path)
    assert not [*tmp_path.iterdir()]
