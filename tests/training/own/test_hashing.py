"""Values that a model is made with are a part of what it is, as they are now."""

import ast
import hashlib
import importlib
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.nn import GATConv, GCNConv

from gnn_vpa.errors import UsageError
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


def around(value: Any) -> Callable[..., Any]:
    def make(in_channels: int, out_channels: int) -> Any:
        return value

    return make


def scaled(factor: float) -> Callable[[float], float]:
    return lambda x: x * factor


def weighted(value: float, kind: type[nn.Module] = nn.Linear) -> nn.Module:
    module = kind(*(() if kind is nn.PReLU else (2, 2)))
    for parameter in module.parameters():
        nn.init.constant_(parameter, value)
    return module


def cyclic(value: int) -> list[Any]:
    inner: list[Any] = [value, object()]
    inner.append(inner)
    return inner


class Option:
    def __init__(self, width: int) -> None:
        self.width = width


class Gate(nn.Module):
    def __init__(self, at: float) -> None:
        super().__init__()
        self._at = at


@pytest.mark.parametrize(
    ("made", "one", "other"),
    [
        (nn.Dropout, 0.0, 0.9),
        (nn.LeakyReLU, 0.01, 0.9),
        (Gate, 1.0, 2.0),
        (weighted, 1.0, 2.0),
        (partial(weighted, kind=nn.PReLU), 1.0, 2.0),
        (lambda p: nn.Sequential(nn.Tanh(), nn.Dropout(p)), 0.0, 0.9),
        (lambda bias: partial(nn.Linear, bias=bias), True, False),
        (lambda act: act, F.relu, F.elu),
        (lambda layer: layer, GCNConv, GATConv),
        (lambda cast: cast, int, float),
        (lambda factor: [scaled(1), scaled(factor)], 1, 2),
        (lambda factor: (scaled(factor), scaled(1)), 1, 2),
        (lambda p: nn.Dropout(p).forward, 0.1, 0.2),
        (lambda p: {"act": nn.Dropout(p)}, 0.1, 0.2),
        (Option, 8, 64),
        (lambda width: SimpleNamespace(width=width), 8, 64),
        (lambda text: {text, "b", "c"}, "a", "d"),
        (torch.tensor, [1.0], [2.0]),
        (lambda n: torch.eye(n).to_sparse(), 2, 3),
        (np.array, [1.0], [2.0]),
        (cyclic, 1, 2),
    ],
)
def test_captured_values_tell_models_apart(
    made: Callable[[Any], Any], one: Any, other: Any
) -> None:
    assert source_hash(around(made(one))) == source_hash(around(made(one)))
    assert source_hash(around(made(one))) != source_hash(around(made(other)))


def test_functions_in_other_places_are_another_model() -> None:
    def made(first: Any, second: Any) -> Any:
        def make(i: int, o: int) -> Any:
            return first, second

        return make

    def act(x: float) -> float:
        return x

    def gate(x: float) -> float:
        return 2 * x

    assert source_hash(made(act, gate)) != source_hash(made(gate, act))


def test_what_is_trained_beside_is_not_looked_at() -> None:
    module = nn.BatchNorm1d(2)
    before = source_hash(around(module))
    module.eval()
    assert source_hash(around(module)) == before


@pytest.mark.parametrize("value", [threading.Lock(), logging.getLogger("x"), sys.__stdout__])
def test_what_takes_no_part_in_a_model_is_not_refused(value: object) -> None:
    assert len(source_hash(around({"a": value}))) == 16


def test_what_cannot_be_told_is_refused_and_named() -> None:
    with pytest.raises(UsageError, match=r"value of .*make is a generator.* make it inside"):
        source_hash(around(i for i in range(3)))


def test_a_value_of_a_notebook_counts_as_it_is_now() -> None:
    names: dict[str, Any] = {"__name__": "__main__", "WIDTH": 8, "act": nn.Dropout(0.1)}
    exec("def make(i, o): return WIDTH, act", names)
    before = source_hash(names["make"])
    names["WIDTH"] = 64
    wide = source_hash(names["make"])
    names["WIDTH"], names["act"].p = 8, 0.9
    dropping = source_hash(names["make"])
    names["act"].p = 0.1
    assert len({before, wide, dropping}) == 3
    assert source_hash(names["make"]) == before


@pytest.fixture
def net(write_module: Write) -> Any:
    write_module("mylayers", LAYERS)
    write_module("mynet", FILE)
    return importlib.import_module("mynet")


def test_a_file_that_says_all_its_values_is_hashed_by_its_text(net: Any) -> None:
    texts = [("mylayers", ast.dump(ast.parse(LAYERS))), ("mynet", ast.dump(ast.parse(FILE)))]
    expected = hashlib.sha256(repr(texts).encode()).hexdigest()[:16]
    assert source_hash(net.make) == expected


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
    net.Net = Option


@pytest.mark.parametrize(
    "change", [wider, deeper, rescaled, sized, of_class, without_bias, replaced]
)
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
