"""A browser that is spoken to while a page lives: it waits, clicks, and tells what was logged."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "google-chrome", "chrome")
_PATIENCE_S = 60.0


class Browser:
    """Chromium's debugging protocol over a pipe: JSON, each message ended by a zero byte."""

    def __init__(self, program: str, profile: Path) -> None:
        theirs_in, self._to = os.pipe()
        self._from, theirs_out = os.pipe()
        command = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"]
        command += ["--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe"]
        command += [f"--user-data-dir={profile}", "about:blank"]
        # The protocol has its ends at 3 and 4: a shell puts them there.
        redirected = f"exec {' '.join(command)} 3<&{theirs_in} 4>&{theirs_out}"
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", redirected], pass_fds=[theirs_in, theirs_out],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        self._number, self._rest = 0, b""
        self.logged: list[str] = []
        (target,) = [
            each for each in self._call("Target.getTargets")["targetInfos"] if each["type"] == "page"
        ]
        attached = self._call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session: str | None = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    _session: str | None = None

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask for something, and return the answer."""
        return self._call(method, **parameters)

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == self._number:
                assert "error" not in found, found
                answer: dict[str, Any] = found["result"]
                return answer
            self._take_note(found)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            got = os.read(self._from, 1 << 16)
            assert got, "the browser has ended"
            self._rest += got
        message, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def _take_note(self, event: dict[str, Any]) -> None:
        match event.get("method"):
            case "Runtime.exceptionThrown":
                self.logged.append(event["params"]["exceptionDetails"]["text"])
            case "Runtime.consoleAPICalled":
                self.logged.append(str(event["params"]["args"]))
            case "Log.entryAdded":
                self.logged.append(event["params"]["entry"]["text"])
            case "Page.javascriptDialogOpening":
                self.logged.append(f"dialog: {event['params']['message']}")

    def evaluate(self, script: str) -> Any:
        """Return what an expression gives in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def open(self, address: str, *, width: int = 1280, height: int = 900) -> None:
        """Show a page in a window of some size."""
        self.logged.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        self.call("Page.navigate", url=address)

    def wait_for(self, script: str) -> Any:
        """Wait until an expression gives something, and return that."""
        ended = time.monotonic() + _PATIENCE_S
        while not (found := self.evaluate(script)):
            assert time.monotonic() < ended, f"{script}: {self.evaluate('document.body.innerText')}"
            time.sleep(0.05)
        return found

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        os.close(self._to)
        os.close(self._from)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip("neither Chromium nor Chrome is on the PATH")
    browser = Browser(program, tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


Open = Callable[..., None]
