"""The command line: frontal solve, analyze, bench, tune, warm, info.

Results are printed on stdout, as text or with --json as JSON; progress, warnings and errors on
stderr. The exit code is 0, 1 after an error of the solver or a file, 2 for a wrong command line.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from . import output, show
from .wording import as_options

if TYPE_CHECKING:  # the libraries take 1 s to load, and `frontal --help` needs none of them
    import scipy.sparse as sp

    from ..factor.analysis import Analysis, Progress

KINDS = ("auto", "spd", "quasidefinite", "symmetric", "hermitian", "general")
ORDERINGS = ("auto", "amd", "dissection", "layers", "metis", "nesdis", "rcm", "natural")
BACKENDS = ("auto", "cpu", "gpu")
PEERS = ("superlu", "cholmod", "pardiso", "mumps", "cudss")
DTYPES = ("float64", "complex128", "float32", "complex64")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code.

    Examples
    --------
    >>> from frontal.cli import main
    >>> main(["solve", "poisson2d:10"])  # doctest: +ELLIPSIS
    n = 100, nnz = 460: cholesky, amd, backward error ..., error against ones ..., ... s
    0
    """
    options = _parser().parse_args(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = _warnings(options)
        try:
            options.run(options)
        except (ImportError, MemoryError, OSError, RuntimeError, TypeError, ValueError) as error:
            return _fail(error, options)
        except KeyboardInterrupt:
            print("frontal: interrupted", file=sys.stderr)
            return 130
    return 0


def _fail(error: Exception, options: argparse.Namespace) -> int:
    text = as_options(str(error), vars(options))
    message = " ".join(text.split()) or type(error).__name__
    print(f"frontal: error: {message}", file=sys.stderr)
    return 1


def _warnings(options: argparse.Namespace) -> Callable[..., None]:
    """Return a function that shows the warnings of a command."""

    def show_warning(message: Warning | str, *_: object, **__: object) -> None:
        print(f"frontal: warning: {as_options(str(message), vars(options))}", file=sys.stderr)

    return show_warning


def _parser() -> argparse.ArgumentParser:
    """Return the parser of all commands and their options."""
    parser = argparse.ArgumentParser(
        prog="frontal", description="Multifrontal direct solver for sparse linear systems."
    )
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "matrix",
        metavar="A",
        help="Matrix Market, Harwell-Boeing or .npz file, or a model problem such as poisson3d:30",
    )
    common.add_argument("--kind", choices=KINDS, default="auto", help="what A is; default: auto")
    common.add_argument("--ordering", choices=ORDERINGS, default="auto")
    common.add_argument("--backend", choices=BACKENDS, default="auto")
    machine = argparse.ArgumentParser(add_help=False)
    machine.add_argument("--json", action="store_true", help="print one JSON object")

    solve = commands.add_parser("solve", parents=[common, machine], help="solve A x = b")
    solve.add_argument(
        "rhs", metavar="b", nargs="?", help="file of b; default: A times ones, so that x is known"
    )
    solve.add_argument("-o", "--output", metavar="x", help="file for x: .mtx, .mtx.gz, .npy, .txt")
    solve.add_argument("--report", action="store_true", help="print how x was computed")
    solve.set_defaults(run=_solve)
    analyze = commands.add_parser(
        "analyze", parents=[common, machine], help="order A and show the cost of its factorization"
    )
    analyze.add_argument(
        "--plot", metavar="FILE", help="draw fill, assembly tree and timeline; .png or .svg"
    )
    analyze.set_defaults(run=_analyze)
    measure = commands.add_parser(
        "bench",
        parents=[common, machine],
        help="time the phases of a solve with A, in frontal and in other solvers",
    )
    _bench_options(measure)
    measure.set_defaults(run=_bench)
    tune = commands.add_parser(
        "tune", parents=[machine], help="find the GPU's fastest block sizes, tiles and crossovers"
    )
    tune.add_argument("--routines", nargs="+", default=(), metavar="NAME", help="default: all")
    tune.add_argument("--seconds", type=float, default=120.0, help="time limit; default 120")
    tune.add_argument("-o", "--output", metavar="FILE", help="default: in the user's cache folder")
    tune.set_defaults(run=_tune)
    warm = commands.add_parser(
        "warm", parents=[machine], help="compile ahead of the first use, and cache the code"
    )
    warm.add_argument(
        "--dtypes", nargs="+", choices=DTYPES, default=DTYPES[:2], metavar="TYPE",
        help=f"any of {', '.join(DTYPES)}; default: {' '.join(DTYPES[:2])}",
    )  # fmt: skip
    warm.add_argument("--backend", choices=BACKENDS, default="auto", help="cpu: no GPU code")
    warm.add_argument("--jobs", type=int, metavar="N", help="processes; default: one per core")
    warm.set_defaults(run=_warm)
    info = commands.add_parser("info", parents=[machine], help="show versions, threads, devices")
    info.set_defaults(run=_info)
    return parser


