"""What a file's model is made of: its text, what it chose when imported, what came later."""

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gnn_vpa.training.own import modules_of, source_hash

Write = Callable[[str, str], None]
FILE = """
import math
from functools import partial
from mylayers import DEPTH
import mylayers

WIDTH = 2 * 4
SIZES = {"wide": [8, -16]}


class Net:
    size = 4

    def __init__(self):
        self.width = WIDTH * DEPTH * mylayers.SCALE * SIZES["wide"][0] * self.size * math.pi


def make(in_channels, out_channels, bias=True):
    return Net()
"""
LAYERS = "DEPTH = 3\nSCALE = 2\n"

CHOICES = {
    "lambda": (
        "ACTS = {'8': lambda x: x.relu(), '64': lambda x: x.tanh()}\nact = ACTS[os.environ['W']]",
        "act(i)",
    ),
    "default of a lambda": (
        "f, g = lambda x, s=os.environ['W']: x, lambda x, s=2: x",
        "f(i), g(i)",
    ),
    "argument of a decorator": (
        "def scaled(w):\n def around(f):\n  return lambda x: w * f(x)\n return around\n"
        "@scaled(int(os.environ['W']))\ndef act(x): return x",
        "act(i)",
    ),
    "base": (
        "class A: pass\nclass B:\n def f(self): return 1\n"
        "class Net(A if os.environ['W'] == '8' else B): pass",
        "Net()",
    ),
    "module by name": ("import myconfig", "getattr(myconfig, 'WIDTH')"),
    "import in a function": ("", "__import__('myconfig') and load()"),
}


