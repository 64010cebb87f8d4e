"""When earlier results are taken for those of a model: for the same one, and for no other."""

import importlib
import logging
import os
import random
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data

import gnn_vpa
from gnn_vpa.errors import UsageError

GRAPHS = """
import torch
from torch_geometric.data import Data

def ring(size, label):
    near = torch.arange(size)
    edges = torch.cat([torch.stack([near, near.roll(1)]), torch.stack([near.roll(1), near])], 1)
    return Data(edge_index=edges, x=torch.eye(3)[near % 3], num_nodes=size, y=label)

GRAPHS = [ring(3 + i % 5, i % 2) for i in range(40)]
"""
NET = """
import math
import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.nn import global_add_pool
import mylayers
from mypackage.layers import act

WIDTH = 4
SCALES = {"a": 1.0, "b": 2.0}


def scaled(by):
    def around(function):
        return lambda *given: by * function(*given)
    return around


class Net(nn.Module):
    def __init__(self, in_channels, out_channels, hidden=WIDTH, p=0.25):
        super().__init__()
        self.lin = nn.Linear(in_channels, hidden)
        self.head = nn.Linear(hidden, out_channels)
        self.p = p

    @scaled(2)
    def rescaled(self, x):
        return mylayers.SCALE * x

    def forward(self, x, edge_index, batch):
        x = F.dropout(act(self.lin(x)), 0.5 * self.p, self.training)
        return self.head(global_add_pool(self.rescaled(x), batch))

    @classmethod
    def small(cls, in_channels, out_channels):
        return cls(in_channels, out_channels, 2)


class Maker:
    def __init__(self, hidden):
        self.hidden = hidden

    def __call__(self, in_channels, out_channels):
        return Net(in_channels, out_channels, self.hidden)

    def made(self, in_channels, out_channels):
        return Net(in_channels, out_channels, self.hidden + 1)


def make(in_channels, out_channels, *, hidden, p=0.25):
    return Net(in_channels, out_channels, hidden, p)
"""
FILES = {
    "mynet.py": NET,
    "mylayers.py": "import numpy as np\nSCALE = 2.0\nrng = np.random.RandomState(0)\n",
    "mypackage/__init__.py": "",
    "mypackage/layers.py": "import torch\n\ndef act(x):\n    return torch.relu(x)\n",
}


