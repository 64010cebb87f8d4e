"""The folder that a command is typed in: its files are the user's, and take no library's place."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_NET = """
import helper
from torch import nn
from torch_geometric.nn import GCNConv, global_add_pool

class Net(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv, self.lin = GCNConv(in_channels, helper.WIDTH), nn.Linear(8, out_channels)

    def forward(self, x, edge_index, batch):
        return self.lin(global_add_pool(self.conv(x, edge_index).relu(), batch))
"""
_RUN = ["run", "MUTAG", "--aggr", "default", "--epochs", "2", "--folds", "2", "--device", "cpu"]


def _run(folder: Path, *arguments: str, path: str = "") -> str:
    command = [sys.executable, "-m", "gnn_vpa", *_RUN, "--workers", "2", *arguments]
    searched = os.pathsep.join([*([path] if path else []), *filter(None, sys.path)])
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": searched, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


# Two cells: a process for each. One cell: the processes divide its folds.
@pytest.mark.parametrize("seeds", ["0,1", "0"])
def test_no_file_of_the_folder_is_run_but_the_models(seeds: str, tmp_path: Path) -> None:
    (tmp_path / "mynets.py").write_text(_NET)
    (tmp_path / "helper.py").write_text("WIDTH = 8")
    for name in ("json", "pickle", "secrets", "sqlite3", "numpy", "sklearn", "torch", "typer"):
        trap = f"open({str(tmp_path / 'trapped')!r}, 'w').close(); raise SystemExit(3)"
        (tmp_path / f"{name}.py").write_text(trap)
    text = _run(tmp_path, "--model", "mynets:Net", "--seeds", seeds, "--out", "runs")
    assert "before it was ready" not in text
    assert not (tmp_path / "trapped").exists()


@pytest.mark.parametrize("seeds", ["0,1", "0"])
def test_a_process_that_ends_before_it_is_ready_is_named_and_the_work_is_done(
    seeds: str, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\n"
        "if '-c' in sys.orig_argv:  # none that was started by hand\n"
        "    print('no luck', file=sys.stderr, flush=True)\n"
        "    os._exit(3)\n"
    )
    arguments = ["--model", "sgc", "--seeds", seeds, "--out", str(tmp_path / "runs")]
    text = _run(tmp_path, *arguments, path=str(tmp_path))
    assert "A process ended with exit code 3 before it was ready ('no luck')" in text
    assert "going on with 1 process" in text


def test_a_model_that_is_called_as_a_library_is_refused_with_both_files(tmp_path: Path) -> None:
    (tmp_path / "yaml.py").write_text(_NET)
    command = [sys.executable, "-m", "gnn_vpa", *_RUN, "--model", "yaml:Net"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Rename yaml.py" in " ".join(done.stderr.split())


def test_processes_of_a_notebook_look_in_its_folder_last(tmp_path: Path) -> None:
    trap = f"open({str(tmp_path / 'trapped')!r}, 'w').close(); raise SystemExit(3)"
    code = (
        "import json, pathlib, sys, gnn_vpa\n"
        "assert sys.path[0] == ''\n"  # as in a notebook
        f"pathlib.Path('json.py').write_text({trap!r})\n"
        "options = dict(epochs=2, folds=2, seeds=(0, 1), workers=2, device='cpu', out='runs')\n"
        "gnn_vpa.run('MUTAG', 'sgc', 'default', **options)\n"
    )
    searched = os.pathsep.join(filter(None, sys.path))
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": searched, "OMP_NUM_THREADS": "1"},
        check=True,
    )
    assert not (tmp_path / "trapped").exists()
