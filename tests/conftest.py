"""What several test rooms share."""

import ast
import functools
import gc
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from html import escape, unescape
from importlib.util import find_spec
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy
import pytest
import torch
from hypothesis import settings

from . import lines
from .groups import group_of, turn_of

if TYPE_CHECKING:
    from gnn_vpa.graphs import GraphSet

COUNTS_LINES = "COUNT_LINES" in os.environ
if not torch.cuda.is_available():
    # Without a GPU Triton's interpreter runs the kernels. Triton looks here when it is imported,
    # and PyTorch Geometric imports it, so that this precedes every import of gnn_vpa.
    os.environ["TRITON_INTERPRET"] = "1"
# This, too, precedes every import of gnn_vpa, those of other conftest.py as well.
_write_lines = lines.start(os.environ.get("PYTEST_XDIST_WORKER", "main")) if COUNTS_LINES else None

ROOT = Path(__file__).resolve().parents[1]
_ASKED_BY_NAME = 50  # tests or fewer: then nothing is left out
BROWSERS = ("chromium", "google-chrome", "chrome")


def pytest_configure(config: pytest.Config) -> None:
    """Give each parallel worker one thread, so that workers do not fight over the cores."""
    # Before any test is read: its examples are the same in every run, unless another seed is asked.
    settings.register_profile("tests", derandomize=config.option.seed == 0, deadline=None)
    settings.load_profile("tests")
    if "PYTEST_XDIST_WORKER" in os.environ:
        torch.set_num_threads(1)
    # In the background of a shell interrupts are ignored, by children too: tests send some.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Runs inside tests start no processes of their own; tests/experiments/test_workers.py does.
    os.environ["GNN_VPA_WORKERS"] = "1"
    gc.disable()  # until all tests are read: nothing of them is garbage


def pytest_collection_finish() -> None:
    """Let the search for garbage leave out what is there before the first test: it stays."""
    gc.enable()
    gc.collect()
    gc.freeze()


# Each test draws the same random numbers, whatever ran before ----------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Seed every global source of random numbers before a test's first fixture."""
    seed = item.config.option.seed
    if torch.cuda.is_available():
        torch.manual_seed(seed)
    else:
        # For GPUs that are not there it would keep a stack trace with each call, for later.
        torch.default_generator.manual_seed(seed)
    numpy.random.seed(seed)  # noqa: NPY002  scikit-learn and PyG draw from the global source
    random.seed(seed)


