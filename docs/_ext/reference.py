"""The reference: a page for each name of ``gnn_vpa``, and a page for each room below it."""

import importlib
import inspect
import pkgutil
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
    "Prepare graphs": ["GroupEdges", "MergeAlike"],
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


def _directive(package: ModuleType, name: str) -> str:
    value = getattr(package, name)
    if inspect.isclass(value):
        lines = [f".. autoclass:: {package.__name__}.{name}", "   :members:", "   :show-inheritance:"]
        if issubclass(value, BaseException):
            lines.remove("   :members:")
    elif inspect.isroutine(value):
        lines = [f".. autofunction:: {package.__name__}.{name}"]
    elif name == "probe":  # an object that is called, with a method of its own
        lines = [f".. autofunction:: {package.__name__}.{name}"]
    else:
        lines = [f".. autodata:: {package.__name__}.{name}", "   :no-value:"]
    return "\n".join(lines) + "\n"


def _title(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}\n\n"


def _summary(names: list[str]) -> str:
    return ".. autosummary::\n\n" + "".join(f"   ~{name}\n" for name in names) + "\n"


def _first_line(package: ModuleType) -> str:
    return (inspect.getdoc(package) or "").splitlines()[0]


def pages() -> dict[str, str]:
    """Return the text of each page by its path."""
    homes = home_of_names()
    written = {}
    listed = [name for names in TOPICS.values() for name in names]
    assert sorted(listed) == sorted(gnn_vpa.__all__), "each name of gnn_vpa belongs to one topic"

    top = _title("Reference", "=")
    top += (
        "Every public name, made from the code: its examples run as tests. What is used most is in\n"
        "``gnn_vpa`` itself; the rest is in rooms, each for one thing. The\n"
        ":doc:`commands </_generated/commands/index>` are the same on the command line.\n\n"
    )
    for topic, names in TOPICS.items():
        top += _title(topic, "-") + _summary([f"gnn_vpa.{name}" for name in names])
    top += _title("Rooms", "-") + ".. list-table::\n   :widths: 30 70\n\n"
    for package in rooms():
        name = package.__name__
        top += f"   * - :doc:`{name} </_generated/reference/{name}>`\n     - {_first_line(package)}\n"
    top += "\n.. toctree::\n   :hidden:\n   :caption: gnn_vpa\n\n"
    top += "".join(f"   {name} <gnn_vpa.{name}>\n" for name in listed)
    top += "\n.. toctree::\n   :hidden:\n   :caption: Rooms\n\n"
    top += "".join(f"   {package.__name__}\n" for package in rooms())
    top += "\n.. toctree::\n   :hidden:\n   :caption: Command line\n\n   ../commands/index\n"
    written["reference/index.rst"] = top

    for name in listed:
        written[f"reference/gnn_vpa.{name}.rst"] = _title(name, "=") + _directive(gnn_vpa, name)

    for package in rooms():
        room = package.__name__
        page = _title(room, "=") + _first_line(package) + "\n\n"
        here = [name for name in package.__all__ if homes[f"{room}.{name}"] == f"{room}.{name}"]
        elsewhere = sorted({homes[f"{room}.{name}"] for name in package.__all__} - {f"{room}.{n}" for n in here})
        if here:
            page += _summary([f"{room}.{name}" for name in here])
        if elsewhere:
            page += "Also offered here: " + ", ".join(f":py:obj:`{name}`" for name in elsewhere) + ".\n\n"
        for name in here:
            page += _title(name, "-") + _directive(package, name) + "\n"
        written[f"reference/{room}.rst"] = page
    return written
