"""The reference: a page for each name of ``gnn_vpa``, and a page for each room below it."""

import functools
import importlib
import inspect
import pkgutil
import typing
from types import ModuleType

import gnn_vpa

# What ``gnn_vpa`` itself offers, by what somebody wants to do.
TOPICS = {
    "Convert a model of PyTorch Geometric": [
        "convert",
        "register",
        "VPAggregation",
        "global_vpa_pool",
        "VPGATConv",
        "VPGATv2Conv",
        "VPGCNConv",
        "VPSGConv",
        "VPTransformerConv",
    ],
    "See and mend the signal": ["probe", "init_", "calibrate"],
    "Compare aggregations": ["run", "Results", "audit", "Audit"],
    "Train, save, predict": [
        "GraphClassifier",
        "GraphRegressor",
        "cross_validate",
        "train_model",
        "load_model",
        "TrainedModel",
    ],
    "Build from parts": [
        "aggregate",
        "attend",
        "Graph",
        "build_model",
        "backend",
        "forget_graphs",
    ],
    "Prepare graphs": ["DataLoader", "GroupEdges", "MergeAlike"],
    "Errors": ["GnnVpaError", "UsageError"],
}


def rooms() -> list[ModuleType]:
    """Return the public packages below ``gnn_vpa``, outer ones first."""
    found = []
    for module in pkgutil.walk_packages(gnn_vpa.__path__, "gnn_vpa."):
        parts = module.name.split(".")
        if module.ispkg and not any(part.startswith("_") for part in parts) and "cli" not in parts:
            package = importlib.import_module(module.name)
            if hasattr(package, "__all__"):
                found.append(package)
    return sorted(found, key=lambda package: (package.__name__.count("."), package.__name__))


@functools.cache
def home_of_names() -> dict[str, str]:
    """Return for each public name, ``gnn_vpa.ops.Graph``, the one under which it has its entry.

    An object that several packages offer is described once, by the outermost of them.
    """
    first: dict[tuple[int, str], str] = {}
    homes = {}
    for package in [gnn_vpa, *rooms()]:
        for name in package.__all__:
            spelled = f"{package.__name__}.{name}"
            key = (id(getattr(package, name)), name)
            homes[spelled] = first.setdefault(key, spelled)
    return homes


def _is_described(value: object) -> bool:
    """Say whether autodoc can describe an object: a class, a function, or the probe."""
    return inspect.isclass(value) or (callable(value) and inspect.getmodule(value) is not typing)


def _entry(package: ModuleType, name: str) -> str:
    """Return the directive that describes a name."""
    value, spelled = getattr(package, name), f"{package.__name__}.{name}"
    if inspect.isclass(value):
        members = "" if issubclass(value, BaseException) else "   :members:\n"
        return f".. autoclass:: {spelled}\n{members}   :show-inheritance:\n"
    if _is_described(value):
        return f".. autofunction:: {spelled}\n"
    return f".. py:data:: {spelled}\n\n   {_first_sentence(value)}\n"


def _first_sentence(value: object) -> str:
    """Say in a line what an object is: its docstring's first line, or what a table holds."""
    if _is_described(value) or isinstance(value, ModuleType):
        return (inspect.getdoc(value) or "").splitlines()[0]
    if isinstance(value, str):
        return f"``{value}``"
    members = typing.get_args(value) or value
    words = "One of" if typing.get_args(value) else "A table of"
    plain = [m if isinstance(m, (str, int)) else type(m).__name__ for m in members]
    return f"{words} " + ", ".join(f"``{member}``" for member in plain)


def _title(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}\n\n"


def _table(rows: list[tuple[str, str]]) -> str:
    """Return a table of two columns, or nothing."""
    body = "".join(f"   * - {left}\n     - {right}\n" for left, right in rows)
    return f".. list-table::\n   :widths: 30 70\n\n{body}\n" if rows else ""


def _summary(package: ModuleType, names: list[str]) -> str:
    room = package.__name__
    return _table(
        [
            (f":py:obj:`{name} <{room}.{name}>`", _first_sentence(getattr(package, name)))
            for name in names
        ]
    )


def _tree(caption: str, entries: list[str]) -> str:
    lines = "".join(f"   {entry}\n" for entry in entries)
    return f".. toctree::\n   :hidden:\n   :caption: {caption}\n\n{lines}\n"


def _room(package: ModuleType, homes: dict[str, str]) -> str:
    """Return the page of a room: what is described nowhere else, and links to the rest."""
    room = package.__name__
    here = [name for name in package.__all__ if homes[f"{room}.{name}"] == f"{room}.{name}"]
    elsewhere = [homes[f"{room}.{name}"] for name in package.__all__ if name not in here]
    page = _title(room, "=") + _first_sentence(package) + "\n\n" + _summary(package, here)
    if elsewhere:
        page += "Also offered here: " + ", ".join(f":py:obj:`{name}`" for name in elsewhere)
        page += ".\n\n"
    return page + "".join(_title(name, "-") + _entry(package, name) + "\n" for name in here)


def pages() -> dict[str, str]:
    """Return the text of each page by its path."""
    listed = [name for names in TOPICS.values() for name in names]
    assert sorted(listed) == sorted(gnn_vpa.__all__), "each name of gnn_vpa belongs to one topic"
    found, homes = rooms(), home_of_names()
    top = _title("Reference", "=")
    top += (
        "Every public name, made from the code; the examples run as tests. What is used most is\n"
        "in ``gnn_vpa`` itself, the rest in rooms, each for one thing. The\n"
        ":doc:`commands </_generated/commands/index>` are the same on the command line.\n\n"
    )
    for topic, names in TOPICS.items():
        top += _title(topic, "-") + _summary(gnn_vpa, names)
    top += _title("Rooms", "-")
    top += _table(
        [(f":doc:`{room.__name__} <{room.__name__}>`", _first_sentence(room)) for room in found]
    )
    top += _tree("gnn_vpa", [f"{name} <gnn_vpa.{name}>" for name in listed])
    top += _tree("Rooms", [room.__name__ for room in found])
    top += _tree("Command line", ["/_generated/commands/index"])
    return {
        "reference/index.rst": top,
        **{
            f"reference/gnn_vpa.{name}.rst": _title(name, "=") + _entry(gnn_vpa, name)
            for name in listed
        },
        **{f"reference/{room.__name__}.rst": _room(room, homes) for room in found},
    }
