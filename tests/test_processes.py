import subprocess
import time

import pytest

from gnn_vpa import processes


def test_a_process_has_the_import_path_of_its_starter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend("/no/such/folder")
    code = "import sys; print('/no/such/folder' in sys.path)"
    process = processes.start(["-c", code], stdout=subprocess.PIPE)
    assert process.communicate()[0] == b"True\n"


@pytest.mark.parametrize("own", [None, "131072"])
def test_a_process_keeps_memory_unless_its_starter_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, own: str | None
) -> None:
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    if own is not None:
        monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", own)
    code = "import os; print(os.environ['MALLOC_TRIM_THRESHOLD_'])"
    process = processes.start(["-c", code], stdout=subprocess.PIPE)
    assert int(process.communicate()[0]) == int(own or 1 << 28)


def test_an_interrupt_waits_for_those_that_leave_and_no_longer_than_asked() -> None:
    leaves = (
        "import time\nprint(1, flush=True)\ntry: time.sleep(60)\nexcept KeyboardInterrupt: pass"
    )
    stays = "import signal, time; signal.signal(2, signal.SIG_IGN); print(1, flush=True)\n"
    started = [
        processes.start(["-c", code], stdout=subprocess.PIPE)
        for code in (leaves, stays + "time.sleep(60)")
    ]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == b"1\n"
    began = time.monotonic()
    processes.interrupt(started, seconds=2.0)
    assert started[0].returncode == 0
    assert started[1].poll() is None
    assert time.monotonic() - began < 30
    processes.end(started[1])
    assert started[1].returncode == -9
    for process in started:
        assert process.stdout is not None
        process.stdout.close()
