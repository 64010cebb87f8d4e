"""Who may ask for the page, and who is refused."""

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gnn_vpa.errors import GnnVpaError
from gnn_vpa.live import Watched, WatchServer

Ask = Callable[..., http.client.HTTPResponse]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchServer]:
    folder = tmp_path_factory.mktemp("<b>run & co")
    with WatchServer(Watched(folder)) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def ask(server: WatchServer) -> Iterator[Ask]:
    link = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)

    def ask(path: str, method: str = "GET", **headers: str) -> http.client.HTTPResponse:
        link.request(method, path, headers=headers)
        return link.getresponse()

    yield ask
    link.close()


def test_it_listens_on_this_machine_alone(server: WatchServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert server.address == f"http://127.0.0.1:{server.server_port}/{server.token}/"
    assert len(server.token) >= 32


def test_the_page_its_script_and_the_state_are_served(server: WatchServer, ask: Ask) -> None:
    page = ask(f"/{server.token}/").read().decode()
    assert "&lt;b&gt;run &amp; co" in page
    assert "<b>run" not in page
    script = ask(f"/{server.token}/watch.js")
    assert script.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert b"innerHTML" not in script.read()
    state = json.loads(ask(f"/{server.token}/state.json").read())
    assert state["status"] == "waiting"


def test_nothing_is_asked_of_a_network(server: WatchServer, ask: Ask) -> None:
    response = ask(f"/{server.token}/")
    page, policy = response.read().decode(), response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "http" not in page.replace("http-equiv", "")
    script = ask(f"/{server.token}/watch.js").read().decode()
    assert "http" not in script.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize(
    "path", ["/", "/state.json", "/wrong/", "/{}", "/{}/..", "/{}/x.html", "*"]
)
def test_without_the_token_there_is_nothing(server: WatchServer, ask: Ask, path: str) -> None:
    response = ask(path.format(server.token))
    assert response.status == 404
    assert response.read() == b"nothing here\n"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:9", 200), ("localhost", 200), ("LOCALHOST:80", 200), ("evil.example", 403),
        ("evil.example:80", 403), ("127.0.0.1.evil.example", 403), ("localhost:x", 403), ("", 403),
        ("127.0.0.1@evil.example", 403),
    ],
)  # fmt: skip
def test_another_host_name_is_refused(
    server: WatchServer, ask: Ask, host: str, status: int
) -> None:
    response = ask(f"/{server.token}/state.json", Host=host)
    assert response.status == status
    assert (b"status" in response.read()) == (status == 200)


def test_a_request_with_two_host_names_or_none_is_refused(server: WatchServer) -> None:
    for hosts in ("Host: localhost\r\nHost: evil.example\r\n", ""):
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=30) as link:
            request = f"GET /{server.token}/ HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n"
            link.sendall(request.encode())
            assert link.makefile("rb").readline().split()[1] == b"403"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "X"])
def test_other_methods_are_refused_and_nobody_is_let_in_from_elsewhere(
    server: WatchServer, ask: Ask, method: str
) -> None:
    response = ask(f"/{server.token}/state.json", method, Origin="http://evil.example")
    assert (response.status, response.headers["Allow"]) == (405, "GET")
    response.read()
    response = ask(f"/{server.token}/state.json", Origin="http://evil.example")
    response.read()
    assert not [name for name in response.headers if name.lower().startswith("access-control")]
    assert response.headers["Cross-Origin-Resource-Policy"] == "same-origin"


def test_a_head_has_no_content(server: WatchServer, ask: Ask) -> None:
    response = ask(f"/{server.token}/state.json", "HEAD")
    assert (response.status, response.read()) == (200, b"")


def test_a_port_that_is_taken_is_said(server: WatchServer, tmp_path: Path) -> None:
    with pytest.raises(GnnVpaError, match=rf"port {server.server_port} cannot be used.*--port"):
        WatchServer(Watched(tmp_path), server.server_port)
