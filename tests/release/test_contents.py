"""A wheel that lacks something, or has too much, is not released."""

import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ReleaseModule = Callable[[str], ModuleType]


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    pytest.importorskip("hatchling")
    root = Path(__file__).resolve().parents[2]
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    (sdist,) = folder.glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


def test_the_wheel_has_the_package_with_its_data_and_nothing_else(
    archives: dict[str, Path], release_module: ReleaseModule, root: Path
) -> None:
    contents = release_module("contents")
    files = contents.files_of(archives["wheel"])
    assert contents.wheel_complaints(files, root) == []
    for name in ("graphs/data/MUTAG.zip", "paper/table1.csv", "assets/shell.css", "py.typed"):
        assert f"gnn_vpa/{name}" in files
    assert not [name for name in files if name.startswith(("tests/", "benchmarks/", "docs/"))]


def test_the_sdist_has_what_a_wheel_is_made_of(
    archives: dict[str, Path], release_module: ReleaseModule, root: Path
) -> None:
    contents = release_module("contents")
    assert contents.sdist_complaints(contents.files_of(archives["sdist"]), root) == []


def test_both_show_the_same_metadata_and_they_are_complete(
    archives: dict[str, Path], release_module: ReleaseModule, root: Path
) -> None:
    contents = release_module("contents")
    wheel, sdist = (contents.metadata_of(contents.files_of(path)) for path in archives.values())
    assert contents.metadata_complaints(wheel, root) == []
    assert wheel.items() == sdist.items()


def test_what_is_missing_or_strange_is_named(
    archives: dict[str, Path], release_module: ReleaseModule, root: Path
) -> None:
    contents = release_module("contents")
    files = contents.files_of(archives["wheel"])
    del files["gnn_vpa/graphs/data/MUTAG.zip"]
    files["tests/test_docs.py"] = b""
    files["gnn_vpa/errors.py"] += f"# {root.resolve()}/src".encode()
    assert contents.wheel_complaints(files, root) == [
        "the wheel lacks gnn_vpa/graphs/data/MUTAG.zip",
        "the wheel has tests/test_docs.py, which is no part of the package",
        f"the wheel names {root.resolve()} in gnn_vpa/errors.py",
    ]
    (licence,) = (name for name in files if name.endswith("licenses/NOTICE"))
    del files[licence]
    assert "the wheel lacks the licence file NOTICE" in contents.wheel_complaints(files, root)

    files = contents.files_of(archives["sdist"])
    del files["hatch_build.py"]
    files["results/paper/results.sqlite"] = b""
    assert contents.sdist_complaints(files, root) == [
        "the sdist lacks hatch_build.py",
        "the sdist has results/paper/results.sqlite",
    ]


def test_metadata_that_lack_something_are_named(
    archives: dict[str, Path], release_module: ReleaseModule, root: Path
) -> None:
    contents = release_module("contents")
    metadata = contents.metadata_of(contents.files_of(archives["wheel"]))
    for field in ("Keywords", "Classifier", "Project-URL", "Version"):
        del metadata[field]
    metadata["Version"] = "9.9.9"
    metadata["Project-URL"] = "Source, http://somewhere"
    metadata.set_payload("[a link](docs/probe.md)")
    complaints = "\n".join(contents.metadata_complaints(metadata, root))
    for expected in (
        "lack the classifier Programming Language :: Python :: 3.13",
        "lack the link Documentation",
        "no https address: http://somewhere",
        "fewer than three keywords",
        "links to docs/probe.md",
        "no long description",
        "CITATION.cff does not say 9.9.9",
        "9.9.9 is not the newest version of CHANGELOG.md",
    ):
        assert expected in complaints


def test_links_of_the_description_lead_to_files_of_the_version(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("hatchling")
    monkeypatch.syspath_prepend(root)
    absolute_links = importlib.import_module("hatch_build").absolute_links
    text = "![Variance](docs/img/a.png) [probe](docs/probe.md) [x](https://a.org/b) [y](#here)"
    assert absolute_links(text, "https://forge/gnn-vpa", "1.2.3") == (
        "![Variance](https://forge/gnn-vpa/raw/v1.2.3/docs/img/a.png) "
        "[probe](https://forge/gnn-vpa/blob/v1.2.3/docs/probe.md) [x](https://a.org/b) [y](#here)"
    )


def test_the_notes_of_a_release_are_its_part_of_the_changelog(
    release_module: ReleaseModule, root: Path
) -> None:
    notes = release_module("notes").notes
    text = "# Changelog\n\n## 0.2.0, 2026-11-16\n\nNew.\n\n- a\n\n## 0.1.0, not released\n\nOld.\n"
    assert notes(text, "0.2.0") == "New.\n\n- a"
    assert notes(text, "0.1.0") == "Old."
    with pytest.raises(SystemExit, match=r"says nothing of 0\.3\.0"):
        notes(text, "0.3.0")
