"""Calls timed in turn in one process, and the programs that write their ratios as records."""

from __future__ import annotations

import argparse
import re
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks.harness.records import RESULTS, writer

_WARM_UP = 2  # rounds that are not counted


def times_in_turn(
    calls: dict[str, Callable[[], object]],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Return seconds of each call; every round has all of them, one after another."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds + _WARM_UP):
        for name, call in calls.items():
            began = clock()
            call()
            if turn >= _WARM_UP:
                times[name].append(clock() - began)
    return times


def ratios_of(times: dict[str, list[float]], unit: str) -> dict[str, dict[str, object]]:
    """Return the fields of a record: medians, minima, and medians over that of one call."""
    medians = {name: statistics.median(found) for name, found in times.items()}
    return {
        "phases": {name: {"median": t, "min": min(times[name])} for name, t in medians.items()},
        "ratios": {name: t / medians[unit] for name, t in medians.items()},
    }


def run(
    description: str | None,
    file: str,
    problems: Iterable[str],
    measured: Callable[[str, int], dict[str, object]],
) -> None:
    """Measure problems as the command line says, and write records with `ratios` to a file."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--match", default="", help="regular expression on the problem")
    parser.add_argument("--append", action="store_true", help="keep earlier records")
    parser.add_argument("--output", type=Path, default=RESULTS / file)
    options = parser.parse_args()
    with writer(options.output, options.append) as store:
        for problem in (x for x in problems if re.search(options.match, x)):
            record = store(measured(problem, options.rounds))
            ratios = ", ".join(f"{name} {ratio:.2f}" for name, ratio in record["ratios"].items())
            print(f"{problem:16} {record['method']:9} {ratios}", flush=True)
