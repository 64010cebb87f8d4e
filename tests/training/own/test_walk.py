"""Code and values that a function reaches, each told apart from others and alike in any process."""

import importlib
import logging
import sys
import threading
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.nn import GATConv, GCNConv

from gnn_vpa.errors import UsageError
from gnn_vpa.training.own import source_hash


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
    with pytest.raises(
        UsageError, match=r"content of value of .*make cannot be told \(generator.* make it inside"
    ):
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


EDITS = {
    "property": (
        "class Net:\n @property\n def width(self): return 8\ndef make(i, o): return Net()",
        "return 8", "return 64",
    ),
    "decorator": (
        "def twice(f):\n def inner(*a): return 2 * f(*a)\n return inner\n"
        "class Net:\n @twice\n def forward(self, x): return x\ndef make(i, o): return Net()",
        "2 * f", "3 * f",
    ),
    "decorator that wraps": (
        "import functools\ndef twice(f):\n @functools.wraps(f)\n def inner(*a): return 2 * f(*a)\n"
        " return inner\n@twice\ndef act(x): return x\ndef make(i, o): return act(i)",
        "2 * f", "3 * f",
    ),
    "within a library's decorator": (
        "import torch\n@torch.no_grad()\ndef act(x): return 2 * x\ndef make(i, o): return act(i)",
        "2 * x", "3 * x",
    ),
    "method set later": (
        "class Net: pass\ndef forward(self, x): return 2 * x\nNet.forward = forward\n"
        "def make(i, o): return Net()",
        "2 * x", "3 * x",
    ),
    "function of a library": (
        "import torch\nACT = torch.relu\nclass Net:\n act = staticmethod(ACT)\n"
        "def make(i, o): return Net()",
        "torch.relu", "torch.tanh",
    ),
    "name of Python's": ("pow = 2\ndef make(i, o): return i * pow", "pow = 2", "pow = 3"),
    "name looked up": (
        "class Net: width = 8\ndef make(i, o, kind='Net'): return globals()[kind]()",
        "width = 8", "width = 64",
    ),
    "metaclass": (
        "class Meta(type):\n def __call__(cls): return 2\nclass Net(metaclass=Meta): pass\n"
        "def make(i, o): return Net()",
        "return 2", "return 3",
    ),
    "class of the same name": (
        "class Net:\n width = 8\nclass Net:\n width = 16\ndef make(i, o): return Net()",
        "width = 16", "width = 64",
    ),
    "nested class": (
        "W = 8\nclass Net:\n class Inner:\n  def width(self): return W\ndef make(i, o): return Net",
        "W = 8", "W = 64",
    ),
    "property of an enumeration": (
        "from enum import Enum\nW = {'a': 8}\nclass Size(Enum):\n A = 'a'\n @property\n"
        " def width(self): return W[self.value]\ndef make(i, o): return Size.A.width",
        "'a': 8", "'a': 64",
    ),
    "function by type": (
        "import functools\n@functools.singledispatch\ndef act(x): return x\n@act.register\n"
        "def _(x: int): return 2 * x\ndef make(i, o): return act(i)",
        "2 * x", "3 * x",
    ),
    "method that is a partial": (
        "import functools, torch\nclass Net(torch.nn.Linear):\n"
        " __init__ = functools.partialmethod(torch.nn.Linear.__init__, bias=True)\n"
        "def make(i, o): return Net(i, o)",
        "bias=True", "bias=False",
    ),
    "default of a field": (
        "from dataclasses import dataclass, field\n@dataclass\nclass Size:\n"
        " width: list = field(default_factory=lambda: [8])\ndef make(i, o): return Size()",
        "[8]", "[64]",
    ),
    "mode of a library's decorator": (
        "import torch\n@torch.set_grad_enabled(True)\ndef act(x): return x\n"
        "def make(i, o): return act(i)",
        "(True)", "(False)",
    ),
    "enumeration": (
        "from enum import Enum\nclass Size(Enum): WIDE = 8\ndef make(i, o): return Size.WIDE",
        "WIDE = 8", "WIDE = 64",
    ),
    "same name, other library": (
        "from math import exp\ndef make(i, o): return exp(i)", "from math", "from numpy",
    ),
    "attribute that layers change": (
        "from types import SimpleNamespace as N\nCFG = N(training=N(dropout=0.1))\n"
        "def make(i, o): return CFG.training.dropout",
        "0.1", "0.5",
    ),
    "layers that are one": (
        "from torch import nn\nL = nn.Dropout(0.1)\nACT = nn.Sequential(L, L, L)\n"
        "def make(i, o): return ACT",
        "(L, L, L)", "(L, L)",
    ),
    "layers with one weight": (
        "import torch\nfrom torch import nn\ndef lin():\n torch.manual_seed(0)\n"
        " return nn.Linear(2, 2)\nA = nn.ModuleList([lin()] * 2)\ndef make(i, o): return A",
        "[lin()] * 2", "[lin(), lin()]",
    ),
}  # fmt: skip


def executed(text: str) -> Any:
    """Return ``make`` of cells of a notebook, whose source nobody has."""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(text, names)
    return names["make"]


@pytest.mark.parametrize("kind", EDITS)
def test_an_edit_in_a_notebook_is_another_model(kind: str) -> None:
    text, old, new = EDITS[kind]
    assert old in text
    before = source_hash(executed(text))
    assert source_hash(executed(text)) == before
    assert source_hash(executed(text.replace(old, new))) != before


@pytest.mark.parametrize(
    "text",
    [
        "class Net:\n 'A docstring.'\n def forward(self, x): return x\n"
        "def make(i, o):\n 'Another.'\n Net()",
        "# A remark.\nclass Net:\n def forward(self, x):\n  return x\n\ndef make(i, o): Net()",
        "unused = object()\nclass Net:\n def forward(self, x): return x\ndef make(i, o): Net()",
    ],
)
def test_what_is_not_the_models_does_not_matter_in_a_notebook(text: str) -> None:
    plain = "class Net:\n def forward(self, x): return x\ndef make(i, o): Net()"
    assert source_hash(executed(text)) == source_hash(executed(plain))


@pytest.mark.parametrize(
    "text",
    [
        "import sys\nW = 8\ndef make(i, o): return getattr(sys.modules[__name__], 'W')",
        "class Layer:\n all = set()\n def __init_subclass__(cls): Layer.all.add(cls)\n"
        "class Net(Layer): pass\ndef make(i, o): return Net()",
        "from torch_geometric.nn import GCNConv, Sequential\n"
        "NET = Sequential('x, e', [(GCNConv(2, 2), 'x, e -> x')])\nfor p in NET.parameters():\n"
        " p.data.fill_(1)\ndef make(i, o): return NET",
        "import torch\nNET = torch.compile(torch.nn.Dropout(0.5))\ndef make(i, o): return NET",
        "\n".join(f"def f{n}(x): return f{n + 1}(x)" for n in range(400))
        + "\ndef f400(x): return x\ndef make(i, o): return f0(i)",
    ],
    ids=["modules", "registry", "sequence", "compiled", "chain"],
)
def test_what_differs_in_each_process_does_not_count(text: str) -> None:
    before = source_hash(executed(text))
    importlib.import_module("colorsys")
    assert source_hash(executed(text)) == before
