"""Small archives of our own making, and a cache that no other test sees."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

TINY = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n4, 5\n5, 4\n",
    "graph_indicator": "1\n1\n1\n2\n2\n",
    "graph_labels": "1\n-1\n",
}

WriteTu = Callable[..., Path]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("GNN_VPA_CACHE", str(folder))
    monkeypatch.delenv("GNN_VPA_DATA", raising=False)
    return folder


@pytest.fixture
def write_tu(tmp_path: Path) -> WriteTu:
    """Write a folder of a TU archive: two graphs, with some of the files replaced."""

    def write(name: str = "TINY", **parts: str | bytes | None) -> Path:
        folder = tmp_path / "data" / name
        folder.mkdir(parents=True, exist_ok=True)
        for part, text in (TINY | parts).items():
            if text is not None:
                content = text.encode() if isinstance(text, str) else text
                (folder / f"{name}_{part}.txt").write_bytes(content)
        return folder

    return write


@pytest.fixture
def zip_folder() -> Callable[..., Path]:
    """Zip a folder beside itself, as the TU collection does."""

    def pack(folder: Path, compression: int = zipfile.ZIP_DEFLATED) -> Path:
        target = folder.with_suffix(".zip")
        with zipfile.ZipFile(target, "w", compression) as archive:
            for path in sorted(folder.iterdir()):
                archive.write(path, f"{folder.name}/{path.name}")
        return target

    return pack
