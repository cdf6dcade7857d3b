"""Memory available within the control groups of a process: limits of containers and batch systems.

A limit applies to a group and all its descendants, so the least one among the ancestors counts.
Inactive file pages are reclaimed when memory is needed; they count as free.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

_ENDLESS = 1 << 60  # bytes; version 1 reports about 2^63 for "no limit"


class _Names(NamedTuple):
    """Names of the files of a group."""

    limit: str
    used: str
    idle: str  # the line of memory.stat with inactive file pages


_UNIFIED = _Names("memory.max", "memory.current", "inactive_file")
_VERSION_1 = _Names("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def group_memory(root: Path = Path("/")) -> int | None:
    """Return the bytes available within the control groups of this process, None without a limit.

    Parameters
    ----------
    root : Path
        The folder that contains ``proc`` and ``sys``.
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
    """Return the bytes available in a group and in its ancestors, for those with a limit.

    A container may see its group as the root, under a path that does not exist in it.
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
    """Return the bytes available in one group; None without a limit."""
    try:
        limit = (group / names.limit).read_text().strip()
        if limit == "max" or int(limit) >= _ENDLESS:
            return None
        used = int((group / names.used).read_text())
        return max(0, int(limit) - used + _idle(group, names.idle))
    except (OSError, ValueError):
        return None


def _idle(group: Path, name: str) -> int:
    """Return the bytes of inactive file pages, which the system reclaims when needed."""
    for line in (group / "memory.stat").read_text().splitlines():
        if line.startswith(name + " "):
            return int(line.split()[1])
    return 0
