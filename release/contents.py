"""What a wheel and an sdist must hold, and what they must not: each function returns complaints."""

import re
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from email.message import Message
from email.parser import BytesParser
from pathlib import Path

PYTHONS = ("3.11", "3.12", "3.13")
LINKS = {"Source", "Documentation", "Changelog", "Issues", "Paper"}
NOTICES = ("LICENSE", "NOTICE")
# Data that the package needs: files of every kind that is not Python.
DATA = {".zip", ".md", ".csv", ".html", ".css", ".js", ".typed"}


def files_of(archive: Path) -> dict[str, bytes]:
    """Read all files of a wheel or an sdist; the names of an sdist without its folder."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist()}
    files = {}
    with tarfile.open(archive) as sdist:
        for member in sdist.getmembers():
            file = sdist.extractfile(member)
            if file is not None:
                files[member.name.partition("/")[2]] = file.read()
    return files


def package_files(root: Path) -> set[str]:
    """Return the files that belong to the package, as a wheel names them."""
    source = root / "src"
    return {
        path.relative_to(source).as_posix()
        for path in (source / "gnn_vpa").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def wheel_complaints(files: Mapping[str, bytes], root: Path) -> list[str]:
    """Compare a wheel's files with those of the package in the repository."""
    info = {name for name in files if name.split("/")[0].endswith(".dist-info")}
    expected = package_files(root)
    kinds = {Path(name).suffix for name in expected} - {".py"}
    complaints = [f"the wheel lacks {name}" for name in sorted(expected - set(files))]
    complaints += [
        f"the wheel has {name}, which is no part of the package"
        for name in sorted(set(files) - expected - info)
    ]
    complaints += [
        f"the wheel lacks the licence file {name}"
        for name in NOTICES
        if not any(path.endswith(f".dist-info/licenses/{name}") for path in info)
    ]
    if kinds != DATA:
        complaints.append(f"data of other kinds than known: {sorted(kinds ^ DATA)}")
    return complaints + _private_complaints("the wheel", files, root)


def sdist_complaints(files: Mapping[str, bytes], root: Path) -> list[str]:
    """Check that a wheel can be made of an sdist, and that its tests are there."""
    needed = {f"src/{name}" for name in package_files(root)}
    needed |= {"pyproject.toml", "hatch_build.py", "README.md", "PKG-INFO", "CHANGELOG.md"}
    needed |= {"CITATION.cff", "constraints.txt", "tests/conftest.py", *NOTICES}
    needed |= {"docs/conf.py", "results/paper/folds.csv"}  # the pages, and their numbers
    complaints = [f"the sdist lacks {name}" for name in sorted(needed - set(files))]
    strange = [
        name for name in files if re.search(r"__pycache__|\.pyc$|\.sqlite$|^(runs|\.venv)/", name)
    ]
    complaints += [f"the sdist has {name}" for name in sorted(strange)]
    return complaints + _private_complaints("the sdist", files, root)


def _private_complaints(where: str, files: Mapping[str, bytes], root: Path) -> list[str]:
    """Find paths of the machine that made it."""
    paths = {str(folder).encode() for folder in (root.resolve(), Path.home())}
    paths -= {b"/", b"/root"}  # words that a page may say, of no machine in particular
    return [
        f"{where} names {path.decode()} in {name}"
        for name, content in files.items()
        for path in sorted(paths)
        if path in content
    ]


def metadata_of(files: Mapping[str, bytes]) -> Message:
    """Return the metadata of a wheel or an sdist."""
    (name,) = (n for n in files if n == "PKG-INFO" or n.endswith(".dist-info/METADATA"))
    return BytesParser().parsebytes(files[name])


def metadata_complaints(metadata: Message, root: Path) -> list[str]:
    """Check what an index shows of the package."""
    complaints = [
        f"the metadata have {field} {metadata[field]!r}, expected {expected!r}"
        for field, expected in {
            "Name": "gnn-vpa",
            "License-Expression": "MIT",
            "Requires-Python": f">={PYTHONS[0]}",
            "Description-Content-Type": "text/markdown",
        }.items()
        if metadata[field] != expected
    ]
    complaints += _missing("licence file", NOTICES, metadata.get_all("License-File", []))
    classifiers = [f"Programming Language :: Python :: {version}" for version in PYTHONS]
    complaints += _missing("classifier", classifiers, metadata.get_all("Classifier", []))
    links = dict(entry.split(", ", 1) for entry in metadata.get_all("Project-URL", []))
    complaints += _missing("link", sorted(LINKS), links)
    complaints += [
        f"the link {n} is no https address: {u}" for n, u in links.items() if u[:8] != "https://"
    ]
    if len((metadata["Keywords"] or "").split(",")) < 3:
        complaints.append("the metadata have fewer than three keywords")
    description = metadata.get_payload()
    assert isinstance(description, str)
    relative = re.findall(r"\]\((?!https?:|#)([^)\s]+)\)", description)
    complaints += [
        f"the description links to {link}, which only the repository has" for link in relative
    ]
    if len(description) < 1000:
        complaints.append("the metadata have no long description")
    return complaints + version_complaints(metadata["Version"], root)


def version_complaints(version: str, root: Path) -> list[str]:
    """Check that all places speak of the same version."""
    places = {
        "src/gnn_vpa/__init__.py": rf'^__version__ = "{re.escape(version)}"$',
        "CITATION.cff": rf"^version: {re.escape(version)}$",
        "CHANGELOG.md": rf"^## {re.escape(version)}\b",
    }
    complaints = [
        f"{name} does not say {version}"
        for name, pattern in places.items()
        if not re.search(pattern, (root / name).read_text("utf-8"), flags=re.MULTILINE)
    ]
    newest = re.search(r"^## (\S+?),", (root / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    if newest is None or newest[1] != version:
        complaints.append(f"{version} is not the newest version of CHANGELOG.md")
    return complaints


def _missing(what: str, expected: Iterable[str], found: Iterable[str]) -> list[str]:
    there = set(found)
    return [f"the metadata lack the {what} {name}" for name in expected if name not in there]
