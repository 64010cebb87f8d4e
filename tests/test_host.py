"""Cores and memory from files as kernels and containers write them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gnn_vpa import host
from gnn_vpa.host import Host

GB = 10**9


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_cores", lambda: 8)


def machine(root: Path, groups: str = "0::/\n") -> Path:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(groups)
    (root / "proc/meminfo").write_text("MemTotal: 64000000 kB\nMemAvailable: 50000000 kB\n")
    return root


def put(folder: Path, **files: str) -> None:
    """Write files of a control group; the first underscore of a name stands for a dot."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("_", ".", 1)).write_text(content)


def test_without_a_container_it_is_the_machine(tmp_path: Path) -> None:
    assert Host.here(machine(tmp_path)) == Host(8, 50_000_000 * 1024)


def test_where_there_are_no_such_files_the_memory_is_not_known(tmp_path: Path) -> None:
    assert Host.here(tmp_path) == Host(8, None)


def test_a_container_of_the_second_form(tmp_path: Path) -> None:
    root = machine(tmp_path, "0::/box\n")
    group = root / "sys/fs/cgroup/box"
    put(group, cpu_max="250000 100000\n", memory_max=f"{4 * GB}\n", memory_current=f"{3 * GB}\n")
    assert Host.here(root) == Host(2, GB)
    # Files that were read and are not in use are given up when memory is needed.
    put(group, memory_stat=f"anon 5\ninactive_file {GB // 2}\n")
    assert Host.here(root) == Host(2, GB + GB // 2)


def test_a_container_of_the_first_form(tmp_path: Path) -> None:
    root = machine(tmp_path, "4:memory:/a/b\n3:cpu,cpuacct:/a/b\n1:name=systemd:/\n")
    memory, cpu = root / "sys/fs/cgroup/memory/a/b", root / "sys/fs/cgroup/cpu,cpuacct/a/b"
    put(memory, memory_limit_in_bytes=f"{2 * GB}", memory_usage_in_bytes=f"{GB}")
    put(memory, memory_stat=f"inactive_file 1\ntotal_inactive_file {GB // 4}\n")
    put(cpu, cpu_cfs_quota_us="300000", cpu_cfs_period_us="100000")
    assert Host.here(root) == Host(3, GB + GB // 4)


def test_no_limit_is_written_in_two_ways(tmp_path: Path) -> None:
    root = machine(tmp_path, "4:memory:/\n3:cpu:/\n0::/box\n")
    top = root / "sys/fs/cgroup"
    put(top / "box", cpu_max="max 100000", memory_max="max", memory_current="5")
    put(top / "memory", memory_limit_in_bytes="9223372036854771712", memory_usage_in_bytes="5")
    put(top / "cpu", cpu_cfs_quota_us="-1", cpu_cfs_period_us="100000")
    assert Host.here(root) == Host(8, 50_000_000 * 1024)


def test_the_limits_of_parents_hold_too(tmp_path: Path) -> None:
    root = machine(tmp_path, "0::/pod/box\n")
    top = root / "sys/fs/cgroup"
    put(top / "pod/box", cpu_max="max 100000", memory_max=f"{9 * GB}", memory_current="0")
    put(top / "pod", cpu_max="400000 100000", memory_max=f"{6 * GB}", memory_current=f"{GB}")
    assert Host.here(root) == Host(4, 5 * GB)


def test_inside_a_container_its_own_limits_are_at_the_top(tmp_path: Path) -> None:
    root = machine(tmp_path, "0::/../outside/of/here\n4:memory:/docker/123\n")
    top = root / "sys/fs/cgroup"
    put(top / "memory", memory_limit_in_bytes=f"{2 * GB}", memory_usage_in_bytes=f"{GB}")
    assert Host.here(root) == Host(8, GB)


def test_half_a_core_is_one_process(tmp_path: Path) -> None:
    root = machine(tmp_path, "0::/\n")
    put(root / "sys/fs/cgroup", cpu_max="50000 100000")
    assert Host.here(root).cores == 1


def test_a_group_that_is_over_its_limit_has_nothing_free(tmp_path: Path) -> None:
    root = machine(tmp_path, "0::/\n")
    put(root / "sys/fs/cgroup", memory_max=f"{GB}", memory_current=f"{2 * GB}")
    assert Host.here(root).memory == 0


@pytest.mark.skipif(not Path("/proc/self/oom_score_adj").exists(), reason="is Linux's alone")
def test_a_process_that_offers_itself_is_killed_first() -> None:
    code = (
        "from gnn_vpa.host import offer_to_be_killed; offer_to_be_killed(); "
        "print(open('/proc/self/oom_score_adj').read())"
    )
    before = int(Path("/proc/self/oom_score_adj").read_text())
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True, env=os.environ
    )
    assert int(done.stdout) == max(before, 500)
