"""`frontal warm`: compile the code that first calls need, and store it on disk.

Numba holds one lock while it compiles, so threads do not help: for each method and scalar type a
process factorizes and solves a small system. The analysis, which all of these need, is compiled
first; meanwhile nested dissection, which takes longest, and the parallel analysis of a large grid.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from .. import gpu
from ..api import analyze, factorize
from ..backend.protocol import Progress
from ..compile import jit, worker, workers
from ..cpu.small import warmup
from ..factor.analysis import Analysis
from ..files.atomic_write import replacing
from ..io import read_matrix, write_matrix
from ..machine.resources import available_memory, thread_count
from ..numeric.method import CHOLESKY, LDLH, LDLT, LU, SIGNED_LDLH
from ..ordering import metis, order
from ..ordering.components import Components, hanging
from ..ordering.dissection.dissect import NestedDissection
from ..ordering.graph import adjacency
from ..problems import (
    circuit,
    convdiff3d,
    kkt,
    permuted,
    poisson2d,
    poisson3d,
    stokes2d,
    turned,
    zero_diagonal,
)
from . import show

_CUBE_SIDE = 9  # points per edge of a cube whose largest front is beyond the GPU's small fronts
_LAYERED_CUBE_SIDE = 11  # points per edge of a cube that the layer ordering cuts
_CIRCUIT_NODES = 300  # of a matrix for LU by columns
_STAR_LEAVES = 400  # of a matrix whose root has many children
_SHARED_CUBE_SIDE = 44  # points per edge of a cube whose graph several threads dissect together
_SQUARE_SIDE, _THREADS = 260, 4  # points per edge of a square that many threads analyze in parts
_WIDTHS = (1, 2, 4, 8)  # numbers of right-hand sides with different kernels
_PROCESS_BYTES = 8 * 10**8  # memory of a process
_SLOWEST_FIRST = (LDLH, LDLT, LU, SIGNED_LDLH, CHOLESKY)  # order of compilation


class Task(NamedTuple):
    """The work of one process: a method and scalar type, or a phase of the analysis."""

    backend: str
    what: str
    dtype: str

    @property
    def name(self) -> str:
        """Name in reports."""
        return " ".join(field for field in self if field)


ANALYSIS = Task("cpu", "analysis", "")
DISSECTION = Task("cpu", "dissection", "")
LAYERS = Task("cpu", "layers", "")
ORDERINGS = (DISSECTION, LAYERS)


def tasks(dtypes: Sequence[str], backends: Sequence[str]) -> list[Task]:
    """Return the tasks that follow the analysis, the slowest first.

    >>> [task.name for task in tasks(["float64"], ["cpu"])]
    ['cpu ldlt float64', 'cpu lu float64', 'cpu signed_ldlh float64', 'cpu cholesky float64']
    """
    return [
        Task(backend, method.name, dtype)
        for backend in sorted(backends, reverse=True)
        for method in _SLOWEST_FIRST
        for dtype in dtypes
        if method != LDLH or np.dtype(dtype).kind == "c"
    ]


def warm(
    dtypes: Sequence[str] = ("float64", "complex128"),
    backend: str = "auto",
    jobs: int | None = None,
    progress: Progress | None = None,
) -> show.Record:
    """Compile the code of the CPU, and the kernels of a GPU if there is one.

    Parameters
    ----------
    dtypes : sequence of str
    backend : {"auto", "cpu", "gpu"}
        ``"cpu"`` skips a GPU, ``"gpu"`` requires one.
    jobs : int, optional
        Number of processes; by default as many as threads and memory allow.
    progress : callable, optional
        Called with (phase, done, total).

    Returns
    -------
    dict
        The folder, the number and bytes of its files, the GPUs, and the seconds of each task.

    Raises
    ------
    OSError
        If compiled code cannot be stored.
    frontal.gpu.DeviceNotFoundError
        If there is no GPU, and one is required.
    """
    began = time.perf_counter()
    _check_folder()
    if backend == "gpu":
        gpu.require()
    devices = [] if backend == "cpu" else gpu.devices()
    later = tasks(dtypes, ["cpu", "gpu"] if devices else ["cpu"])
    count = 1 + len(ORDERINGS) + len(later)
    processes = min(jobs or _jobs(), count - 1)
    seconds: dict[str, float] = {}

    def done(task: Task, taken: float) -> None:
        seconds[task.name] = taken
        if progress:
            progress("compiling", len(seconds), count)

    if progress:
        progress("compiling", 0, count)
    kinds = [task.name for task in (*ORDERINGS, *later)]
    if processes > 1:
        workers.compile_all(kinds, processes)
        _run_in_processes(later, processes, done)
    else:
        for task in (ANALYSIS, *ORDERINGS, *later):
            done(task, run(task))
    for kind in kinds:
        worker.mark_done(kind)
    files = [path.stat().st_size for path in jit._FOLDER.glob("*.nbc")]
    report = {"folder": str(jit._FOLDER), "files": len(files), "bytes": sum(files)}
    report |= {"devices": devices, "processes": processes, "tasks": seconds}
    return {**report, "seconds": time.perf_counter() - began}


def _check_folder() -> None:
    """Raise OSError if compiled code cannot be stored."""
    try:
        jit._FOLDER.mkdir(parents=True, exist_ok=True)
        with replacing(jit._FOLDER / "warm") as stream:
            stream.write(b"")
        (jit._FOLDER / "warm").unlink(missing_ok=True)
    except OSError as error:
        raise OSError(
            f"compiled code cannot be cached in {jit._FOLDER}: {error}; set FRONTAL_CACHE_DIR to "
            "a folder that is writable now and readable later"
        ) from error


def _jobs() -> int:
    memory = available_memory()
    return (
        thread_count() if memory is None else max(1, min(thread_count(), memory // _PROCESS_BYTES))
    )


def _run_in_processes(later: list[Task], count: int, done: Callable[[Task, float], None]) -> None:
    started = multiprocessing.get_context("spawn")  # a fork would copy locks of other threads
    with ProcessPoolExecutor(count, started, _limit_threads) as pool:
        waiting: dict[Future[float], Task] = {
            pool.submit(run, task): task for task in (ANALYSIS, *ORDERINGS)
        }
        try:
            while waiting:
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    task = waiting.pop(future)
                    done(task, future.result())
                    if task == ANALYSIS:
                        waiting |= {pool.submit(run, then): then for then in later}
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _limit_threads() -> None:
    """Limit a process to one thread, as other processes run concurrently."""
    os.environ["FRONTAL_NUM_THREADS"] = "1"


# --- tasks -----------------------------------------------------------------------------------


def run(task: Task) -> float:
    """Run a task and return its seconds."""
    began = time.perf_counter()
    work = {ANALYSIS: _analyses, DISSECTION: _dissections, LAYERS: _layers}.get(task)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        work() if work else _systems(task)
    return time.perf_counter() - began


def _dissections() -> None:
    """Dissect with one thread, as an ordering, by layers, and with a team; peel a path."""
    order(poisson3d(_CUBE_SIDE), "dissection")
    order(poisson3d(_LAYERED_CUBE_SIDE), "layers")
    with NestedDissection(Components(adjacency(poisson3d(_SHARED_CUBE_SIDE))), threads=2) as run:
        run.result()
    hanging(adjacency(sp.eye_array(9, k=1)))


def _layers() -> None:
    """Analyze a large grid with several threads."""
    asked = {**os.environ}
    os.environ["FRONTAL_NUM_THREADS"] = str(_THREADS)
    try:
        analyze(poisson2d(_SQUARE_SIDE), backend="cpu")
    finally:
        del os.environ["FRONTAL_NUM_THREADS"]
        os.environ |= asked


def _analyses() -> None:
    """Analyze matrices of all kinds."""
    A = poisson3d(4)
    analysis = analyze(A, backend="cpu")
    analysis.memory_for(np.float64, threads=2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "analysis"
        analysis.save(path)
        Analysis.load(path)
        _read_files(Path(folder))
    analyze(sp.csc_array(sp.tril(A)), kind="spd", triangle="lower", backend="cpu")
    analyze(permuted(convdiff3d(4), symmetric=False), backend="cpu")  # needs a row permutation
    analyze(kkt(40), backend="cpu")
    analyze(sp.csc_array(sp.kron(A, np.ones((3, 3)))), backend="cpu")  # indistinguishable nodes
    if metis.available():
        order(A, "nesdis")


def _read_files(folder: Path) -> None:
    """Read a matrix of each text format."""
    write_matrix(folder / "a.mtx", sp.eye_array(1))
    read_matrix(folder / "a.mtx")
    counts = [f"{count:14d}" for count in (3, 1, 1, 1, 0, 1, 1, 1, 0)]
    lines = ["", "".join(counts[:5]), f"{'RUA':14}" + "".join(counts[5:])]
    lines += [f"{'(2I1)':16}{'(I1)':16}(F2.0)", "12", "1", "1.", ""]
    (folder / "a.rua").write_text("\n".join(lines))
    read_matrix(folder / "a.rua")


def _systems(task: Task) -> None:
    """Factorize and solve by the method, scalar type and backend of a task."""
    kind = {method.name: method.kind for method in _SLOWEST_FIRST}[task.what]
    A = _matrix(task)
    analysis = analyze(A, kind=kind, backend=task.backend)
    b = np.ones((A.shape[0], max(_WIDTHS)), A.dtype)
    with warmup.never():
        factor = analysis.factorize(A)
        for trans in "NTH":
            for width in _WIDTHS:
                factor.solve(b[:, :width], trans, return_info=True)
        factor.refactorize(A).solve(b[:, 0])
        if task.what == "lu":
            analyze(A, backend=task.backend)  # compares values for kind="auto"
            moved = permuted(convdiff3d(4), symmetric=False)  # with scaling by a matching
            factorize(moved.astype(task.dtype), backend=task.backend)
    if task.backend == "cpu":
        for _ in range(warmup.MIN_CALLS + 1):  # the last one on the path of frequent small calls
            factor.refactorize(A).solve(b[:, 0].copy())
    factor.slogdet()
    factor.rcond()
    if task.backend == "gpu" and task.what == "cholesky":
        factorize(star_matrix(task), kind="spd", backend="gpu")  # with gathering fronts
    if task.backend == "cpu":
        if task.what == "lu":
            _by_columns(task)
        _ = factor.L, factor.diag(), factor.diag_inv(), factor.solve(b[:, :2], system="L")
        if task.what in ("ldlt", "ldlh", "lu"):
            for moving in (stokes2d(8), zero_diagonal(200)):  # pivots are delayed
                matrix = moving.astype(A.dtype)
                factorize(matrix, kind=kind, backend="cpu", singular="allow")


def _by_columns(task: Task) -> None:
    """Factorize and solve a thin system."""
    A = thin_matrix(task)
    b = np.ones((A.shape[0], 2), A.dtype)
    with warmup.never():
        factor = factorize(A, backend="cpu")
        for trans in "NTH":
            factor.solve(b, trans, return_info=True)
    for _ in range(warmup.MIN_CALLS + 1):
        factor.refactorize(A).solve(b[:, 0].copy())
    _ = factor.slogdet(), factor.rcond(), factor.L


def thin_matrix(task: Task) -> sp.csc_array:
    """Return a matrix that LU factorizes by columns."""
    return circuit(_CIRCUIT_NODES).astype(task.dtype)


def star_matrix(task: Task) -> sp.csc_array:
    """Return a positive definite matrix whose fronts include a wide parent."""
    leaf = np.arange(1, _STAR_LEAVES + 1)
    row = sp.csc_array((np.ones(leaf.size), (0 * leaf, leaf)), shape=2 * (leaf.size + 1,))
    return sp.csc_array(row + row.T + leaf.size * sp.eye_array(leaf.size + 1)).astype(task.dtype)


def _matrix(task: Task) -> sp.csc_array:
    dtype = np.dtype(task.dtype)
    A = convdiff3d(_CUBE_SIDE) if task.what == "lu" else poisson3d(_CUBE_SIDE)
    if task.what in ("ldlt", "ldlh"):
        A = sp.csc_array(A - A.diagonal().mean() / 4 * sp.eye_array(A.shape[0]))
    if task.what == "signed_ldlh":  # dominant, so that pivots have the signs of the diagonal
        A = sp.csc_array(A - sp.diags_array(2 * A.diagonal() * (np.arange(A.shape[0]) % 2)))
    if dtype.kind == "c":
        A = turned(A, hermitian=task.what != "ldlt")
    return A.astype(dtype)
