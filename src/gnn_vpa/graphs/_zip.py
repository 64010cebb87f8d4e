"""A zip archive that can be trusted: nothing of it is lost, renamed or blown up."""

import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import GnnVpaError

# What `zipfile` raises for an archive that cannot be read: a RuntimeError for one that is encrypted
# or compressed in a way that it does not know, a ValueError for a name that is not UTF-8.
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    MemoryError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
)

LARGEST_TEXT = 4 << 30
"""Bytes of text that a data set may have in all; the largest of the TU collection has 0.4 GB."""

# The paper's archives have up to 35 times the text of their bytes, repetitive files in them 900.
_STEEPEST = 250
_SMALL = 64 << 20  # bytes of text that do no harm, however steep

_LOCAL_HEADER = 30  # bytes, before the name
_DESCRIPTORS = (0, 12, 16, 20, 24)  # bytes behind a member that was written as a stream
_STREAMED = 0x08


def open_zip(source: Path) -> zipfile.ZipFile:
    """Open a zip, if its directory and its members say the same and fill the file.

    Raises:
        GnnVpaError: They do not, or it would unpack to more than anyone has use for.
    """
    with explained(f"{source} is not a whole zip archive"):
        archive = zipfile.ZipFile(source)
        try:
            _check_size(archive, source)
            _check_members(archive, source)
        except BaseException:
            archive.close()
            raise
    return archive


@contextmanager
def explained(fault: str) -> Iterator[None]:
    """Say which zip it is that cannot be read, and what to do."""
    try:
        yield
    except GnnVpaError:
        raise
    except _ZIP_ERRORS as error:
        raise GnnVpaError(f"{fault} ({error or 'it ends early'}): get the archive again") from error


def _check_size(archive: zipfile.ZipFile, source: Path) -> None:
    size = sum(member.file_size for member in archive.infolist())
    check_text_size(size, source)
    if size > max(_SMALL, _STEEPEST * source.stat().st_size):
        raise GnnVpaError(
            f"{source} would unpack to {size:,} bytes, more than {_STEEPEST} times its size: no "
            "data set that we know does; if you trust it, unpack it and name the folder"
        )


def check_text_size(size: int, source: Path) -> None:
    """Refuse a data set that would fill the memory."""
    if size > LARGEST_TEXT:
        raise GnnVpaError(
            f"{source} holds {size:,} bytes of text, and {LARGEST_TEXT:,} is the most that is "
            "read: give a smaller data set"
        )


def _check_members(archive: zipfile.ZipFile, source: Path) -> None:
    """Refuse a directory from which a member is missing, or that calls one by another name."""
    members = sorted(archive.infolist(), key=lambda member: member.header_offset)
    if len({member.filename for member in members}) < len(members):
        raise zipfile.BadZipFile("two members have the same name")
    begins = [*(member.header_offset for member in members), archive.start_dir]
    if begins[0] != 0:
        raise zipfile.BadZipFile("its first bytes belong to no member")
    with source.open("rb") as file:
        for member, following in zip(members, begins[1:], strict=True):
            archive.open(member).close()  # compares the name there with that in the directory
            file.seek(member.header_offset + _LOCAL_HEADER - 4)
            name, extra = struct.unpack("<HH", file.read(4))
            end = member.header_offset + _LOCAL_HEADER + name + extra + member.compress_size
            allowed = _DESCRIPTORS if member.flag_bits & _STREAMED else (0,)
            if following - end not in allowed:
                raise zipfile.BadZipFile(f"bytes behind {member.filename} belong to no member")
