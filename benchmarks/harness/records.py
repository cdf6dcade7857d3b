"""Records of measurements: JSON lines in benchmarks/results, with machine, versions and commit."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]  # of the sources that are measured
RESULTS = ROOT / "benchmarks" / "results"
PACKAGES = ("numpy", "scipy", "numba", "pymetis", "mkl", "pypardiso", "scikit-sparse")
Record = dict[str, Any]


def load(path: Path) -> list[Record]:
    """Return the records of a JSON lines file, none where it is absent."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@contextmanager
def writer(path: Path, append: bool = False, **about: Any) -> Iterator[Callable[[Record], Record]]:
    """Yield a function that writes and returns a record with its date, context and ``about``."""
    about = context() | about
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a" if append else "w") as stream:

        def write(record: Record) -> Record:
            record = record | {"date": now()} | about
            stream.write(json.dumps(record) + "\n")
            stream.flush()
            return record

        yield write


def context() -> Record:
    """Return where and with what something is measured."""
    return {"machine": machine(), "versions": versions(), "commit": commit()}


def machine() -> Record:
    """Return the processor's name, its usable cores, memory and system."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [x for x in cpuinfo.read_text().splitlines() if x.startswith("model name")]
        model = names[0].split(":", 1)[1].strip() if names else model
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cpu": model,
        "cores": cores,
        "memory_gib": round(memory, 1),
        "system": platform.system() + " " + platform.machine(),
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that are installed."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def commit() -> str:
    """Return the commit measured, marked when tracked source files differ from it."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "frontal")
    return (git("rev-parse", "--short", "HEAD") or "none") + ("+changes" if changed else "")


def now() -> str:
    """Return the date and time in UTC, to the second."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def newest(records: Iterable[Record]) -> Record:
    """Return the record that was measured last."""
    return max(records, key=lambda r: r["date"])


def origin(records: Iterable[Record]) -> str:
    """Return the last day of some records and the commits that they measured, oldest first."""
    ordered = sorted(records, key=lambda r: r["date"])
    commits = list(dict.fromkeys(r["commit"] for r in ordered))
    return f"{ordered[-1]['date'][:10]}, commit{'s' * (len(commits) > 1)} {', '.join(commits)}"
