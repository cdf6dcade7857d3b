"""Limits of control groups, read from folders that look as those of a system do."""

from __future__ import annotations

from pathlib import Path

import pytest

from frontal.machine import resources
from frontal.machine.cgroup import group_memory

VERSION_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
UNIFIED = ("memory.max", "memory.current", "inactive_file")
ENDLESS = 9223372036854771712


def group(folder: Path, names, limit, used: int, idle: int = 0) -> None:
    """Write the files of one control group."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names[0]).write_text(f"{limit}\n")
    (folder / names[1]).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 5\n{names[2]} {idle}\nactive_file 7\n")


def of_process(root: Path, text: str) -> Path:
    """Write which groups the process is in; return where their folders are."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(text)
    (root / "sys/fs/cgroup").mkdir(parents=True)
    return root / "sys/fs/cgroup"


def test_least_limit_on_the_way_up_counts(tmp_path):
    mount = of_process(tmp_path, "0::/user.slice/job\n")
    group(mount / "user.slice/job", UNIFIED, 10_000, 4000, idle=1000)
    assert group_memory(tmp_path) == 7000
    group(mount / "user.slice", UNIFIED, 20_000, 15_000)
    assert group_memory(tmp_path) == 5000
    group(mount / "user.slice", UNIFIED, "max", 15_000)
    assert group_memory(tmp_path) == 7000


def test_version_1_and_its_number_for_no_limit(tmp_path):
    mount = of_process(tmp_path, "5:cpu,cpuacct:/\n4:memory:/a/b\n1:name=systemd:/a:b\n0::/\n")
    group(mount / "memory", VERSION_1, ENDLESS, 1)
    group(mount / "memory/a", VERSION_1, 3000, 1000)
    group(mount / "memory/a/b", VERSION_1, 9000, 1000, idle=10)
    assert group_memory(tmp_path) == 2000


def test_inside_a_container_the_path_is_not_seen(tmp_path):
    mount = of_process(tmp_path, "4:memory:/docker/0123\n")
    group(mount / "memory", VERSION_1, 3000, 1000)
    assert group_memory(tmp_path) == 2000


def test_more_is_used_than_allowed(tmp_path):
    group(of_process(tmp_path, "0::/\n"), UNIFIED, 1000, 4000)
    assert group_memory(tmp_path) == 0


@pytest.mark.parametrize("text", ["", "0::/gone\n", "no line of groups\n"])
def test_no_group_no_limit(tmp_path, text):
    of_process(tmp_path, text)
    assert group_memory(tmp_path) is None
    assert group_memory(tmp_path / "nowhere") is None


def test_memory_of_the_process_is_bounded_by_it(monkeypatch):
    monkeypatch.setattr(resources, "group_memory", lambda: 12345)
    assert resources.available_memory() == 12345
