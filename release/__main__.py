"""Build the wheel and the sdist, check what is in them, install each, and use it."""

import argparse
import subprocess
import sys
import tomllib
from pathlib import Path

from .contents import (
    files_of,
    metadata_complaints,
    metadata_of,
    sdist_complaints,
    wheel_complaints,
)
from .trial import try_archive

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Say what is not as it should be, or that all is."""
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="where the archives go")
    parser.add_argument("--no-trial", action="store_true", help="check, and install nothing")
    parser.add_argument(
        "--repository", metavar="URL", help="complain if the package says that it is elsewhere"
    )
    parser.add_argument("--tag", metavar="vX.Y.Z", help="complain if the version is another one")
    options = parser.parse_args()

    for old in [*options.dist.glob("*.whl"), *options.dist.glob("*.tar.gz")]:
        old.unlink()
    command = [sys.executable, "-m", "build", "--outdir", str(options.dist), str(ROOT)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = options.dist.glob("*.whl")
    (sdist,) = options.dist.glob("*.tar.gz")

    complaints = wheel_complaints(files_of(wheel), ROOT)
    complaints += sdist_complaints(files_of(sdist), ROOT)
    metadata = metadata_of(files_of(wheel))
    complaints += metadata_complaints(metadata, ROOT)
    if metadata_of(files_of(sdist)).items() != metadata.items():
        complaints.append("the metadata of the sdist differ from those of the wheel")
    if options.tag and options.tag != f"v{metadata['Version']}":
        complaints.append(f"the tag is {options.tag}, the version {metadata['Version']}")
    source = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"][
        "Source"
    ]
    if options.repository and options.repository.rstrip("/") != source:
        complaints.append(f"the repository is {options.repository}, pyproject.toml says {source}")
    if complaints:
        sys.exit("\n".join(["Not ready to be released:", *(f"  {text}" for text in complaints)]))
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", wheel, sdist], check=True)
    if not options.no_trial:
        for archive in (wheel, sdist):
            print(f"{archive.name} in an empty environment:", flush=True)
            try_archive(archive, ROOT / "constraints.txt")
    print(f"gnn-vpa {metadata['Version']} is ready to be released: {wheel.name}, {sdist.name}")


if __name__ == "__main__":
    main()
