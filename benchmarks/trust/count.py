"""Count wrong answers over thousands of small hard systems: `python -m benchmarks.trust.count`.

What must not be is counted: solutions that are wrong without a word, refusals of regular matrices,
wrong ranks and inertias. One JSON line has the counts and the systems that they come from, and the
exit status is 1 if there are any. `--only NUMBER` tells of one system. `--large` takes systems of
up to 2000 unknowns, most of them singular; singular values take a few seconds of each.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from benchmarks.harness.records import writer
from benchmarks.trust.judge import VIOLATIONS, Judgement, judge
from benchmarks.trust.systems import System, large_system, system

SHOWN = 40
INERTIA = 4  # every so many systems


def run_jobs(
    jobs: int, seed: int, numbers: range, backend: str, seconds: float = np.inf, make=system
) -> dict:
    """`run` in several processes at once, each with every so many systems."""
    if jobs == 1:
        return run(seed, numbers, backend, seconds, make)
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        parts = [
            pool.submit(run, seed, numbers[k::jobs], backend, seconds, make) for k in range(jobs)
        ]
        return merged([part.result() for part in parts])


def merged(records: list[dict]) -> dict:
    """One record of several, each of other systems."""
    out = records[0] | {"seconds": max(record["seconds"] for record in records)}
    out["counts"] = added(record["counts"] for record in records)
    names = sorted({name for record in records for name in record["kinds"]})
    out["kinds"] = {
        name: added(record["kinds"].get(name, {}) for record in records) for name in names
    }
    out["worst"] = {what: max(record["worst"][what] for record in records) for what in out["worst"]}
    for what in ("offenders", "alarms"):
        found = [one for record in records for one in record[what]]
        out[what] = sorted(found, key=lambda one: one["number"])
    return out


def added(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    """Sums by name."""
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return dict(total)


def run(seed: int, numbers: range, backend: str, seconds: float = np.inf, make=system) -> dict:
    """Solve and judge systems, until all are done or the time is over.

    Parameters
    ----------
    seed : int
    numbers : range
    backend : str
    seconds : float
    make : callable
        `system` or `large_system`.

    Returns
    -------
    dict
        Numbers of systems and violations, and a list of the systems that broke a rule.
    """
    counts: Counter[str] = Counter()
    kinds: dict[str, Counter[str]] = {}
    offenders, alarms, errors, start = [], [], [], time.perf_counter()
    with threadpool_limits(1):
        for number in numbers:
            one = make(seed, number)
            found = judge(one, backend, inertia=number % INERTIA == 0)
            kind = kinds.setdefault(one.name, Counter())
            for count in (counts, kind):
                count["systems"] += 1
                count[found.outcome] += 1
                count.update(found.violations.keys())
                count["false alarm"] += bool(found.false_alarm)
            if found.inertia:
                counts[f"inertia {found.inertia}"] += 1
            if found.nulls:
                counts[f"nulls {found.nulls}"] += 1
            if found.violations:
                offenders.append(described(number, one, found))
            if found.false_alarm:
                alarms.append(described(number, one, found))
            if found.outcome == "solved":
                errors.append((found.backward, found.forward))
            if time.perf_counter() - start > seconds:
                break
    backward, forward = np.array(errors or [(0.0, 0.0)]).max(axis=0).tolist()
    worst = {"backward error in eps": backward, "forward error": forward}
    about = {"seed": seed, "backend": backend, "seconds": time.perf_counter() - start}
    counted = {"counts": dict(counts), "kinds": {k: dict(v) for k, v in kinds.items()}}
    return about | counted | {"worst": worst, "offenders": offenders, "alarms": alarms}


def described(number: int, one: System, found: Judgement) -> dict:
    """What is wrong about a system, and what makes it again."""
    alarm = {"false alarm": found.false_alarm} if found.false_alarm else {}
    return {"number": number, "n": one.A.shape[0], "system": one.told} | found.violations | alarm


def failures(record: dict) -> int:
    """Return how often something happened that must not."""
    return sum(record["counts"].get(name, 0) for name in VIOLATIONS)


def show(record: dict, console: Console) -> None:
    """Print counts by kind of problem, and what is wrong."""
    columns = ("systems", "solved", "warned", "refused", "false alarm", *VIOLATIONS)
    table = Table("problem", *columns, padding=0)
    for name, counts in [*sorted(record["kinds"].items()), ("all", record["counts"])]:
        table.add_row(name, *(str(counts.get(c, 0)) for c in columns))
    console.print(table)
    for one in record["offenders"][:SHOWN]:
        console.print(one, soft_wrap=True)
    counts = record["counts"]
    inertia, nulls = (
        {k.split()[1]: v for k, v in counts.items() if k.startswith(what)}
        for what in ("inertia ", "nulls ")
    )
    rate = counts.get("systems", 0) / record["seconds"]
    console.print(f"largest {record['worst']}; inertia {inertia}; null columns {nulls}")
    console.print(f"{rate:.2g} systems a second")


def only(seed: int, number: int, backend: str, make=system) -> int:
    """Print what one system is and what comes of it."""
    one = make(seed, number)
    found = judge(one, backend, inertia=True)
    Console().print(one.told, found)
    return int(bool(found.violations))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", type=int, default=2000)
    parser.add_argument("--large", action="store_true", help="of 500 to 2000 unknowns")
    parser.add_argument("--first", type=int, default=0, help="number of the first system")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--backend", default="cpu", choices=["cpu", "gpu", "auto"])
    parser.add_argument("--seconds", type=float, default=np.inf, help="stop after so long")
    parser.add_argument("--only", type=int, help="number of a single system")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the systems")
    parser.add_argument("--output", type=Path, help="file that a JSON line is added to")
    chosen = parser.parse_args()
    if np.finfo(np.longdouble).eps > 1e-18:
        parser.error("long double has no more digits than double here: there is no reference")
    make = large_system if chosen.large else system
    if chosen.only is not None:
        return only(chosen.seed, chosen.only, chosen.backend, make)
    numbers = range(chosen.first, chosen.first + chosen.systems)
    of = chosen.seed, numbers, chosen.backend, chosen.seconds, make
    record = run_jobs(chosen.jobs, *of)
    show(record, Console())
    if chosen.output:
        with writer(chosen.output, append=True) as store:
            store(record)
    return int(failures(record) > 0)


if __name__ == "__main__":
    sys.exit(main())