# Of large grids of parameters a part is run, and nothing for a GPU that is not there -------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let somebody ask for all that ``sampled`` leaves out, and for other random numbers."""
    parser.addoption("--seed", type=int, default=0, help="seed of the random numbers in each test")
    parser.addoption("--every", action="store_true", help="run sampled tests with every parameter")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let tests of a group run in one worker, and groups in the order in which tests are read."""
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    config.option.loadscopereorder = False  # see `pytest_collection_modifyitems`
    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = group_of
    return scheduler


@pytest.hookimpl(tryfirst=True)  # before pytest reads the marks that `-m` selects
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that need data, and keep as many parameters as a mark ``sampled`` says.

    The parameters are the same in every run.

    In a worker they are in the order in which workers are to take them.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: turn_of(item.nodeid))
    for item in items:
        if {"tu_dir", "real"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("data")
    if len(items) <= _ASKED_BY_NAME:
        return  # a test that is asked for by name is run, or says why it cannot
    dropped: set[str] = set()
    of_test: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("gpu"):  # what only a GPU runs is quick there: never sampled
            if not torch.cuda.is_available():
                dropped.add(item.nodeid)
        elif item.get_closest_marker("sampled") and not config.option.every:
            of_test.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, own in of_test.items():
        mark = own[0].get_closest_marker("sampled")
        assert mark is not None
        (count,) = mark.args
        chosen = random.Random(name).sample(own, min(count, len(own)))
        dropped |= {item.nodeid for item in own} - {item.nodeid for item in chosen}
    if dropped:
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in dropped])
        items[:] = [item for item in items if item.nodeid not in dropped]


# Without a GPU a run of all tests must interpret all kernels ------------------------------------

_seen_by_workers = pytest.StashKey[set[str]]()
_never_seen = pytest.StashKey[list[str]]()


def kernels_in_source() -> set[str]:
    """Return the functions of the library that Triton compiles, ``package.module.name``."""
    found = set()
    for path in (ROOT / "src").rglob("*.py"):
        module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef):
                decorators = map(ast.unparse, node.decorator_list)
                if any(text.startswith("triton.jit") for text in decorators):
                    found.add(f"{module}.{node.name}")
    return found


def _interpreted_here() -> set[str]:
    """Return the functions that Triton's interpreter has run in this process."""
    if "triton.runtime.interpreter" not in sys.modules:
        return set()
    interpreter = sys.modules["triton.runtime.interpreter"]
    run = interpreter.InterpretedFunction.rewritten_fn
    return {f"{function.__module__}.{function.__name__}" for function in run}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Take over what a parallel worker has interpreted."""
    seen = node.config.stash.setdefault(_seen_by_workers, set())
    seen.update(getattr(node, "workeroutput", {}).get("interpreted", ()))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run of all tests that leaves a kernel out."""
    config = session.config
    if _write_lines is not None:
        _write_lines()
    if hasattr(config, "workeroutput"):
        config.workeroutput["interpreted"] = sorted(_interpreted_here())
        return
    option = config.option
    chosen = option.keyword or option.markexpr or option.collectonly or getattr(option, "lf", False)
    everything = config.args_source is pytest.Config.ArgsSource.TESTPATHS and not chosen
    if everything and not torch.cuda.is_available() and find_spec("triton") is not None:
        workers: set[str] = config.stash.setdefault(_seen_by_workers, set())
        seen = _interpreted_here() | workers
        config.stash[_never_seen] = sorted(kernels_in_source() - seen)
        if config.stash[_never_seen] and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the kernels that were left out."""
    for name in terminalreporter.config.stash.get(_never_seen, []):
        terminalreporter.write_line(f"FAILED no test has interpreted the kernel {name}", red=True)


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def tu_dir() -> Path:
    """The folder of the TU archives, from GNN_VPA_DATA or beside the repository."""
    folder = Path(os.environ.get("GNN_VPA_DATA", ROOT.parent / "shared" / "tu"))
    if not any(folder.glob("*.zip")):
        pytest.skip(f"no TU archives in {folder}: set GNN_VPA_DATA to the folder that has them")
    return folder.resolve()


@pytest.fixture(scope="session")
def real(tu_dir: Path) -> "Callable[[str], GraphSet]":
    """Load a data set, once: `real(name)`."""
    from gnn_vpa.graphs import load

    return functools.cache(lambda name: load(name, data_dir=tu_dir))


@pytest.fixture
def generator() -> torch.Generator:
    """A source of random numbers that is the same in every run, whatever ran before."""
    return torch.Generator().manual_seed(0)


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    """Every numeric test that asks for it runs in both precisions."""
    chosen: torch.dtype = request.param
    return chosen


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    """The device of a test that runs on both, where there is a second."""
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    chosen: str = request.param
    return chosen


@pytest.fixture(params=["interpreted", pytest.param("cuda", marks=pytest.mark.gpu)])
def kernel_device(request: pytest.FixtureRequest) -> Iterator[str]:
    """The device on which a test runs the kernels in Triton: interpreted, they serve the CPU."""
    from gnn_vpa.ops import use_backend

    if request.param == "cuda":
        if not torch.cuda.is_available():
            pytest.skip("no CUDA device on this machine")
        yield "cuda"
        return
    if torch.cuda.is_available():
        pytest.skip("Triton compiles for the CUDA device of this machine, and does not interpret")
    pytest.importorskip("triton")
    with use_backend("triton"):
        yield "cpu"


@pytest.fixture
def browse(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a real browser: `browse(url, *flags)`."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip("neither Chromium nor Chrome is on the PATH")

    def run(url: str, *flags: str) -> subprocess.CompletedProcess[str]:
        command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"]
        command += ["--disable-dev-shm-usage", "--hide-scrollbars", "--enable-logging=stderr"]
        command += ["--disable-extensions", "--disable-sync", "--disable-component-update"]
        command += ["--disable-background-networking", "--disable-default-apps"]  # a fifth less
        command += [f"--user-data-dir={tmp_path / 'profile'}", *flags, url]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)

    return run


@pytest.fixture
def look(
    browse: Callable[..., subprocess.CompletedProcess[str]],
) -> Callable[..., dict[str, object]]:
    """Run a script in a copy of a page that lets it: `look(page, script, *flags, width=1400)`.

    The script makes what it finds the title of its parent, as JSON. The copy is in a frame, because
    a headless window is never narrower than 500 pixels.
    """

    def run(page: Path, script: str, *flags: str, width: int = 1400) -> dict[str, object]:
        policy = r'<meta http-equiv="Content-Security-Policy"[^>]*>'
        text = re.sub(policy, "", page.read_text("utf-8"))
        copy = escape(text.replace("</body>", f"<script>{script}</script></body>"))
        frame = page.with_name("frame.html")
        frame.write_text(
            '<meta charset="utf-8"><meta name="color-scheme" content="light dark">'
            f'<title>none</title><iframe width="{width}" height="900" style="border: 0" '
            f'srcdoc="{copy}"></iframe>',
            encoding="utf-8",
        )
        dom = browse(frame.as_uri(), "--dump-dom", *flags).stdout
        title = re.search(r"<title>(.*?)</title>", dom, re.DOTALL)
        assert title is not None
        found: dict[str, object] = json.loads(unescape(title[1]))
        return found

    return run


@pytest.fixture(scope="session")
def in_process() -> Callable[..., ForkServerProcess]:
    """Call a function in a process of its own: `in_process(function, *arguments, **options)`.

    A server with all imports done forks it, which saves their seconds. Tests that use it are of one
    group (`groups.py`), so that there is one server.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("GNN_VPA_WORKERS", "1")
        context: ForkServerContext = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(
            ["gnn_vpa.experiments", "gnn_vpa.nn", "sklearn.model_selection"]
        )
        context.Process(target=print).start()  # the server takes its environment from the first

    def start(function: Callable[..., object], *args: Any, **kwargs: Any) -> ForkServerProcess:
        process = context.Process(target=function, args=args, kwargs=kwargs)
        process.start()
        return process

    return start


@pytest.fixture
def child_of() -> Callable[[int, str], int | None]:
    """Find a process by its parent and a part of its command: `child_of(pid, part)`."""

    def find(pid: int, part: str) -> int | None:
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                parent = int(path.read_text().rsplit(")", 1)[1].split()[1])
                command = (path.parent / "cmdline").read_bytes()
            except (OSError, IndexError):
                continue  # it ended while we looked
            if parent == pid and part.encode() in command:
                return int(path.parent.name)
        return None

    return find
