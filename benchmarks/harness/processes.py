"""Jobs, each measured in a process of its own: a crash or a timeout is a result too."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from math import inf
from pathlib import Path
from typing import Any

from benchmarks.harness.records import ROOT, Record, writer

THREAD_VARIABLES = (
    "FRONTAL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
)
MIN_SECONDS = 5.0  # without these no job is begun


def on_threads(count: int) -> dict[str, str]:
    """Return the variables by which every library runs on some threads."""
    return dict.fromkeys(THREAD_VARIABLES, str(count))


def environment(**more: str) -> dict[str, str]:
    """Return the variables of a process that imports the sources of this folder."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return os.environ | {"PYTHONPATH": path} | more


def answer(module: str, job: Any, timeout: float, **more: str) -> Record:
    """Return the JSON object that a module prints last, given a job and variables."""
    command = [sys.executable, "-m", f"benchmarks.{module}", json.dumps(job)]
    variables = environment(**more)
    try:
        done = subprocess.run(
            command, env=variables, timeout=timeout, capture_output=True, text=True
        )
    except subprocess.TimeoutExpired:
        return failure("Timeout", f"not done after {timeout:.0f} s")
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return failure("Crash", f"exit status {done.returncode}: {last}")
    return json.loads(lines[-1])


def failure(kind: str, message: str) -> Record:
    """Return the record of what has no result."""
    return {"error": {"type": kind, "message": message}}


def run_all(
    jobs: Iterable[Any],
    measure: Callable[[Any, float], Record],
    summary: Callable[[Record], str],
    output: Path,
    append: bool = False,
    total: float = inf,
    **about: Any,
) -> list[Record]:
    """Measure jobs one after the other, and write each record as it ends.

    Parameters
    ----------
    jobs : iterable
        Each with a ``label``.
    measure : callable
        Returns the record of a job, given the seconds that are left; one that is "skipped" is not
        written.
    summary : callable
        Returns a record in one line.
    output : Path
    append : bool
    total : float
        Seconds after which no job is begun.
    **about
        Goes into every record.
    """
    jobs, records, began = list(jobs), [], time.perf_counter()
    with writer(output, append, **about) as write:
        for i, job in enumerate(jobs):
            spent = time.perf_counter() - began
            if spent > total - MIN_SECONDS:
                print(f"stopped after {spent:.0f} s with {len(jobs) - i} left", flush=True)
                break
            record = measure(job, total - spent)
            if record.get("skipped"):
                line = f"skipped: {record['skipped']}"
            else:
                records.append(write(record))
                line = error_line(record) or summary(record)
            print(f"[{i + 1}/{len(jobs)}, {spent:.0f} s] {job.label:44} {line}", flush=True)
    return records


def error_line(record: Record) -> str:
    """Return what a record failed by, if it did."""
    return "{type}: {message}".format(**record["error"])[:160] if "error" in record else ""


def chosen(jobs: Iterable[Any], pattern: str) -> list[Any]:
    """Return the jobs whose label has a match."""
    return [job for job in jobs if re.search(pattern, job.label)]


def installed(names: Iterable[str], solvers: dict[str, Any]) -> list[str]:
    """Return the solvers that can run here; name the others once."""
    missing = {name: solvers[name].missing() for name in names}
    for name, what in missing.items():
        if what:
            print(f"skipped: {name} ({what} is not installed)")
    return [name for name in missing if not missing[name]]
