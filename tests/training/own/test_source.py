"""An edited model is another one, and nothing else is."""

import importlib
import linecache
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from gnn_vpa.errors import UsageError
from gnn_vpa.training.own import register, source_hash

Write = Callable[[str, str], None]
NET = """
import torch
from torch import nn
import mylayers


class Net(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.lin = nn.Linear(in_channels, 2 * mylayers.WIDTH)

    def forward(self, x, edge_index, batch):
        return self.lin(x)


def make(in_channels, out_channels):
    return Net(in_channels, out_channels)
"""
LAYERS = "WIDTH = 4\n"


def hash_of(name: str) -> str:
    module, _, function = name.partition(":")
    return source_hash(getattr(importlib.import_module(module), function))


@pytest.fixture
def written(write_module: Write) -> Write:
    write_module("mylayers", LAYERS)
    write_module("mynet", NET)
    return write_module


@pytest.mark.parametrize(
    "edited",
    [
        NET.replace("class Net", "# A remark.\nclass Net"),
        NET.replace("self.lin(x)", "self.lin(\n            x\n        )"),
        NET.replace("    return Net", "    'A docstring.'\n    return Net"),
        '"""A docstring."""\n' + NET,
    ],
    ids=["comment", "format", "docstring", "docstring of the module"],
)  # fmt: skip
def test_what_is_not_code_does_not_matter(written: Write, edited: str) -> None:
    before = hash_of("mynet:make")
    written("mynet", edited)
    assert hash_of("mynet:make") == before


@pytest.mark.parametrize(
    ("module", "edited"),
    [
        ("mynet", NET.replace("2 * ", "3 * ")),
        ("mynet", NET.replace("self.lin(x)", "self.lin(x).relu()")),
        ("mylayers", "WIDTH = 5\n"),
    ],
    ids=["constant", "forward", "imported module"],
)
def test_an_edit_of_any_module_of_the_users_is_another_model(
    written: Write, module: str, edited: str
) -> None:
    before = hash_of("mynet:make")
    written(module, edited)
    assert hash_of("mynet:make") != before


@pytest.mark.parametrize("statement", ["from . import layers", "from .layers import WIDTH"])
def test_modules_of_a_package_count_too(write_module: Write, statement: str) -> None:
    write_module("mypackage.__init__", "")
    write_module("mypackage.layers", LAYERS)
    write_module("mypackage.net", f"{statement}\n\ndef make(i, o):\n    return None\n")
    before = hash_of("mypackage.net:make")
    write_module("mypackage.layers", "WIDTH = 5\n")
    edited = hash_of("mypackage.net:make")
    write_module("mypackage.__init__", "SCALE = 2\n")
    assert len({before, edited, hash_of("mypackage.net:make")}) == 3


def test_a_module_that_a_function_imports_counts_before_it_is_imported(write_module: Write) -> None:
    write_module("mylate", LAYERS)
    write_module("mynet", "def make(i, o):\n    import mylate\n    return mylate.WIDTH\n")
    before = hash_of("mynet:make")
    write_module("mylate", "WIDTH = 5\n")
    assert hash_of("mynet:make") != before


def test_a_file_that_is_edited_after_it_was_imported_is_refused(
    written: Write, tmp_path: Path
) -> None:
    make = importlib.import_module("mynet").make
    (tmp_path / "mynet.py").write_text(NET.replace("self.lin(x)", "self.lin(x).relu()"))
    with pytest.raises(
        UsageError, match=r"mynet.py was edited after it was imported \(Net.forward"
    ):
        source_hash(make)


@pytest.mark.parametrize(
    ("text", "edited"),
    [
        ("act = lambda x: 2 * x\ndef make(i, o): return act(i)\n", "2 * x"),
        ("class N:\n @property\n def w(self): return 2\ndef make(i, o): return N()\n", "return 2"),
        (
            "import functools\n@functools.cache\ndef w(): return 2\ndef make(i, o): return w()\n",
            "2",
        ),
    ],
)
def test_no_kind_of_function_may_be_edited_after_it_was_imported(
    write_module: Write, tmp_path: Path, text: str, edited: str
) -> None:
    write_module("mynet", text)
    make = importlib.import_module("mynet").make
    source_hash(make)
    (tmp_path / "mynet.py").write_text(text.replace(edited, edited.replace("2", "3")))
    with pytest.raises(UsageError, match=r"mynet.py was edited after it was imported"):
        source_hash(make)


def test_one_of_two_definitions_is_no_edit(write_module: Write) -> None:
    text = "if True:\n    def act(x): return x\nelse:\n    def act(x): return 2 * x\n"
    write_module("mynet", text + "def make(i, o): return act(i)\n")
    assert len(hash_of("mynet:make")) == 16


def test_a_remark_after_the_import_is_no_edit(written: Write, tmp_path: Path) -> None:
    make = importlib.import_module("mynet").make
    (tmp_path / "mynet.py").write_text("# A remark.\n" + NET.replace("(x)\n", "(x)  # so\n"))
    assert len(source_hash(make)) == 16


def scripted(text: str, tmp_path: Path, alone: bool = False) -> str:
    """Return the hash of ``make`` that a script finds, as the main module of a process or here."""
    end = (
        "\nfrom gnn_vpa.training.own import source_hash\nfound = source_hash(make)\nprint(found)\n"
    )
    path = tmp_path / "script.py"
    path.write_text(text + end)
    if not alone:
        linecache.clearcache()
        return str(runpy.run_path(str(path), run_name="__main__")["found"])
    done = subprocess.run([sys.executable, path], check=True, capture_output=True, text=True)
    return done.stdout.strip()


SCRIPT = """
import torch
from torch import nn
WIDTH = 4

class Net(nn.Module):
    def forward(self, x, edge_index, batch):
        return x * WIDTH

def make(in_channels, out_channels):
    return Net()
"""


def test_a_script_is_hashed_by_what_the_model_uses(tmp_path: Path) -> None:
    plain = scripted(SCRIPT, tmp_path)
    assert scripted(SCRIPT, tmp_path, alone=True) == plain
    assert scripted(SCRIPT + "\nepochs = 30\n", tmp_path) == plain
    assert scripted(SCRIPT.replace("WIDTH = 4", "WIDTH = 5"), tmp_path) != plain
    assert scripted(SCRIPT.replace("return x", "return 2 * x"), tmp_path) != plain


def make_closure(width: int) -> Callable[..., Any]:
    def make(in_channels: int, out_channels: int) -> int:
        return width

    return make


def test_what_a_function_has_from_around_it_counts() -> None:
    assert source_hash(make_closure(1)) == source_hash(make_closure(1))
    assert source_hash(make_closure(1)) != source_hash(make_closure(2))


def test_two_lambdas_of_one_line_are_two_models() -> None:
    one, two = (lambda i, o: nn.Linear(i, o)), (lambda i, o: nn.Linear(o, i))
    assert source_hash(one) != source_hash(two)
    assert register(one) == register(two)  # one name; the hash tells them apart


def test_code_without_source_is_hashed_as_code() -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    hashes = []
    for factor in (1, 1, 2):
        exec(f"def make(i, o): return {factor} * i", names)
        hashes.append(source_hash(names["make"]))
    assert hashes[0] == hashes[1] != hashes[2]
