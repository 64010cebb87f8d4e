"""The code in the README runs, block after block, as a reader would type it."""

import re
from pathlib import Path

import pytest


def test_the_python_blocks_run(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some of them write files
    text = (root / "README.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    assert blocks, "the README shows no Python"
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)


def test_the_two_commands_and_every_local_link_exist(root: Path) -> None:
    text = (root / "README.md").read_text()
    assert "make demo" in text
    assert "make test" in text
    for link in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (root / link).exists(), f"README.md links to {link}, which is not there"
