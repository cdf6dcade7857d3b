"""Memory that the control groups of a process leave it: limits of containers and batch systems.

A limit holds for a group and all groups below it, so the least one on the way up counts. Pages of
files that were not used lately are given back when they are needed; they count as free.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

_ENDLESS = 1 << 60  # version 1 says "no limit" by a number of about 2^63


class _Names(NamedTuple):
    """Files of a group."""

    limit: str
    used: str
    idle: str  # the line of memory.stat that counts idle pages of files


_UNIFIED = _Names("memory.max", "memory.current", "inactive_file")
_VERSION_1 = _Names("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def group_memory(root: Path = Path("/")) -> int | None:
    """Bytes that the control groups of this process leave it, None where none has a limit.

    Parameters
    ----------
    root : Path
        The folder that holds ``proc`` and ``sys``.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    available = [
        size
        for line in lines
        if line.count(":") >= 2
        for size in _available_along_path(root / "sys/fs/cgroup", *line.split(":", 2)[1:])
    ]
    return min(available, default=None)


def _available_along_path(mount: Path, controllers: str, path: str) -> list[int]:
    """What is left in a group and in those above it, where there is a limit.

    A container may see its own group as the root of all, under a path that it does not see.
    """
    if controllers and "memory" not in controllers.split(","):
        return []
    names = _VERSION_1 if controllers else _UNIFIED
    top = mount / "memory" if controllers else mount
    group = top / path.strip("/")
    while not group.is_dir() and group != top:
        group = group.parent
    folders = [group, *(above for above in group.parents if above.is_relative_to(top))]
    sizes = (_available_in_group(folder, names) for folder in folders)
    return [size for size in sizes if size is not None]


def _available_in_group(group: Path, names: _Names) -> int | None:
    """Bytes that one group still may take."""
    try:
        limit = (group / names.limit).read_text().strip()
        if limit == "max" or int(limit) >= _ENDLESS:
            return None
        used = int((group / names.used).read_text())
        return max(0, int(limit) - used + _idle(group, names.idle))
    except (OSError, ValueError):
        return None


def _idle(group: Path, name: str) -> int:
    """Bytes of idle pages of files, which the system takes back where it needs them."""
    for line in (group / "memory.stat").read_text().splitlines():
        if line.startswith(name + " "):
            return int(line.split()[1])
    return 0
