"""`frontal bench`: what each phase of solving a system takes here, and where the time goes."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from . import show

if TYPE_CHECKING:
    from .._typing import Sparse
    from ..factor.analysis import Analysis
    from ..gpu.sparse.profile import FactorProfile

_HEADER = ("", "fronts", "ms", "waiting", "flops", "floor ms", "floor by", "share of it")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="times each; default 5")
    parser.add_argument(
        "--profile", action="store_true", help="time by level and by size of fronts (on a GPU)"
    )
    parser.add_argument("--plot", metavar="FILE", help="draw the profile, .png or .svg")


def run(A: Sparse, analysis: Analysis, options: argparse.Namespace) -> show.Record:
    """Time the phases; return what `phases` does, and the profile where it is asked for."""
    report = phases(A, analysis, options.repeat)
    factor = report.pop("factor")
    if options.profile or options.plot:
        found = factor.profile()
        report["profile"] = _as_dict(found)
        if options.plot:
            plot(found, options.plot)
    return report


def tables(report: show.Record) -> None:
    """Show what `run` returned."""
    times, found = report.pop("milliseconds"), report.pop("profile", None)
    show.table("Run", ("", ""), [(k, show.text(v)) for k, v in report.items()])
    rows = [(name, *(f"{x:.3f}" for x in values)) for name, values in times.items()]
    show.table("Time", ("phase", "median ms", "min", "max"), rows)
    if found:
        title = f"Levels of fronts, from the leaves up: {found['total']:.3f} ms"
        show.table(title, _HEADER, [_cells(row) for row in found["levels"]])
        show.table("Orders of fronts", _HEADER, [_cells(row) for row in found["classes"]])


def phases(A: Sparse, analysis: Analysis, repeat: int) -> show.Record:
    """Factorize, refactorize and solve `repeat` times; median, least and most milliseconds.

    Returns
    -------
    dict
        ``milliseconds`` by phase, backend, device, flops, backward error, and the ``factor``.
    """
    import numpy as np

    b = A @ np.ones(A.shape[1])
    factor = analysis.factorize(A)
    info = factor.solve(b, return_info=True)[1]
    runs: dict[str, Callable[[], object]] = {
        "refactorize": lambda: factor.refactorize(A),
        "solve": lambda: factor.solve(b),
        "solve, no refinement": lambda: factor.solve(b, refine=0),
        "solve 16": lambda: factor.solve(np.tile(b[:, None], 16), refine=0),
    }
    first = 1e3 * info.seconds["factorization"]
    times = {"analysis": 3 * (1e3 * sum(analysis.seconds.values()),), "first": 3 * (first,)}
    times |= {name: _timed(function, repeat) for name, function in runs.items()}
    return {
        "backend": info.backend,
        "device": info.device,
        "method": info.method,
        "ordering": info.ordering,
        "nnz_factor": info.nnz_factor,
        "flops": info.flops,
        "backward_error": info.backward_error,
        "milliseconds": times,
        "factor": factor,
    }


def _timed(function: Callable[[], object], repeat: int) -> tuple[float, float, float]:
    seconds = []
    function()
    for _ in range(max(repeat, 1)):
        began = time.perf_counter()
        function()
        seconds.append(1e3 * (time.perf_counter() - began))
    return statistics.median(seconds), min(seconds), max(seconds)


def _cells(row: show.Record) -> tuple[str, ...]:
    floors, time_ = (row["bandwidth_floor"], row["flop_floor"]), row["milliseconds"]
    by, floor = "bytes" if floors[0] > floors[1] else "flops", max(floors)
    share = f"{100 * floor / time_:.0f} %" if time_ else ""
    times = f"{time_:.3f}", f"{row['waiting']:.3f}", show.count(row["flops"]), f"{floor:.3f}"
    return row["name"], str(row["fronts"]), *times, by, share


def _as_dict(found: FactorProfile) -> show.Record:
    return {
        "total": found.total,
        "ceilings": found.ceilings,
        "levels": [vars(row) for row in found.levels],
        "classes": [vars(row) for row in found.classes],
    }


def plot(found: FactorProfile, path: str) -> None:
    """Draw time and floors by level and by order of fronts."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    for axes, rows, label in zip(
        figure.subplots(1, 2),
        (found.levels, found.classes),
        ("level", "order of the front"),
        strict=True,
    ):
        names = [row.name for row in rows]
        axes.bar(names, [row.milliseconds for row in rows], color="0.8", label="time")
        axes.bar(names, [row.waiting for row in rows], color="0.6", label="waiting and reading")
        axes.plot(names, [row.bandwidth_floor for row in rows], "o", label="floor of bandwidth")
        axes.plot(names, [row.flop_floor for row in rows], "^", label="floor of arithmetic")
        axes.set(xlabel=label, ylabel="ms", yscale="log")
        axes.tick_params(axis="x", rotation=60)
    figure.axes[0].legend()
    figure.savefig(path)