def _bench_options(measure: argparse.ArgumentParser) -> None:
    add = measure.add_argument
    add("--repeat", type=int, default=5, metavar="N", help="runs of each phase; default 5")
    names = f"any of {', '.join(PEERS)}, none; default: all installed"
    add("--peers", nargs="+", metavar="NAME", help=f"other solvers to compare with, {names}")
    add("--seconds", type=float, default=60.0, metavar="S", help="limit per solver; default 60")
    add("--profile", action="store_true", help="time by level and by size of fronts (on a GPU)")
    add("--plot", metavar="FILE", help="draw the comparison, or the profile; .png or .svg")


class _Version(argparse.Action):
    """Print the version and exit."""

    def __init__(self, option_strings: list[str], dest: str, **_: object) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print the version and exit")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from .. import __version__

        print(__version__)
        parser.exit()


# --- solve -----------------------------------------------------------------------------------


def _solve(options: argparse.Namespace) -> None:
    """Run `frontal solve`."""
    import numpy as np

    from ..io import read_vector, write_vector

    output.require_vector(options.output)
    with show.progress() as progress:
        began = time.perf_counter()
        A = _read(options.matrix, progress)
        known = None if options.rhs else np.ones(A.shape[1])
        b = read_vector(options.rhs) if known is None else A @ known
        read = time.perf_counter() - began
        analysis = _make_analysis(A, options, progress)
        factor = analysis.factorize(A, check_finite=False, progress=progress)
        x, info = factor.solve(b, return_info=True)
    report = {"matrix": options.matrix, "n": A.shape[0], "nnz": int(A.nnz), **info.as_dict()}
    report["seconds"] = {"read": read, **report["seconds"]}
    if known is not None:
        report["error_against_ones"] = float(np.abs(x - known).max(initial=0.0))
    if options.output:
        write_vector(options.output, x)
    if options.json:
        print(json.dumps(report, default=show.plain))
    elif options.report:
        show.table("Solution", ("", ""), show.described(report))
        show.table("Time", ("phase", "seconds"), show.seconds(report["seconds"]))
    else:
        _summarize(report)


def _summarize(report: show.Record) -> None:
    """Print one line about a solution."""
    parts = [report["method"], report["ordering"], f"backward error {report['backward_error']:.1e}"]
    if "error_against_ones" in report:
        parts.append(f"error against ones {report['error_against_ones']:.1e}")
    parts.append(f"{sum(report['seconds'].values()):.2f} s")
    print(f"n = {report['n']}, nnz = {report['nnz']}: {', '.join(parts)}")


def _read(name: str, progress: Progress | None) -> sp.csc_array:
    """Return the matrix of a file, or of a model problem such as ``poisson3d:30``."""
    from ..io import read_matrix
    from ..problems import from_name

    if progress:
        progress("reading", 0, 1)
    A = from_name(name) if ":" in name and not Path(name).exists() else read_matrix(name)
    if progress:
        progress("reading", 1, 1)
    return A


def _make_analysis(
    A: sp.csc_array, options: argparse.Namespace, progress: Progress | None
) -> Analysis:
    from ..api import analyze

    return analyze(
        A,
        kind=options.kind,
        ordering=options.ordering,
        backend=options.backend,
        progress=progress,
    )


# --- analyze ---------------------------------------------------------------------------------


def _analyze(options: argparse.Namespace) -> None:
    """Run `frontal analyze`."""
    from . import analyzed, draw

    draw.require_writable(options.plot)
    with show.progress() as progress:
        A = _read(options.matrix, progress)
        analysis = _make_analysis(A, options, progress)
    if options.plot:
        draw.analysis(analysis, options.plot, options.matrix)
    report = analyzed.report(options.matrix, A, analysis)
    if options.json:
        print(json.dumps(report, default=show.plain))
    else:
        analyzed.tables(report)


