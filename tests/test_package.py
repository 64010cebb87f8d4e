"""The package as a whole: what it exports, and what importing it costs."""

import ast
import importlib
import inspect
import json
import pkgutil
import subprocess
import sys
import tomllib
from importlib.util import resolve_name
from pathlib import Path
from types import ModuleType

import pytest

import gnn_vpa
from gnn_vpa import estimators

ROOMS = [
    importlib.import_module(f"gnn_vpa.{room.name}")
    for room in pkgutil.iter_modules(gnn_vpa.__path__)
    if room.ispkg
]
PUBLIC = [
    pytest.param(module, name, id=f"{module.__name__}.{name}")
    for module in (gnn_vpa, *ROOMS)
    for name in module.__all__
]
ORDER = ["cli", "analysis", "auditing", "estimators", "experiments", "trained", "training"]
ORDER += ["signal", "pyg", "nn", "graphs", "ops", "paper"]
HEAVY = ("jinja2", "matplotlib", "pandas", "rich", "scipy.stats", "sklearn", "typer")


def _modules_after(statement: str) -> set[str]:
    code = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(json.loads(done.stdout))


@pytest.mark.parametrize(("module", "name"), PUBLIC)
def test_every_public_name_exists_and_shows_an_example(module: ModuleType, name: str) -> None:
    value = getattr(module, name)
    if inspect.isclass(value) or inspect.isroutine(value):
        assert ">>> " in (value.__doc__ or ""), f"{module.__name__}.{name} has no example"


def test_importing_the_package_brings_neither_torch_nor_anything_heavy() -> None:
    modules = _modules_after("import gnn_vpa")
    assert not modules & {"torch", *HEAVY}


def test_using_every_public_name_brings_only_what_torch_and_pyg_bring() -> None:
    names = ", ".join(name for name in gnn_vpa.__all__ if name not in estimators.__all__)
    modules = _modules_after(f"from gnn_vpa import {names}")
    peers = _modules_after("import torch, torch_geometric, torch_geometric.nn")
    assert not (modules - peers) & set(HEAVY)


def test_estimators_bring_scikit_learn_and_nothing_else_that_is_heavy() -> None:
    modules = _modules_after(f"from gnn_vpa import {', '.join(estimators.__all__)}")
    theirs = _modules_after("import torch, torch_geometric.nn, sklearn.model_selection")
    assert not (modules - theirs) & set(HEAVY)


def test_the_names_in_all_are_those_that_dir_shows() -> None:
    assert set(gnn_vpa.__all__) <= set(dir(gnn_vpa))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'aggregat'"):
        gnn_vpa.aggregat  # noqa: B018


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.__name__)
def test_a_room_imports_only_from_rooms_below_it(room: ModuleType) -> None:
    above = ORDER[: ORDER.index(room.__name__.removeprefix("gnn_vpa."))]
    for path in Path(room.__path__[0]).rglob("*.py"):
        assert not _rooms_imported_by(path) & set(above), path


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.__name__)
def test_no_private_name_crosses_a_room(room: ModuleType) -> None:
    """What rooms share is declared: in ``__all__``, in public modules, or in ``internal.py``."""
    name = room.__name__.removeprefix("gnn_vpa.")
    for path in Path(room.__path__[0]).rglob("*.py"):
        package = ".".join(path.relative_to(Path(gnn_vpa.__path__[0]).parent).parent.parts)
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ImportFrom):
                continue
            module = resolve_name("." * node.level + (node.module or ""), package)
            parts = module.removeprefix("gnn_vpa.").split(".")
            if not module.startswith("gnn_vpa.") or parts[0] == name:
                continue
            crossing = [part for part in (*parts, *(a.name for a in node.names)) if part[0] == "_"]
            assert not crossing, f"{path}:{node.lineno} takes {crossing} from another room"


def _rooms_imported_by(path: Path) -> set[str]:
    package = ".".join(path.relative_to(Path(gnn_vpa.__path__[0]).parent).parent.parts)
    modules = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            source = resolve_name("." * node.level + (node.module or ""), package)
            modules |= {f"{source}.{alias.name}" for alias in node.names}
    return {module.split(".")[1] for module in modules if module.startswith("gnn_vpa.")}


def test_the_command_line_tells_the_version(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"gnn-vpa": "gnn_vpa.cli:main"}
    done = subprocess.run(
        [sys.executable, "-m", "gnn_vpa", "--version"], check=True, capture_output=True, text=True
    )
    assert done.stdout == f"gnn-vpa {gnn_vpa.__version__}\n"


def test_the_data_of_the_demo_are_part_of_the_package(root: Path) -> None:
    # hatchling packs what lies in the package, unless git ignores it.
    wheel = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    assert wheel["targets"]["wheel"] == {"packages": ["src/gnn_vpa"]}
    data = root / "src" / "gnn_vpa" / "graphs" / "data"
    assert sorted(path.name for path in data.iterdir()) == ["MUTAG.zip", "NOTICE.md"]
    if (root / ".git").exists():
        command = ["git", "check-ignore", "--quiet", str(data / "MUTAG.zip")]
        assert subprocess.run(command, cwd=root).returncode == 1
