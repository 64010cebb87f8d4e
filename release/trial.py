"""Install an archive in an empty environment, far from the repository, and use it there."""

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

SMOKE = Path(__file__).with_name("smoke.py")
DEMO_EPOCHS = "5"  # as a user would run it, but short


def try_archive(archive: Path, constraints: Path) -> None:
    """Install a wheel or an sdist and run the demo and a smoke test; fails as they do."""
    with tempfile.TemporaryDirectory(prefix="gnn-vpa-release-") as name:
        folder = Path(name)
        venv.create(folder / "venv", with_pip=True)
        # Nothing of this process's Python reaches the environment, and nothing of the user's cache.
        variables = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "GNN_VPA"))}
        variables |= {"XDG_CACHE_HOME": str(folder / "cache"), "PYTHONNOUSERSITE": "1"}

        def run(*command: str) -> None:
            print(f"  {' '.join(command)}", flush=True)
            program = folder / "venv" / "bin" / command[0]
            subprocess.run([program, *command[1:]], cwd=work, env=variables, check=True)

        work = folder / "work"
        work.mkdir()
        shutil.copy(SMOKE, work)
        shutil.copy(constraints, work / "constraints.txt")
        shutil.copy(archive, work)
        quiet = ("--quiet", "--constraint", "constraints.txt")
        run("pip", "install", *quiet, "torch")
        run("pip", "install", *quiet, archive.name)
        run("pip", "check")
        run("gnn-vpa", "--version")
        run("gnn-vpa", "demo", "--epochs", DEMO_EPOCHS)
        run("python", "smoke.py")


if __name__ == "__main__":
    try_archive(Path(sys.argv[1]), Path(sys.argv[2]))
