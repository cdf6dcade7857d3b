"""How many threads to use, and how much memory."""

from __future__ import annotations

import os


def thread_count() -> int:
    """``FRONTAL_NUM_THREADS``, else the number of cores this process may run on.

    Raises
    ------
    ValueError
        If the variable is not a positive integer.
    """
    asked = os.environ.get("FRONTAL_NUM_THREADS")
    if asked:
        if not asked.strip().isdigit() or int(asked) < 1:
            raise ValueError(f"FRONTAL_NUM_THREADS is {asked!r}; give a positive integer")
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def available_memory() -> int | None:
    """Bytes that this process can still take, None where the system does not say."""
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        return None
    return None