class Folder:
    """A folder of a user's, from which models are run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        names: dict[str, Any] = {}
        exec(GRAPHS, names)
        self.graphs: list[Data] = names["GRAPHS"]

    def write(self, **files: str) -> None:
        """Write files, as if they were imported by a new process."""
        for name, text in files.items():
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.forget()

    def forget(self) -> None:
        for cached in self.path.rglob("__pycache__/*.pyc"):
            cached.unlink()  # of the same second
        for name, module in list(sys.modules.items()):
            if str(self.path) in (getattr(module, "__file__", None) or ""):
                del sys.modules[name]
        importlib.invalidate_caches()
        sys.path_importer_cache.clear()

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.path / name).read_text()
        assert old in text
        self.write(**{name: text.replace(old, new)})

    def trains(self, models: Any = "mynet:Net", **options: Any) -> int:
        """Run models, and return how many were trained and not taken from earlier results."""
        out = self.path / "results"
        settings: dict[str, Any] = {"epochs": 1, "folds": 2, "device": "cpu", "out": out}
        before = len(gnn_vpa.Results(out).folds) if out.exists() else 0
        after = len(gnn_vpa.run({"rings": self.graphs}, models, **settings, **options).folds)
        return (after - before) // 2

    def python(self, *arguments: str | Path, text: str = "") -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            input=text,
            capture_output=True,
            text=True,
            cwd=self.path,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "GNN_VPA_WORKERS": "1"},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr


@pytest.fixture
def folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Iterator[Folder]:
    caplog.set_level("WARNING", "gnn_vpa")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)  # which source was imported is in there
    folder = Folder(tmp_path)
    folder.write(**FILES)
    yield folder
    folder.forget()


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("mynet.py", "class Net", "# A remark.\nclass Net"),
        ("mynet.py", "super().__init__()\n", "super().__init__()  # first\n"),
        ("mynet.py", "class Maker:", "class Maker:\n    'A docstring.'\n"),
        ("mynet.py", "\nimport math", '"""A docstring."""\nimport math'),
        ("mynet.py", "act(self.lin(x)), 0.5", "act(\n            self.lin(x)\n        ), 0.5"),
        ("mynet.py", '"a"', "'a'"),
        ("mynet.py", "WIDTH = 4\n", "\n\n\nWIDTH = 4\n"),
        ("mypackage/layers.py", "import torch", "# A remark.\nimport torch"),
        ("other.py", "", "x = 1"),
    ],
    ids=[
        "remark", "remark behind", "docstring", "docstring of the module", "format", "quotes",
        "moved", "package", "file that is not imported",
    ],
)  # fmt: skip
def test_the_same_model_keeps_its_results(folder: Folder, name: str, old: str, new: str) -> None:
    (folder.path / "other.py").touch()
    assert folder.trains() == 1
    folder.edit(name, old, new)
    assert folder.trains() == 0


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("mynet.py", "WIDTH = 4", "WIDTH = 5"),
        ("mynet.py", '"b": 2.0', '"b": 3.0'),
        ("mynet.py", "p=0.25", "p=0.35"),
        ("mynet.py", "0.5 * self.p", "0.6 * self.p"),
        ("mynet.py", "@scaled(2)", "@scaled(3)"),
        ("mynet.py", "self.training)", "True)"),
        ("mylayers.py", "SCALE = 2.0", "SCALE = 3.0"),
        ("mylayers.py", "RandomState(0)", "RandomState(1)"),
        ("mypackage/layers.py", "torch.relu", "torch.tanh"),
        ("mypackage/__init__.py", "", "import torch\ntorch.nn.Linear.scale = 2"),
    ],
    ids=[
        "constant", "dictionary", "default", "dropout", "decorator", "mode", "module", "seed",
        "package", "package's init",
    ],
)  # fmt: skip
def test_another_model_is_trained(folder: Folder, name: str, old: str, new: str) -> None:
    assert folder.trains() == 1
    if old:
        folder.edit(name, old, new)
    else:
        folder.write(**{name: new})
    assert folder.trains() == 1
    folder.write(**FILES)
    assert folder.trains() == 0


def test_another_process_finds_the_same_model(folder: Folder) -> None:
    assert folder.trains() == 1
    script(folder, "").write_text(SCRIPT.format(model="'mynet:Net'"))
    assert "folds 2" in folder.python("script.py")


def test_options_count_by_their_values_and_not_by_their_order(folder: Folder) -> None:
    assert folder.trains("mynet:make", hidden=2, p=0.5) == 1
    assert folder.trains("mynet:make", p=0.5, hidden=2) == 0
    assert folder.trains("mynet:make", p=[0.5, 0.6], hidden=2) == 1


LATE = """
from torch import nn
from torch_geometric.nn import global_add_pool

