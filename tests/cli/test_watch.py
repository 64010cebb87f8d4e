from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gnn_vpa.cli._app import app
from gnn_vpa.live import WatchServer


def _watch(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["watch", *arguments])


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    def serve(_: WatchServer) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(WatchServer, "serve_forever", serve)


@pytest.mark.usefixtures("interrupted")
def test_it_says_its_address_and_ends_quietly(tmp_path: Path) -> None:
    result = _watch(str(tmp_path / "not yet"))
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"Watching {tmp_path / 'not yet'} at http://127.0.0.1:")
    assert not (tmp_path / "not yet").exists()


@pytest.mark.usefixtures("interrupted")
@pytest.mark.parametrize(("option", "opened"), [("--open", 1), ("--no-browser", 0)])
def test_a_browser_is_opened_if_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, opened: int
) -> None:
    addresses: list[str] = []
    monkeypatch.setattr("webbrowser.open", addresses.append)
    result = _watch(str(tmp_path), option)
    assert len(addresses) == opened
    assert all(address in result.stdout for address in addresses)


def test_a_file_that_is_no_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("")
    result = _watch(str(tmp_path / "a.txt"))
    assert result.exit_code == 2
    assert "a.txt is no run" in result.output