# --- bench -----------------------------------------------------------------------------------


def _bench(options: argparse.Namespace) -> None:
    """Run `frontal bench`."""
    from . import bench, draw

    draw.require_writable(options.plot)
    with show.progress() as progress:
        A = _read(options.matrix, progress)
        analysis = _make_analysis(A, options, progress)
        report = bench.run(A, analysis, options, progress)
    if options.json:
        print(json.dumps(report, default=show.plain))
    else:
        bench.tables(report)


# --- tune ------------------------------------------------------------------------------------


def _tune(options: argparse.Namespace) -> None:
    """Run `frontal tune`."""
    from ..gpu.dense import tune
    from ..gpu.runtime.device import device_of

    known = tune.routines()
    unknown = sorted(set(options.routines) - set(known))
    if unknown:
        raise ValueError(f"unknown routine {', '.join(unknown)}; known: {', '.join(known)}")
    output.require_folder(options.output, create=True)
    device = device_of()
    with show.progress() as progress:
        numbers, changes = tune.sweep(
            device, options.routines, seconds=options.seconds, progress=progress
        )
    path = tune.save(device.name, numbers, Path(options.output) if options.output else None)
    if options.json:
        report = {"device": device.name, "file": str(path), "routines": numbers}
        print(json.dumps(report, default=show.plain))
        return
    rows = [
        (f"{c.routine} {c.knob}", str(c.before), str(c.after), f"{c.gain:.2f}") for c in changes
    ]
    show.table(f"{device.name}: {path}", ("parameter", "default", "chosen", "speedup"), rows)


# --- warm ------------------------------------------------------------------------------------


def _warm(options: argparse.Namespace) -> None:
    """Run `frontal warm`."""
    from . import warm

    if options.jobs is not None and options.jobs < 1:
        raise ValueError(f"--jobs is {options.jobs}; give a positive number of processes")
    with show.progress() as progress:
        report = warm.warm(options.dtypes, options.backend, options.jobs, progress)
    if options.json:
        print(json.dumps(report, default=show.plain))
        return
    times, total = report["tasks"].items(), f"{report['seconds']:.1f} s"
    show.table("Compiled", ("task", "seconds"), [(name, f"{t:.1f}") for name, t in times])
    files = f"{report['files']} files, {show.size(report['bytes'])}, in {report['folder']}"
    rows = [("time", f"{total} on {report['processes']} processes"), ("cached", files)]
    rows.append(("GPU", ", ".join(report["devices"]) or "none"))
    show.table("Warm", ("", ""), rows)


# --- info ------------------------------------------------------------------------------------


def _info(options: argparse.Namespace) -> None:
    """Run `frontal info`."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    import scipy.linalg  # noqa: F401 - loads the BLAS that is reported
    from threadpoolctl import threadpool_info

    from .. import __version__, gpu
    from ..machine.resources import thread_count
    from .speed import speed

    versions = {"frontal": __version__, "python": platform.python_version()}
    for package in ("numpy", "scipy", "numba", "pymetis", "networkx", "rich"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    blas = [
        {
            "library": f"{pool['internal_api']} {pool['version']}",
            "of": Path(pool["filepath"]).parent.name,
            "architecture": pool.get("architecture", ""),
            "threads": pool["num_threads"],
        }
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    ]
    report = {"versions": versions, "blas": blas, "threads": thread_count()}
    report |= {"platform": platform.platform(), "devices": gpu.devices()}
    report["speeds"] = [speed(gpu.speed(i)) for i in range(len(report["devices"]))]
    if options.json:
        print(json.dumps(report, default=show.plain))
        return
    show.table("Versions", ("package", "version"), list(versions.items()))
    show.table("BLAS", ("library", "folder", "architecture", "threads"), show.rows(blas))
    machine = [("platform", report["platform"]), ("threads", str(report["threads"]))]
    machine.append(("GPU", ", ".join(report["devices"]) or "none usable"))
    machine += [(f"speed of GPU {i}", text) for i, text in enumerate(report["speeds"])]
    show.table("Machine", ("", ""), machine)


if __name__ == "__main__":
    raise SystemExit(main())