class Net(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        import mylate
        self.lin, self.scale = nn.Linear(i, o), mylate.SCALE

    def forward(self, x, edge_index, batch):
        return self.scale * global_add_pool(self.lin(x), batch)
"""


def test_a_module_that_is_imported_when_the_model_is_built_counts(folder: Folder) -> None:
    folder.write(**{"mynet.py": LATE, "mylate.py": "SCALE = 2\n"})
    assert folder.trains() == 1
    assert folder.trains() == 0
    folder.edit("mylate.py", "2", "3")
    assert folder.trains() == 1


COUNTING = """
import itertools
import torch
from torch import nn
from torch_geometric.nn import global_add_pool

MADE, NUMBER, CACHE = [], itertools.count(), []

class Net(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        if not CACHE:
            CACHE.append(torch.randn(3))
        self.lin = nn.Linear(i, o)
        self.register_buffer("number", torch.tensor(float(next(NUMBER))))
        MADE.append(self)

    def forward(self, x, edge_index, batch):
        return global_add_pool(self.lin(x), batch)
"""


def test_a_factory_that_counts_what_it_makes_stays_the_same(folder: Folder) -> None:
    folder.write(**{"mynet.py": COUNTING})
    assert [folder.trains() for _ in range(3)] == [1, 0, 0]


def test_the_state_of_generators_is_left_as_it_was(folder: Folder) -> None:
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002 - models may use it
    random.seed(3)
    before = torch.get_rng_state(), np.random.get_state()[1], random.getstate()  # noqa: NPY002
    limit = sys.getrecursionlimit()
    folder.trains()
    after = torch.get_rng_state(), np.random.get_state()[1], random.getstate()  # noqa: NPY002
    assert torch.equal(before[0], after[0])
    assert np.array_equal(before[1], after[1])
    assert before[2] == after[2]
    assert limit == sys.getrecursionlimit()


# Values that no file says -------------------------------------------------------------------------


def test_a_value_that_is_set_from_outside_is_another_model(folder: Folder) -> None:
    assert folder.trains() == 1
    module: Any = importlib.import_module("mylayers")
    module.SCALE = 3.0
    assert folder.trains() == 1
    module.SCALE = 2.0
    assert folder.trains() == 0


class Scaled(nn.Module):
    """Scales what it sums up."""

    def __init__(self, in_channels: int, out_channels: int, scale: float) -> None:
        super().__init__()
        self.lin, self.scale = nn.Linear(in_channels, out_channels), scale

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor) -> Any:
        sums = x.new_zeros(int(batch.max()) + 1, x.shape[1]).index_add(0, batch, x)
        return self.scale * self.lin(sums)


def scaled_by(scale: float) -> Callable[..., nn.Module]:
    def make(in_channels: int, out_channels: int) -> nn.Module:
        return Scaled(in_channels, out_channels, scale)

    return make


def test_what_a_function_has_from_around_it_counts(folder: Folder) -> None:
    assert folder.trains(scaled_by(1.0)) == 1
    assert folder.trains(scaled_by(1.0)) == 0
    assert folder.trains(scaled_by(1.001)) == 1
    with pytest.raises(UsageError, match="two different functions are called"):
        folder.trains([scaled_by(1.0), scaled_by(2.0)])


def test_lambdas_count(folder: Folder) -> None:
    assert folder.trains(lambda i, o: Scaled(i, o, 1.0)) == 1
    assert folder.trains(lambda i, o: Scaled(i, o, 1.0)) == 0
    assert folder.trains(lambda i, o: Scaled(i, o, 2.0)) == 1


def test_a_model_for_the_inputs_of_its_data_alone_is_known_by_what_it_computes(
    folder: Folder,
) -> None:
    folder.edit("mynet.py", "nn.Linear(in_channels, hidden)", "nn.Linear(3, hidden)")
    assert folder.trains() == 1
    module: Any = importlib.import_module("mylayers")
    module.SCALE = 3.0
    assert folder.trains() == 1
    assert folder.trains() == 0


class Picky(Scaled):
    """Cannot be called with two small graphs."""

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor) -> Any:
        if x.shape[1] != 3:
            raise ValueError(x.shape)
        return super().forward(x, edge_index, batch)


def picky(in_channels: int, out_channels: int, scale: float = 1.0) -> nn.Module:
    return Picky(in_channels, out_channels, scale)


def picky_by(by: float) -> type[nn.Module]:
    class Own(Picky):
        def __init__(self, in_channels: int, out_channels: int) -> None:
            super().__init__(in_channels, out_channels, by)

    return Own


def test_what_can_be_known_by_its_text_alone_is_known_with_its_defaults(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert folder.trains(picky) == 1
    monkeypatch.setattr(picky, "__defaults__", (2.0,))
    assert folder.trains(picky) == 1
    assert folder.trains(picky) == 0
    assert not caplog.records
    for kind in (lambda scale: lambda i, o: Picky(i, o, scale), picky_by):
        assert folder.trains(kind(1.0)) == 1
        assert folder.trains(kind(2.0)) == 1
    assert folder.trains(lambda i, o: Picky(i, o, 1.0)) == 1
    assert folder.trains(lambda i, o: Picky(i, o, 2.0)) == 1
    assert "it cannot be called with two small graphs" in caplog.text


class Noisy(Scaled):
    """Draws from a generator of its own, which is another one each time."""

    noise = np.random.default_rng()

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor) -> Any:
        return super().forward(x, edge_index, batch) + self.noise.random()


def test_what_has_no_text_is_not_known_by_scores_that_always_differ(folder: Folder) -> None:
    assert folder.trains(lambda i, o: Noisy(i, o, 1.0)) == 1
    assert folder.trains(lambda i, o: Noisy(i, o, 2.0)) == 1


def test_a_class_without_text_is_not_known_by_its_form_alone(folder: Folder) -> None:
    (folder.path / "graphs.txt").write_text(GRAPHS)
    picky = CLASS.replace("return", "assert x.shape[1] == 3\n        return").replace(
        "self.lin(x), batch)", "x, batch) @ torch.ones(3, 2) + self.lin.bias"
    )
    for text in (picky, picky.replace("SCALE = 2.0", "SCALE = 2.5")):
        said = folder.python("-", text=text + SCRIPT.format(model="Net"))
    assert "folds 4" in said


# What makes a model need not be a function --------------------------------------------------------


def test_partials_are_models_whose_names_say_what_they_were_given(folder: Folder) -> None:
    make: Any = importlib.import_module("mynet").make
    assert folder.trains([partial(make, hidden=2), partial(make, hidden=3)]) == 2
    assert folder.trains([partial(make, hidden=3), partial(make, p=0.25, hidden=2)]) == 1
    models = set(gnn_vpa.Results(folder.path / "results").folds["model"])
    assert models == {
        "mynet:make(hidden=2)", "mynet:make(hidden=3)", "mynet:make(hidden=2, p=0.25)"
    }  # fmt: skip
    assert folder.trains(partial(make, p=0.25, hidden=2)) == 0


@pytest.mark.parametrize("kind", ["object", "bound method", "classmethod", "in the module"])
def test_whatever_can_be_called_is_a_model(folder: Folder, kind: str) -> None:
    def given(hidden: int) -> Any:
        net: Any = importlib.import_module("mynet")
        if kind == "object":
            return net.Maker(hidden)
        if kind == "bound method":
            return net.Maker(hidden).made
        net.Net.small.__func__.__defaults__ = None
        net.small = partial(net.make, hidden=hidden)
        return net.Net.small if kind == "classmethod" else "mynet:small"

    assert folder.trains(given(2)) == 1
    assert folder.trains(given(2)) == 0
    if kind != "classmethod":
        assert folder.trains(given(3)) == 1
    folder.edit("mynet.py", "@scaled(2)", "@scaled(3)")
    assert folder.trains(given(2)) == 1


# Files that are not as they were imported ---------------------------------------------------------


def test_after_a_reload_the_new_class_is_trained(folder: Folder) -> None:
    net: Any = importlib.import_module("mynet")
    old = net.Net
    assert folder.trains([old]) == 1
    (folder.path / "mynet.py").write_text(NET.replace("p=0.25", "p=0.3333"))
    importlib.reload(net)
    assert folder.trains("mynet:Net") == 1
    assert folder.trains(net.Net) == 0
    module = importlib.import_module("gnn_vpa.training.own")
    assert module.factory("mynet:Net") is net.Net
    folder.forget()
    assert folder.trains("mynet:Net") == 0


def test_a_class_that_was_defined_anew_is_not_taken_for_the_new_one(
    folder: Folder, caplog: pytest.LogCaptureFixture
) -> None:
    net: Any = importlib.import_module("mynet")
    old = net.Net
    importlib.reload(net)
    assert folder.trains("mynet:Net") == 1
    assert not caplog.records
    assert folder.trains(old) == 1
    (record,) = caplog.records
    assert record.getMessage() == (
        "mynet:Net: no earlier results are taken for those of this model: mynet.Net was defined "
        "again after this one"
    )


def test_a_file_that_was_edited_after_it_was_imported_is_trained_anew_and_said(
    folder: Folder, caplog: pytest.LogCaptureFixture
) -> None:
    assert folder.trains() == 1
    folder.forget()
    importlib.import_module("mynet")
    (folder.path / "mynet.py").write_text(NET.replace("p=0.25", "p=0.3333"))
    assert folder.trains() == 1
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "mynet.py was edited after it was imported" in record.getMessage()
    assert folder.trains() == 0  # in this process it is known
    folder.forget()
    assert folder.trains() == 1
    assert folder.trains() == 0


@pytest.mark.parametrize("broken", ["def make(:\n", "\xff"])
def test_a_file_that_is_saved_half_written_is_trained_anew(folder: Folder, broken: str) -> None:
    importlib.import_module("mynet")
    (folder.path / "mynet.py").write_bytes(broken.encode("latin-1"))
    assert folder.trains() == 1


# Packages that are installed ----------------------------------------------------------------------

HELPER = "def act(x):\n    return {} * x\n"
USING = NET.replace("from mypackage.layers import act", "from myhelper import act")


@pytest.mark.parametrize("name", ["site-packages", "my-packages", "dist-packages"])
def test_a_file_that_no_package_has_installed_counts_wherever_it_is(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.syspath_prepend(folder.path / name)
    folder.write(**{"mynet.py": USING, f"{name}/myhelper.py": "UNUSED = 1\n" + HELPER.format(2)})
    assert folder.trains() == 1
    folder.edit(f"{name}/myhelper.py", "UNUSED = 1", "UNUSED = 2")
    assert folder.trains() == 1
    folder.edit(f"{name}/myhelper.py", "UNUSED = 2", "UNUSED = 1  # again")
    assert folder.trains() == 0


def installed(version: str, text: str, digest: str) -> dict[str, str]:
    info = "site-packages/myhelper-1.0.dist-info"
    return {
        "mynet.py": USING,
        "site-packages/myhelper.py": text,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: myhelper\nVersion: {version}\n",
        f"{info}/RECORD": f"myhelper.py,sha256={digest},9\nmyhelper-1.0.dist-info/RECORD,,\n",
        f"{info}/top_level.txt": "myhelper\n",
    }


def test_a_package_counts_by_its_version_and_files_and_by_what_it_computes(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(folder.path / "site-packages")
    texts = [HELPER.format(2), "# A remark.\n" + HELPER.format(2), HELPER.format(3)]
    folder.write(**installed("1.0", texts[0], "abc"))
    assert folder.trains() == 1
    folder.write(**installed("1.0", texts[1], "abc"))
    assert folder.trains() == 0
    folder.write(**installed("1.0", texts[2], "abc"))  # edited where it is
    assert folder.trains() == 1


@pytest.mark.parametrize(("version", "digest"), [("1.1", "abc"), ("1.0", "abd")])
def test_a_package_that_was_installed_anew_is_another(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, version: str, digest: str
) -> None:
    text = "UNUSED = 1\n" + HELPER.format(2)
    monkeypatch.syspath_prepend(folder.path / "site-packages")
    folder.write(**installed("1.0", text, "abc"))
    assert folder.trains() == 1
    # What is installed where is looked at once in a process.
    (folder.path / "site-packages").rename(folder.path / "before")
    monkeypatch.syspath_prepend(folder.path / "after/site-packages")
    files = installed(version, text, digest)
    folder.write(**{name.replace("site-", "after/site-"): files[name] for name in files})
    assert folder.trains() == 1


def test_a_package_in_a_zip_counts(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write(**{"mynet.py": USING})
    archive = folder.path / "lib.zip"
    monkeypatch.syspath_prepend(archive)

    def pack(unused: int) -> None:
        with zipfile.ZipFile(archive, "w") as packed:
            packed.writestr("myhelper.py", f"UNUSED = {unused}\n" + HELPER.format(2))
        os.utime(archive, (unused, unused))
        folder.forget()

    pack(1)
    assert folder.trains() == 1
    pack(2)
    assert folder.trains() == 1


# Scripts and notebooks ----------------------------------------------------------------------------

SCRIPT = """
import gnn_vpa
exec(open("graphs.txt").read())
results = gnn_vpa.run(
    {{"rings": GRAPHS}}, {model}, epochs=1, folds=2, device="cpu", out="results"
)
print("folds", len(results.folds))
"""
CLASS = """
import torch
from torch import nn
from torch_geometric.nn import global_add_pool

SCALE = 2.0

class Net(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.lin = nn.Linear(i, o)

    def forward(self, x, edge_index, batch):
        return SCALE * global_add_pool(self.lin(x), batch)
"""


def script(folder: Folder, text: str = CLASS, before: str = "") -> Path:
    (folder.path / "graphs.txt").write_text(GRAPHS)
    path = folder.path / "script.py"
    path.write_text(before + text + SCRIPT.format(model="Net"))
    return path


def test_a_script_keeps_its_results_until_its_model_is_edited(folder: Folder) -> None:
    assert "folds 2" in folder.python(script(folder))
    more = CLASS.replace("class Net", "# A remark.\nclass Net") + "\nepochs = 30\n"
    assert "folds 2" in folder.python(script(folder, more))
    assert "folds 4" in folder.python(script(folder, CLASS.replace("SCALE = 2.0", "SCALE = 2.5")))


OWN = "from pathlib import Path\ntext = Path(__file__).read_text()\n"


def test_a_script_that_is_saved_while_it_runs_is_trained_anew(folder: Folder) -> None:
    said = folder.python(script(folder, before=OWN + "Path(__file__).write_text('def make(:')\n"))
    assert "folds 2" in said
    assert said.count("no earlier results are taken") == 1
    assert "script.py was edited after it was imported" in said
    text = OWN + "Path(__file__).write_text(text + 'x = 1')\n"
    assert "folds 4" in folder.python(script(folder, before=text))


def test_a_script_from_standard_input_is_run(folder: Folder) -> None:
    assert "folds 2" in folder.python("-", text=script(folder).read_text())


class Notebook:
    """Cells that are run in a module of their own, as Jupyter and sphinx-gallery do."""

    modules: ClassVar[list[ModuleType]] = []

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.module = ModuleType("__main__")
        self.cells: list[str] = [""]
        vars(self.module)["_ih"] = self.cells
        monkeypatch.setitem(sys.modules, "__main__", self.module)
        self.modules.append(self.module)

    def run(self, *cells: str) -> Any:
        for cell in cells:
            self.cells.append(cell)
            exec(compile(cell, f"<ipython-input-{len(self.cells)}>", "exec"), vars(self.module))
        return vars(self.module)["Net"]


CELLS = CLASS.split("\nclass")[0], "class" + CLASS.split("\nclass")[1]


def test_cells_that_a_model_does_not_need_do_not_matter(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert folder.trains(Notebook(monkeypatch).run(*CELLS)) == 1
    other = Notebook(monkeypatch)
    net = other.run("batch = 3\n", *CELLS, "x = batch\nprint(x)", "super(dict)\nx += 1")
    assert folder.trains(net) == 0
    assert folder.trains(other.run("SCALE = 2.0")) == 0
    assert folder.trains(other.run("SCALE = 2.5")) == 1
    assert folder.trains(other.run("SCALE = 1.0\nSCALE *= 2")) == 1
    assert folder.trains(other.run("Net.more = 3")) == 1


def test_a_cell_that_is_run_again_is_the_last_word(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = Notebook(monkeypatch)
    assert folder.trains(notebook.run(CELLS[0], CELLS[1].replace("SCALE", "4"), *CELLS)) == 1
    assert folder.trains(Notebook(monkeypatch).run(*CELLS)) == 0


def test_cells_of_one_file_that_are_compiled_apart_are_run(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder.path / "gallery.py"
    path.write_text("\n".join(CELLS))
    module = ModuleType("__main__")
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, "__main__", module)
    for cell in CELLS:
        exec(compile(cell, str(path), "exec"), vars(module))
    assert folder.trains(vars(module)["Net"]) == 1
    assert folder.trains(vars(module)["Net"]) == 0


def test_a_model_without_any_text_is_known_by_what_it_computes(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))

    def run(text: str) -> int:
        vars(sys.modules["__main__"]).update(names := {"__name__": "__main__"})
        exec(text, names)
        return folder.trains(names["Net"])

    assert [run(CLASS), run(CLASS + "\nx = 1"), run(CLASS.replace("2.0", "2.001"))] == [1, 0, 1]


def test_a_name_of_the_script_is_a_model_too(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    Notebook(monkeypatch).run(*CELLS)
    assert folder.trains("__main__:Net") == 1