@pytest.mark.parametrize("kind", CHOICES)
def test_what_a_file_chooses_when_it_is_imported_counts(
    write_module: Write, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    text, used = CHOICES[kind]
    load = "def load():\n    from myconfig import WIDTH\n    return WIDTH\n"
    hashes = []
    for width in ("8", "64", "8"):
        monkeypatch.setenv("W", width)
        write_module("myconfig", "import os\nWIDTH = int(os.environ['W'])\n")
        write_module("mynet", f"import os\n{text}\n{load}def make(i, o):\n    return {used}\n")
        hashes.append(source_hash(importlib.import_module("mynet").make))
    assert hashes[0] == hashes[2] != hashes[1]


def test_what_a_package_imports_of_itself_is_no_circle(write_module: Write) -> None:
    write_module("mypackage.__init__", "from . import layers\n")
    write_module("mypackage.layers", "import mypackage\nclass Net: pass\n")
    write_module("mynet", "from mypackage import layers\ndef make(i, o): return layers.Net()\n")
    make = importlib.import_module("mynet").make
    names = {module.__name__ for module in modules_of(make)}
    assert names == {"mynet", "mypackage", "mypackage.layers"}


def test_modules_that_no_model_reads_are_not_run(write_module: Write, tmp_path: Path) -> None:
    write_module("mytrain", "import pathlib, sys\npathlib.Path('ran').touch()\nsys.exit(2)\n")
    write_module(
        "mynet",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import mytrain\n"
        "if __name__ == '__main__':\n    import mytrain\n"
        "def plot():\n    import mytrain\ndef make(i, o): return None\n",
    )
    source_hash(importlib.import_module("mynet").make)
    assert not (tmp_path / "ran").exists()


@pytest.fixture
def net(write_module: Write) -> Any:
    write_module("mylayers", LAYERS)
    write_module("mynet", FILE)
    return importlib.import_module("mynet")


def wider(net: Any) -> None:
    net.WIDTH = 64


def deeper(net: Any) -> None:
    net.DEPTH = 64


def rescaled(net: Any) -> None:
    net.mylayers.SCALE = 64


def sized(net: Any) -> None:
    net.SIZES["wide"][0] = 64


def of_class(net: Any) -> None:
    net.Net.size = 64


def without_bias(net: Any) -> None:
    net.make.__defaults__ = (False,)


def replaced(net: Any) -> None:
    net.Net = SimpleNamespace


def replaced_by_a_partial(net: Any) -> None:
    net.Net = partial(net.Net)


def with_another_method(net: Any) -> None:
    net.Net.__init__ = lambda self: None


def with_another_attribute(net: Any) -> None:
    net.Net.act = staticmethod(torch.tanh)


@pytest.mark.parametrize(
    "change",
    [
        wider, deeper, rescaled, sized, of_class, without_bias, replaced, replaced_by_a_partial,
        with_another_method, with_another_attribute,
    ],
)  # fmt: skip
def test_a_value_of_a_module_that_is_changed_is_another_model(
    net: Any, change: Callable[[Any], None]
) -> None:
    before = source_hash(net.make)
    change(net)
    changed = source_hash(net.make)
    assert changed != before
    assert changed == source_hash(net.make)
    assert {module.__name__ for module in modules_of(net.make)} >= {"mynet", "mylayers"}


def test_what_the_text_computes_counts_as_it_is_now(write_module: Write) -> None:
    text = (
        "import os\nCFG = dict(width=int(os.environ['W']))\ndef make(i, o): return CFG['width']\n"
    )
    hashes = []
    for width in ("8", "64", "8"):
        os.environ["W"] = width
        write_module("mynet", text)
        hashes.append(source_hash(importlib.import_module("mynet").make))
    del os.environ["W"]
    assert hashes[0] == hashes[2] != hashes[1]


def test_devices_loggers_and_folders_are_no_part_of_a_file_s_model(
    write_module: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "import logging, threading, os\n"
        "log, lock, rows = logging.getLogger('x'), threading.Lock(), (i for i in [1])\n"
        "device = os.environ['DEVICE']\nhere = os.path.dirname(os.path.realpath(__file__))\n"
        "def make(i, o): return log, lock, rows, device, here\n"
    )
    hashes = set()
    for device in ("cpu", "cuda:0"):
        monkeypatch.setenv("DEVICE", device)
        write_module("mynet", text)
        hashes.add(source_hash(importlib.import_module("mynet").make))
    assert len(hashes) == 1


SCRIPT = """
import torch
from functools import partial
from torch import nn
from torch_geometric.nn import GINConv, MessagePassing
from gnn_vpa.training.own import source_hash


class Option:
    def __init__(self):
        self.kinds, self.cast = {"a", "b", "c", "d"}, [int, object()]


class Conv(MessagePassing):
    def __init__(self):
        super().__init__(aggr="add")
        self.lin = nn.Linear(3, 3)

    def message(self, x_j):
        return self.lin(x_j)


torch.manual_seed(0)
act = nn.Sequential(nn.Linear(2, 2), GINConv(nn.Linear(2, 2)))
act.register_forward_hook(lambda *_: None)
option, norm = Option(), partial(nn.BatchNorm1d, eps=1e-3)
is_kind = lambda kind: kind in {"a", "b", "c", "d"}


def make(in_channels, out_channels):
    return act, option, norm, is_kind, Conv()


before = source_hash(make)
make(1, 2)
assert source_hash(make) == before  # PyG gives a class methods when it is first used
print(before)
"""


def test_hashes_are_the_same_in_every_process_and_after_a_model_was_made(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    found = {
        subprocess.run(
            [sys.executable, path],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_a_walk_that_imports_finds_what_the_next_one_finds(write_module: Write) -> None:
    write_module("mylazy.__init__", "WIDTH = 8\n")
    write_module("mylazy.extra", "DEPTH = 2\n")
    write_module(
        "mynet",
        "import mylazy\ndef make(i, o, package=mylazy):\n"
        "    from mylazy import extra\n    return extra.DEPTH\n",
    )
    make = importlib.import_module("mynet").make
    assert len({source_hash(make) for _ in range(3)}) == 1
