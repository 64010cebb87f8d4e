"""A page for this machine alone: who asks must know a token and must be here."""

import json
import secrets
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any

from ..errors import GnnVpaError
from ..page import environment
from .state import Watched

ADDRESS = "127.0.0.1"
_HOSTS = (ADDRESS, "localhost")
_PATIENCE_S = 10.0  # for somebody who asks and says nothing
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; "
    "connect-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class WatchServer(ThreadingHTTPServer):
    """Serves the page of a run on 127.0.0.1, under an address that nobody can guess.

    A page of somebody else that is open in the same browser can neither read it (no header allows
    that) nor ask for it by a host name of its own (such names are refused).

    Args:
        watched: The run.
        port: Where; 0: a port that is free.

    Raises:
        GnnVpaError: The port is taken.

    Example:
        >>> with WatchServer(Watched("no/such/run")) as server:
        ...     server.address.startswith("http://127.0.0.1:")
        True
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, watched: Watched, port: int = 0) -> None:
        self.watched, self.token = watched, secrets.token_urlsafe(24)
        try:
            super().__init__((ADDRESS, port), _Handler)
        except (OSError, OverflowError) as error:
            raise GnnVpaError(
                f"port {port} cannot be used ({error}): choose another with --port, or leave it "
                "away for one that is free"
            ) from error

    @property
    def address(self) -> str:
        """What to type into a browser."""
        return f"http://{ADDRESS}:{self.server_port}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a browser that has gone away; what is not foreseen keeps its traceback."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server_version = "gnn-vpa"
    sys_version = ""
    timeout = _PATIENCE_S

    def __getattr__(self, name: str) -> Any:
        # The standard library looks for do_POST and so on: all of them are the same refusal.
        if name.startswith("do_"):
            return self._refuse
        raise AttributeError(name)

    def do_GET(self) -> None:
        """Answer with the page, its script or the state."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """Answer as to GET, without the content."""
        self._answer(with_body=False)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the terminal belongs to people."""

    def _refuse(self) -> None:
        self._send(HTTPStatus.METHOD_NOT_ALLOWED, "text/plain", b"only GET\n", {"Allow": "GET"})

    def _answer(self, *, with_body: bool) -> None:
        assert isinstance(self.server, WatchServer)
        if not _is_local(self.headers.get_all("Host", [])):
            self._send(HTTPStatus.FORBIDDEN, "text/plain", b"not for this host\n", {}, with_body)
            return
        token, slash, rest = self.path.removeprefix("/").partition("/")
        known = secrets.compare_digest(token.encode(), self.server.token.encode())
        if not known or not slash or rest not in _ROUTES:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", b"nothing here\n", {}, with_body)
            return
        kind, make = _ROUTES[rest]
        self._send(HTTPStatus.OK, kind, make(self.server.watched), {}, with_body)

    def _send(
        self,
        status: HTTPStatus,
        kind: str,
        body: bytes,
        more: dict[str, str],
        with_body: bool = True,
    ) -> None:
        self.send_response(status)
        headers = {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(body))}
        for name, value in (headers | _HEADERS | more).items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)


def _is_local(hosts: list[str]) -> bool:
    """Say whether a request was made to this machine by a name of its own, at whatever port.

    By another name somebody's page could reach us whose name leads here all of a sudden. The port
    may be that of a tunnel.

    Example:
        >>> _is_local(["127.0.0.1:8000"]), _is_local(["localhost"]), _is_local(["evil.example"])
        (True, True, False)
    """
    if len(hosts) != 1:
        return False
    host, _, port = hosts[0].partition(":")
    return host.lower() in _HOSTS and (port == "" or (port.isascii() and port.isdigit()))


def _page(watched: Watched) -> bytes:
    page = environment(__package__).get_template("page.html").render(folder=str(watched.folder))
    return page.encode()


def _script(watched: Watched) -> bytes:
    return files(__package__).joinpath("watch.js").read_bytes()


def _state(watched: Watched) -> bytes:
    return json.dumps(watched.state(), allow_nan=False).encode()


_ROUTES = {
    "": ("text/html", _page),
    "watch.js": ("text/javascript", _script),
    "state.json": ("application/json", _state),
}
