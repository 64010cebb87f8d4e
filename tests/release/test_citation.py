"""The citation can be read, and names the package as pyproject.toml does."""

import tomllib
from pathlib import Path

import yaml

import gnn_vpa


def test_the_citation_is_of_this_version(root: Path) -> None:
    citation = yaml.safe_load((root / "CITATION.cff").read_text("utf-8"))
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == gnn_vpa.__version__
    assert citation["title"] == project["name"]
    assert citation["license"] == project["license"]
    assert citation["repository-code"] == project["urls"]["Source"]
    assert citation["url"] == project["urls"]["Documentation"]
    assert citation["keywords"] == project["keywords"]
    assert citation["preferred-citation"]["url"] == project["urls"]["Paper"]
    assert {"type", "title", "authors", "year"} <= set(citation["preferred-citation"])


def test_every_file_of_data_has_a_notice(root: Path) -> None:
    notice = (root / "NOTICE").read_text("utf-8")
    package = root / "src" / "gnn_vpa"
    ours = {".py", ".html", ".css", ".js", ".typed", ".md"}  # written for gnn-vpa
    data = [p for p in package.rglob("*") if p.is_file() and p.suffix not in {*ours, ".pyc"}]
    assert len(data) >= 7
    for path in data:
        assert path.name in notice, f"{path.name} ships without a notice"
