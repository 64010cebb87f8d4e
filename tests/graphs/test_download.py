"""Against a server of our own that fails in the ways that servers fail."""

import errno
import importlib
import io
import re
import shutil
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from gnn_vpa.errors import GnnVpaError, UsageError
from gnn_vpa.graphs import _contents, download, download_dir, read_tu
from gnn_vpa.paper import archive_names

limits = importlib.import_module("gnn_vpa.graphs.download")
KNOWN = dict(_contents.CONTENTS)
MUTAG = {
    "MUTAG/MUTAG_A.txt": "1, 2\n2, 1\n" + "3, 4\n4, 3\n" * 2000,
    "MUTAG/MUTAG_graph_indicator.txt": "1\n1\n2\n2\n",
    "MUTAG/MUTAG_graph_labels.txt": "1\n-1\n",
}


def zipped(files: dict[str, str], compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def damaged(compression: int) -> bytes:
    """Change the first byte of the compressed text."""
    content = bytearray(zipped(MUTAG, compression))
    content[content.index(b"_A.txt") + len("_A.txt")] ^= 0xFF
    return bytes(content)


class Server(ThreadingHTTPServer):
    """Serves `content`, and lists the Range of each request in `ranges`."""

    daemon_threads = True
    content = zipped(MUTAG)
    cut_after: list[int]  # bytes after which the next answers break off
    statuses: list[int]  # what the next answers say instead of sending anything
    with_ranges = True
    with_length = True
    length: str | None = None  # what it claims in the place of the truth
    endless = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.ranges: list[str | None] = []
        self.cut_after, self.statuses = [], []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server, asked = self.server, self.headers.get("Range")
        server.ranges.append(asked)
        if server.statuses:
            self.send_error(server.statuses.pop(0))
            return
        if self.path != "/MUTAG.zip":
            self.send_error(404)
            return
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        if start and server.with_ranges:
            if start >= len(server.content):
                self.send_error(416)
                return
            self.send_response(206)
            body = server.content[start:]
        else:
            self.send_response(200)
            body = server.content
        if server.with_length:
            self.send_header("Content-Length", server.length or str(len(body)))
        self.end_headers()
        while server.endless:
            try:
                self.wfile.write(bytes(1 << 16))
            except OSError:
                return  # enough: nobody listens any more
        self.wfile.write(body[: server.cut_after.pop(0)] if server.cut_after else body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def toy_content(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let the small MUTAG of these tests be the one that is known."""
    packed = tmp_path / "known" / "MUTAG.zip"
    packed.parent.mkdir()
    packed.write_bytes(zipped(MUTAG))
    monkeypatch.setitem(_contents.CONTENTS, "MUTAG", read_tu(packed).checksum())
    shutil.rmtree(packed.parent)


def get(server: Server, folder: Path, name: str = "MUTAG", **options: object) -> Path:
    return download(name, folder, base_url=server.url, pause=0.0, **options)  # type: ignore[arg-type]


def test_a_download_is_a_data_set(server: Server, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    path = get(server, tmp_path / "new", "mutag", progress=lambda *state: seen.append(state))
    assert path == tmp_path / "new" / "MUTAG.zip"
    assert read_tu(path).num_graphs == 2
    assert seen[-1] == (len(server.content), len(server.content))
    assert [file.name for file in path.parent.iterdir()] == ["MUTAG.zip"]


def test_what_is_there_is_not_fetched_again(server: Server, tmp_path: Path) -> None:
    get(server, tmp_path)
    get(server, tmp_path)
    assert len(server.ranges) == 1


def test_without_a_folder_it_goes_into_the_cache(server: Server) -> None:
    assert download("MUTAG", base_url=server.url).parent == download_dir()


def test_a_retry_resumes(server: Server, tmp_path: Path) -> None:
    server.cut_after = [1000, 500]
    path = get(server, tmp_path)
    assert server.ranges == [None, "bytes=1000-", "bytes=1500-"]
    assert path.read_bytes() == server.content


def test_a_later_call_resumes(server: Server, tmp_path: Path) -> None:
    server.cut_after = [100] * 4
    with pytest.raises(GnnVpaError, match=r"cannot be fetched after 4 tries .*is kept"):
        get(server, tmp_path)
    assert not (tmp_path / "MUTAG.zip").exists()
    assert get(server, tmp_path).read_bytes() == server.content
    assert server.ranges[-1] == "bytes=400-"


def test_a_server_that_cannot_resume_sends_all_again(server: Server, tmp_path: Path) -> None:
    server.with_ranges = False
    server.cut_after = [1000]
    assert get(server, tmp_path).read_bytes() == server.content


def test_a_part_that_is_too_long_is_dropped(server: Server, tmp_path: Path) -> None:
    (tmp_path / "MUTAG.zip.part").write_bytes(server.content + b"more")
    assert get(server, tmp_path).read_bytes() == server.content


def test_a_server_with_a_bad_moment(server: Server, tmp_path: Path) -> None:
    server.statuses = [503, 500]
    assert get(server, tmp_path).read_bytes() == server.content


def test_a_truncated_file_of_unknown_length(server: Server, tmp_path: Path) -> None:
    server.with_length = False
    server.cut_after = [1000]
    with pytest.raises(
        GnnVpaError, match=r"what arrived for MUTAG cannot be used .*is not a whole zip archive"
    ):
        get(server, tmp_path)
    assert list(tmp_path.glob("MUTAG*")) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<html>Please log in</html>", "is not a whole zip archive"),
        (zipped({"OTHER/OTHER_A.txt": "1, 2\n"}), "does not hold MUTAG_A.txt"),
        (zipped(MUTAG | {"../evil.txt": "x"}), "names a path outside of its folder"),
        (zipped(MUTAG | {"/evil.txt": "x"}), "names a path outside of its folder"),
        (zipped(MUTAG | {"MUTAG\\..\\..\\evil.txt": "x"}), "names a path outside of its folder"),
        (damaged(zipfile.ZIP_STORED), "is damaged in MUTAG/MUTAG_A.txt"),
        (damaged(zipfile.ZIP_DEFLATED), "is not a whole zip archive"),
        (zipped(MUTAG | {"MUTAG/MUTAG_graph_labels.txt": "1\n1\n"}), "has other graphs than the"),
        (zipped(MUTAG | {"MUTAG/MUTAG_node_labels.txt": "1\n1\n1\n2\n"}), "has other graphs than"),
        (zipped(MUTAG | {"MUTAG/MUTAG_A.txt": "1, 9\n"}), "line 1: node 9 does not exist"),
    ],
    ids=[
        "a page",
        "another set",
        "dots",
        "absolute",
        "backslashes",
        "changed",
        "broken",
        "other classes",
        "labels",
        "wrong",
    ],
)
def test_wrong_content_is_removed(
    content: bytes, message: str, server: Server, tmp_path: Path
) -> None:
    server.content = content
    with pytest.raises(GnnVpaError, match=message):
        get(server, tmp_path)
    assert list(tmp_path.glob("MUTAG*")) == []


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_how_it_is_packed_does_not_matter(compression: int, server: Server, tmp_path: Path) -> None:
    windows = {name: text.replace("\n", "\r\n") for name, text in MUTAG.items()}
    server.content = zipped(windows | {"MUTAG/README.txt": "text"}, compression)
    assert read_tu(get(server, tmp_path)).num_graphs == 2


def test_a_server_without_an_end(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.endless, server.with_length = True, False
    monkeypatch.setattr(limits, "_LARGEST_KNOWN", 1 << 20)
    with pytest.raises(GnnVpaError, match=r"sends more than 1,048,576 bytes.* was removed"):
        get(server, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_claims_to_have_no_end(server: Server, tmp_path: Path) -> None:
    server.length = "99999999999999"
    with pytest.raises(GnnVpaError, match=r"sends more than 134,217,728 bytes.* was removed"):
        get(server, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("length", ["-5", "many"])
def test_a_server_that_does_not_know_its_length(
    length: str, server: Server, tmp_path: Path
) -> None:
    server.length = length
    assert get(server, tmp_path).read_bytes() == server.content


def test_what_is_no_address(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere/MUTAG.zip is no address"):
        download("MUTAG", tmp_path, base_url="nowhere")


def test_the_known_contents(tu_dir: Path) -> None:
    for name in ("MUTAG", "PTC_FM", "PTC_MR", "PROTEINS", "ENZYMES", "IMDB-MULTI"):
        assert read_tu(tu_dir / f"{name}.zip").checksum() == KNOWN[name]


def test_every_set_of_the_paper_has_a_known_content() -> None:
    assert set(archive_names()) <= set(KNOWN)
    assert all(re.fullmatch(r"[0-9a-f]{64}", content or "") for content in KNOWN.values())


def test_a_set_that_the_collection_does_not_have(server: Server, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no MUTAGS: did you mean MUTAG"):
        get(server, tmp_path, "MUTAGS")
    assert len(server.ranges) == 1


@pytest.mark.parametrize("name", ["../MUTAG", "a/b", "..", ""])
def test_a_name_that_is_no_name(name: str, server: Server, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no data set is called"):
        get(server, tmp_path, name)
    assert server.ranges == []


def test_no_network(tmp_path: Path) -> None:
    with Server() as closed:
        url = closed.url
    with pytest.raises(GnnVpaError, match=r"cannot be fetched .*refused.*check the network"):
        download("MUTAG", tmp_path, base_url=url, pause=0.0)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk(server: Server, tmp_path: Path) -> None:
    (tmp_path / "MUTAG.zip.part").symlink_to("/dev/full")
    with pytest.raises(GnnVpaError, match=r"the disk is full; .*try again") as caught:
        get(server, tmp_path)
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.__cause__.errno == errno.ENOSPC
    assert not (tmp_path / "MUTAG.zip").exists()


def test_a_folder_that_cannot_be_written(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(GnnVpaError, match=r"MUTAG cannot be written to"):
        get(server, tmp_path / "file")
