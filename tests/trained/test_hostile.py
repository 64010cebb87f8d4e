"""Configurations that somebody has edited and signed anew: a model, or a sentence, and no more.

Files whose sums are wrong are refused in `test_saving.py`.
"""

import hashlib
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import gnn_vpa
from gnn_vpa import GnnVpaError
from gnn_vpa.cli._app import app
from gnn_vpa.graphs import load as load_data
from gnn_vpa.trained import TrainedModel

from .conftest import make, signed

_MEMORY = 1 << 28  # bytes that a load may map beside what is mapped; the weights have 200 kB
_VALUES: list[Any] = [
    *(None, True, -1, 0, 10**6, 2**31, 2**64, 10**400, 0.5, float("nan"), float("inf")),
    *("", "gat", "../x", "\x1b[31m", [], [1], [[]], [-1, 10**15], [["a"], [3, 1]], [[0, 10**15]]),
    *([["width", 10**6]], [["depth", 10**9]], [["K", 10**9]], [["depth", "x"]]),
    *({}, {"a": 1}, {"../x": "0" * 64}, {"x": {"x": [{}]}}),
]


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where each value is; of long lists the first entries."""
    entries = value.items() if isinstance(value, dict) else enumerate(value[:2])
    for key, entry in entries:
        yield (*path, key)
        if isinstance(entry, dict | list):
            yield from _places(entry, (*path, key))


def _mutants(config: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what is edited, and the configuration: some other values, none, or one more."""
    for number, path in enumerate(_places(config)):
        name = ".".join(map(str, path))
        for value in _VALUES[number % 4 :: 4]:
            mutant = json.loads(json.dumps(config))
            part = mutant
            for key in path[:-1]:
                part = part[key]
            part[path[-1]] = value
            yield f"{name} = {str(value)[:30]}", mutant
        del part[path[-1]]
        yield f"without {name}", mutant
        if isinstance(part, dict):
            yield f"more in {name}", {**mutant, "more": 1}
            part["more"] = {"../x": 1}
            yield f"more beside {name}", mutant


def _try_all(folder: Path, load: Callable[[Path], object]) -> None:
    """Load every mutant; print those that end in neither a model nor an error."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    count = 0
    for name, mutant in islice(_mutants(config), 0, None, 3):
        path.write_bytes(signed(mutant))
        count += 1
        try:
            load(folder)
        except GnnVpaError as error:
            if not str(error):
                print(name, "no message")
        except Exception as error:
            print(name, type(error).__name__, str(error)[:200])
    print(count, "tried")


def _bounded() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + _MEMORY,) * 2)


def main(kind: str, folder: Path) -> None:
    """Load the mutants of a model in this process, and use those that can be loaded."""
    import torch

    torch.set_num_threads(1)
    graphs = load_data("MUTAG").to_pyg()[:4] if kind != "regressor" else None

    def load(place: Path) -> None:
        model = gnn_vpa.load_model(place, model=make if kind == "own_model" else None)
        if graphs is not None:
            model.predict(graphs)

    load(folder)  # imports are done
    _bounded()
    _try_all(folder, load)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="looks into /proc")
@pytest.mark.parametrize("kind", ["classifier", "regressor", "own_model"])
def test_whatever_a_configuration_says_it_is_a_model_or_a_sentence(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    model: TrainedModel = request.getfixturevalue(kind)
    model.save(tmp_path / "mine")
    code = f"from {__name__} import main, Path; main({kind!r}, Path({str(tmp_path / 'mine')!r}))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert len(lines) == 1, done.stdout + done.stderr
    assert int(lines[0].split()[0]) > 170


_EDITS: list[tuple[str, Any, str]] = [
    ("files", {"../secret": hashlib.sha256(b"s").hexdigest()}, "names other files than a model"),
    ("files", {"README.md": 1}, "names other files than a model"),
    ("options", [["width", 10**6]], "does not fit the weights"),
    ("options", [["depth", 10**9]], "depth: 1000000000 are more than there are weights for"),
    ("options", [["dropout", "much"]], "is not of a model"),
    ("outputs", 10**12, "2 classes for 1000000000000 outputs"),
    ("metric", "luck", "the metric 'luck'"),
    ("attributes", 0.5, "it.encoding.attributes must be of type int, not '0.5'"),
    ("edge_attributes", 10**12, "features that no graphs have"),
    ("test_score", 1, "is not of a model"),
]


def _edited(config: dict[str, Any], name: str, value: object) -> dict[str, Any]:
    parts = [config, config["task"], config["target"], config["record"], config["encoding"]]
    part = next((part for part in parts if name in part), config["record"])
    part[name] = value
    return config


@pytest.mark.parametrize(("name", "value", "message"), _EDITS)
def test_the_command_line_says_what_is_wrong(
    name: str, value: object, message: str, saved: Path
) -> None:
    (saved.parent / "secret").write_text("s")
    path = saved / "config.json"
    path.write_bytes(signed(_edited(json.loads(path.read_text()), name, value)))
    result = CliRunner().invoke(app, ["predict", str(saved), "MUTAG"], env={"COLUMNS": "500"})
    assert result.exit_code == 1, result.output
    assert message in result.stderr
