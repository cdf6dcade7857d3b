"""`frontal bench`: times of the phases of a solve, here and with other solvers."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ..machine.resources import thread_count
from . import draw, peers, show

if TYPE_CHECKING:
    from .._typing import Sparse
    from ..backend.protocol import Progress
    from ..factor.analysis import Analysis
    from ..gpu.sparse.factorize.profile import FactorProfile

PHASES = ("first", "refactorize", "solve")  # "first" includes the analysis
_HEADER = ("", "fronts", "ms", "waiting", "flops", "floor ms", "floor by", "floor / time")


def run(
    A: Sparse, analysis: Analysis, options: argparse.Namespace, progress: Progress | None = None
) -> show.Record:
    """Time the phases here and with other solvers; draw a picture if requested.

    Returns
    -------
    dict
        The result of `phases`, ``peers`` by name, and ``profile`` if requested.
    """
    report = phases(A, analysis, options.repeat)
    factor = report.pop("factor")
    profile = factor.profile() if options.profile else None
    if profile:
        report["profile"] = _as_dict(profile)
    asked = _asked(options.peers, factor.analysis.kind)
    b = A @ np.ones(A.shape[1], A.dtype)
    limits = {"repeat": options.repeat, "seconds": options.seconds, "threads": thread_count()}
    report["peers"] = {}
    for name, outcome in peers.compare(asked, A, b, factor.analysis.kind, **limits):
        report["peers"][name] = outcome
        if progress:
            progress("other solvers", len(report["peers"]), len(asked))
    if options.plot and profile:
        plot(profile, options.plot)
    elif options.plot:
        chart(report, options.plot, options.matrix)
    return report


def _asked(names: list[str] | None, kind: str) -> list[str]:
    """Return the peers to compare with; without names those that are installed."""
    if names is None:
        return peers.installed(kind)
    unknown = sorted(set(names) - set(peers.PEERS) - {"none"})
    if unknown:
        raise ValueError(
            f"unknown solver {', '.join(unknown)}; known: {', '.join(peers.PEERS)}, none"
        )
    return [name for name in names if name != "none"]


def tables(report: show.Record) -> None:
    """Show the result of `run`."""
    times, profile = report.pop("milliseconds"), report.pop("profile", None)
    outcomes = report.pop("peers")
    show.table("Run", ("", ""), [(k, show.text(v)) for k, v in report.items()])
    rows = [(name, *(f"{x:.3f}" for x in values)) for name, values in times.items()]
    show.table("Time", ("phase", "median ms", "min", "max"), rows)
    if outcomes:
        threads = thread_count()
        title = f"Other solvers, {threads} thread{'s' * (threads > 1)}: milliseconds"
        header = ("solver", *PHASES, "backward error")
        show.table(title, header, _compared(times, report["backward_error"], outcomes))
    if profile:
        title = f"Fronts by level, from the leaves up: {profile['total']:.3f} ms"
        show.table(title, _HEADER, [_cells(row) for row in profile["levels"]])
        show.table("Fronts by order", _HEADER, [_cells(row) for row in profile["classes"]])


def ours(times: show.Record) -> dict[str, float]:
    """Return our times in the phases of peers: the first factorization includes the analysis."""
    first = times["analysis"][0] + times["first"][0]
    return {"first": first, "refactorize": times["refactorize"][0], "solve": times["solve"][0]}


def _compared(times: show.Record, error: float, outcomes: show.Record) -> show.Rows:
    rows = [("frontal", *(f"{x:.3f}" for x in ours(times).values()), f"{error:.0e}")]
    for name, outcome in outcomes.items():
        if "failed" in outcome:
            rows.append((name, *3 * ("",), outcome["failed"]))
        else:
            cells = [f"{outcome['milliseconds'][phase]:.3f}" for phase in PHASES]
            rows.append((name, *cells, f"{outcome['backward_error']:.0e}"))
    return rows


def phases(A: Sparse, analysis: Analysis, repeat: int) -> show.Record:
    """Factorize, refactorize and solve `repeat` times; return times in milliseconds.

    Returns
    -------
    dict
        ``milliseconds`` by phase (median, min, max), backend, device, method, ordering, entries,
        flops, backward error, and the ``factor``.
    """
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


def _as_dict(profile: FactorProfile) -> show.Record:
    return {
        "total": profile.total,
        "ceilings": profile.ceilings,
        "levels": [vars(row) for row in profile.levels],
        "classes": [vars(row) for row in profile.classes],
    }


def chart(report: show.Record, path: str, title: str = "") -> None:
    """Draw the times of all solvers that did not fail, one panel for each phase."""
    milliseconds = {"frontal": ours(report["milliseconds"])}
    for name, outcome in report["peers"].items():
        if "failed" not in outcome:
            milliseconds[name] = outcome["milliseconds"]
    names = list(milliseconds)[::-1]
    figure = draw.new_figure(10, 1.2 + 0.4 * len(names))
    titles = "analyze and factorize", "refactorize", "solve"
    for axes, phase, text in zip(figure.subplots(1, 3, sharey=True), PHASES, titles, strict=True):
        times = [milliseconds[name][phase] for name in names]
        colors = ["C1" if name == "frontal" else "0.7" for name in names]
        bars = axes.barh(names, times, color=colors)
        axes.bar_label(bars, [f"{time:.3g}" for time in times], padding=3, fontsize="small")
        axes.set(xscale="log", xlabel="ms", title=text)
        axes.set_xlim(min(times) / 3, max(times) * 4)
    figure.suptitle(title)
    figure.savefig(path)


def plot(profile: FactorProfile, path: str) -> None:
    """Draw times and lower bounds by level and by order of fronts."""
    figure = draw.new_figure(10, 4)
    for axes, rows, label in zip(
        figure.subplots(1, 2),
        (profile.levels, profile.classes),
        ("level", "front order"),
        strict=True,
    ):
        names = [row.name for row in rows]
        axes.bar(names, [row.milliseconds for row in rows], color="0.8", label="time")
        axes.bar(names, [row.waiting for row in rows], color="0.6", label="waiting and reading")
        axes.plot(names, [row.bandwidth_floor for row in rows], "o", label="bandwidth floor")
        axes.plot(names, [row.flop_floor for row in rows], "^", label="arithmetic floor")
        axes.set(xlabel=label, ylabel="ms", yscale="log")
        axes.tick_params(axis="x", rotation=60)
    figure.axes[0].legend()
    figure.savefig(path)
