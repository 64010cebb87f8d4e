"""Options that several commands share: what is refused is refused before anything is computed."""

import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gnn_vpa.cli._app import app
from gnn_vpa.cli._options import check_file, check_out
from gnn_vpa.errors import GnnVpaError

COMMANDS = {
    "run": ["run", "MUTAG", "--out"],
    "plan": ["reproduce", "table1", "--only", "sgc", "--plan", "--out"],
    "demo": ["demo", "--out"],
    "depth": ["depth", "MUTAG", "--out"],
    "expressivity": ["expressivity", "atlas", "--out"],
    "variance": ["variance", "--out"],
}

FILES = {
    "predict": ["predict", "nowhere", "MUTAG", "--out"],
    "export": ["export", "nowhere", "--out"],
    "theory": ["theory", "MUTAG", "--out"],
    "variance": ["variance", "--out"],
    "audit": ["audit", "MUTAG", "--html"],
    "audit as JSON": ["audit", "MUTAG", "--json"],
    "probe": ["probe", "MUTAG", "--html"],
    "probe as a picture": ["probe", "MUTAG", "--plot"],
    "probe as CSV": ["probe", "MUTAG", "--csv"],
}


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("inside", ["", "deeper/still"])
def test_a_file_is_no_folder_for_results(arguments: list[str], inside: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    result = CliRunner().invoke(app, [*arguments, str(file / inside)])
    assert result.exit_code == 2
    assert f"{file} is a file: name a folder" in result.stderr
    assert result.stdout == ""


def test_a_folder_that_may_not_be_written_to_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=stat.S_IRUSR | stat.S_IXUSR)
    # Whoever runs the tests as root may write everywhere.
    monkeypatch.setattr("os.access", lambda place, mode: Path(place) != closed)
    with pytest.raises(GnnVpaError, match=f"{closed} may not be written to"):
        check_out(closed / "run")
    check_out(tmp_path / "run")


@pytest.mark.parametrize("arguments", FILES.values(), ids=FILES)
def test_a_folder_is_no_file_for_results(arguments: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "folder.png"
    folder.mkdir()
    result = CliRunner().invoke(app, [*arguments, str(folder)])
    assert result.exit_code == 2
    assert f"{folder} is a folder: name a file, for example {folder}/" in result.stderr
    assert result.stdout == ""


def test_the_option_that_named_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for option in ("--html", "--plot", "--csv"):
        asked = str(tmp_path / "file" / "signal.png")
        result = CliRunner().invoke(app, ["probe", "MUTAG", option, asked])
        assert result.exit_code == 2
        assert f"{option} {tmp_path / 'file'}: {tmp_path / 'file'} is a file" in result.stderr
        assert result.stdout == ""


def test_what_is_no_plain_file_is_written_to_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda place, mode: False)
    check_file(Path("/dev/null"), "predictions.csv")
