"""An archive that was damaged anywhere is read as it was, or refused."""

import io
import random
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from gnn_vpa.errors import GnnVpaError
from gnn_vpa.graphs import _zip, read_tu

KINDS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
OPTIONAL = {
    "node_labels": "1\n2\n1\n1\n2\n",
    "node_attributes": "0.5\n1\n2\n3\n4\n",
    "edge_labels": "1\n2\n1\n1\n2\n1\n",
}


def damaged(content: bytes, directory: int, draw: random.Random) -> bytes:
    """Change an archive in one place, most often in its directory."""
    out = bytearray(content)
    place = draw.randrange(directory if draw.random() < 0.7 else 0, len(out))
    count = draw.randrange(1, 100)
    match draw.randrange(7):
        case 0 | 1:
            out[place] ^= 1 << draw.randrange(8)
        case 2 | 3:
            out[place] = draw.randrange(256)
        case 4:
            out[place : place + 2] = struct.pack("<H", draw.randrange(200))  # a length, perhaps
        case 5:
            del out[place : place + count]
        case 6:
            out[place:place] = out[place : place + count]
    return bytes(out)


@pytest.mark.parametrize("compression", KINDS, ids=["stored", "deflated", "bzip2", "lzma"])
def test_a_damaged_archive_is_read_as_it_was_or_refused(
    compression: int, write_tu: Callable[..., Path], zip_folder: Callable[..., Path]
) -> None:
    archive = zip_folder(write_tu(**OPTIONAL, readme="text"), compression)
    content, expected = archive.read_bytes(), read_tu(archive)
    with zipfile.ZipFile(archive) as file:
        directory = file.start_dir
    draw = random.Random(compression)
    refused = 0
    for number in range(250):
        archive.write_bytes(damaged(content, directory, draw))
        try:
            graphs = read_tu(archive)
        except GnnVpaError:
            refused += 1
        else:
            assert graphs.name == expected.name
            assert graphs.checksum() == expected.checksum(), f"mutant {number}"
    assert 0 < refused < 250


@pytest.mark.parametrize("field", ["name", "comment length", "number of bytes"])
def test_a_member_does_not_vanish(
    field: str, write_tu: Callable[..., Path], zip_folder: Callable[..., Path]
) -> None:
    archive = zip_folder(write_tu(**OPTIONAL))
    content = bytearray(archive.read_bytes())
    name = content.rindex(b"TINY/TINY_node_labels.txt")
    if field == "name":
        content[name + 12] ^= 1
    elif field == "comment length":  # of the member before, which so swallows the next
        before = content.rindex(b"TINY/TINY_node_attributes.txt")
        content[before - 14 : before - 12] = struct.pack(
            "<H", 46 + len("TINY/TINY_node_labels.txt")
        )
    else:
        content[name - 46 + 20 : name - 46 + 24] = bytes(4)
    archive.write_bytes(content)
    with pytest.raises(GnnVpaError, match=r"get the archive again"):
        read_tu(archive)


def test_a_name_that_is_not_utf_8(
    write_tu: Callable[..., Path], zip_folder: Callable[..., Path]
) -> None:
    folder = write_tu()
    (folder / "é.md").touch()
    archive = zip_folder(folder)
    archive.write_bytes(archive.read_bytes().replace("é".encode(), b"\xff\xfe"))
    with pytest.raises(GnnVpaError, match=r"TINY.zip is not a whole zip archive .*utf-8"):
        read_tu(archive)


def test_two_members_of_one_name(
    write_tu: Callable[..., Path], zip_folder: Callable[..., Path]
) -> None:
    archive = zip_folder(write_tu())
    with zipfile.ZipFile(archive, "a") as file, pytest.warns(UserWarning, match="Duplicate name"):
        file.writestr("TINY/TINY_graph_labels.txt", "1\n1\n")
    with pytest.raises(GnnVpaError, match=r"two members have the same name"):
        read_tu(archive)


class Stream(io.BytesIO):
    """A file that is written from beginning to end, as into a pipe."""

    def seekable(self) -> bool:
        return False


def test_an_archive_that_was_written_as_a_stream(write_tu: Callable[..., Path]) -> None:
    folder, stream = write_tu(), Stream()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as file:
        for path in folder.iterdir():
            file.write(path, f"TINY/{path.name}")
    archive = folder.with_suffix(".zip")
    archive.write_bytes(stream.getvalue())
    assert read_tu(archive).checksum() == read_tu(folder).checksum()


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_a_bomb_is_not_unpacked(
    compression: int,
    write_tu: Callable[..., Path],
    zip_folder: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_zip, "_SMALL", 1 << 16)
    archive = zip_folder(write_tu(node_labels="1\n" * (1 << 20)), compression)
    with pytest.raises(GnnVpaError, match=r"unpack to 2,\d+,\d+ bytes, more than 250 times"):
        read_tu(archive)
    monkeypatch.setattr(_zip, "LARGEST_TEXT", 1 << 20)
    with pytest.raises(GnnVpaError, match=r"bytes of text, and 1,048,576 is the most"):
        read_tu(archive)
