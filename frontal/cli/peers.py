"""Other installed solvers, for `frontal bench`: each in its own process.

A peer is called as its documentation recommends, with its defaults and as many threads as we use.
A peer that crashes or exceeds the time limit is reported as failed.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from multiprocessing.connection import Connection
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from .._typing import Sparse
from . import show

_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Peer(Protocol):
    """A solver of one system, constructed with matrix A and right-hand side b.

    ``first`` analyzes and factorizes, ``refactorize`` factorizes with the same analysis if
    possible, and ``solve`` returns x.
    """

    def first(self) -> None: ...
    def refactorize(self) -> None: ...
    def solve(self) -> np.ndarray: ...


class SuperLU:
    """`scipy.sparse.linalg.splu`, which repeats the analysis."""

    def __init__(self, A: sp.csc_array, b: np.ndarray, kind: str) -> None:
        self.A, self.b = A, b

    def first(self) -> None:
        from scipy.sparse.linalg import splu

        self.factor = splu(self.A)

    refactorize = first

    def solve(self) -> np.ndarray:
        return self.factor.solve(self.b)


class Cholmod:
    """CHOLMOD through scikit-sparse 0.4."""

    def __init__(self, A: sp.csc_array, b: np.ndarray, kind: str) -> None:
        from sksparse import cholmod

        if not hasattr(cholmod, "analyze"):
            raise ImportError("scikit-sparse 0.4 is required, another version is installed")
        self.api, self.A, self.b = cholmod, sp.csc_matrix(A), b

    def first(self) -> None:
        self.factor = self.api.analyze(self.A)
        self.refactorize()

    def refactorize(self) -> None:
        self.factor.cholesky_inplace(self.A)

    def solve(self) -> np.ndarray:
        return self.factor(self.b)


class Pardiso:
    """MKL PARDISO through pypardiso, with the matching matrix type; phases 11, 22 and 33."""

    TYPES: ClassVar = {  # matrix types, real and complex
        "spd": (2, 4),
        "symmetric": (-2, 6),
        "hermitian": (-2, -4),
        "general": (11, 13),
    }

    def __init__(self, A: sp.csc_array, b: np.ndarray, kind: str) -> None:
        from pypardiso import PyPardisoSolver

        rows = sp.csr_array(A)
        if not np.diff(rows.indptr).all():
            raise ValueError("PARDISO does not accept empty rows")
        self.solver = PyPardisoSolver(mtype=self.TYPES[kind][A.dtype.kind == "c"])
        self.A, self.b = rows if kind == "general" else _upper(rows), b
        self.A.sort_indices()

    def _phase(self, phase: int) -> np.ndarray:
        self.solver.set_phase(phase)
        return self.solver._call_pardiso(self.A, self.b)

    def first(self) -> None:
        self._phase(11)
        self._phase(22)

    def refactorize(self) -> None:
        self._phase(22)

    def solve(self) -> np.ndarray:
        return self._phase(33)


class Mumps:
    """MUMPS through python-mumps."""

    def __init__(self, A: sp.csc_array, b: np.ndarray, kind: str) -> None:
        import mumps

        self.context, self.b = mumps.Context(), b
        # MUMPS's complex symmetric matrices equal their transpose, not their adjoint
        symmetric = kind in ("spd", "symmetric") or (kind == "hermitian" and A.dtype.kind == "f")
        symmetric &= A.dtype.kind == "f" or kind == "symmetric"
        self.context.set_matrix(sp.coo_array(A), symmetric=symmetric)

    def first(self) -> None:
        self.context.analyze()
        self.refactorize()

    def refactorize(self) -> None:
        self.context.factor(reuse_analysis=True)

    def solve(self) -> np.ndarray:
        return self.context.solve(self.b)


class CuDSS:
    """NVIDIA cuDSS through nvmath-python, with matrix and right-hand side on the device."""

    def __init__(self, A: sp.csc_array, b: np.ndarray, kind: str) -> None:
        import cupy
        from cupyx.scipy.sparse import csr_matrix
        from nvmath.sparse.advanced import DirectSolver

        self.device = cupy.cuda.Device()
        self.solver = DirectSolver(csr_matrix(sp.csr_matrix(A)), cupy.asarray(b))

    def first(self) -> None:
        self.solver.plan()
        self.refactorize()

    def refactorize(self) -> None:
        self.solver.factorize()
        self.device.synchronize()

    def solve(self) -> np.ndarray:
        x = self.solver.solve()
        self.device.synchronize()
        return x.get()


class _PeerEntry(NamedTuple):
    """The constructor of a peer, the modules that it needs, and the kinds that it supports."""

    make: Callable[[sp.csc_array, np.ndarray, str], Peer]
    modules: tuple[str, ...]
    kinds: tuple[str, ...] = ("spd", "symmetric", "hermitian", "general")


PEERS = {
    "superlu": _PeerEntry(SuperLU, ("scipy",)),
    "cholmod": _PeerEntry(Cholmod, ("sksparse",), ("spd",)),
    "pardiso": _PeerEntry(Pardiso, ("pypardiso",)),
    "mumps": _PeerEntry(Mumps, ("mumps",)),
    "cudss": _PeerEntry(CuDSS, ("nvmath", "cupy")),
}


def installed(kind: str = "general") -> list[str]:
    """Return names of the peers that are installed and support matrices of a kind.

    >>> "superlu" in installed()
    True
    """
    return [
        name
        for name, known in PEERS.items()
        if kind in known.kinds and all(map(find_spec, known.modules))
    ]


def compare(
    names: list[str],
    A: Sparse,
    b: np.ndarray,
    kind: str,
    *,
    repeat: int,
    seconds: float,
    threads: int,
) -> Iterator[tuple[str, show.Record]]:
    """Measure peers one after the other.

    Parameters
    ----------
    names : list of str
        Of `PEERS`.
    A, b : sparse (n, n), array (n,)
    kind : {"spd", "symmetric", "hermitian", "general"}
        Kind of A.
    repeat : int
        Number of runs of ``refactorize`` and ``solve``.
    seconds : float
        Time limit, after which a peer is killed.
    threads : int

    Yields
    ------
    name : str
    outcome : dict
        ``milliseconds`` by phase and ``backward_error``, or ``failed`` with the reason.
    """
    spawn = multiprocessing.get_context("spawn")  # a fork would copy our threads' locks
    for name in names:
        receiver, sender = spawn.Pipe(duplex=False)
        work = (sender, name, sp.csc_array(A), b, kind, repeat, threads)
        process = spawn.Process(target=_measure, args=work, daemon=True)
        process.start()
        sender.close()
        yield name, _outcome(receiver, seconds)
        process.kill()
        process.join()


def _outcome(pipe: Connection, seconds: float) -> show.Record:
    try:
        if pipe.poll(seconds):
            return pipe.recv()
    except EOFError:
        return {"failed": "ended without a result"}
    return {"failed": f"not finished after {seconds:g} s"}


def _measure(
    pipe: Connection,
    name: str,
    A: sp.csc_array,
    b: np.ndarray,
    kind: str,
    repeat: int,
    threads: int,
) -> None:
    """Run one peer, in its own process."""
    os.environ.update(dict.fromkeys(_VARIABLES, str(threads)))  # before the library is loaded
    try:
        peer = PEERS[name].make(A, b, kind)
        times = {"first": _milliseconds(peer.first, 1)}
        times["refactorize"] = _milliseconds(peer.refactorize, repeat)
        times["solve"] = _milliseconds(peer.solve, repeat)
        pipe.send({"milliseconds": times, "backward_error": backward_error(A, peer.solve(), b)})
    except Exception as error:  # other solvers raise anything: reported as failed
        text = " ".join(str(error).split())[:80]
        pipe.send({"failed": f"{type(error).__name__}: {text}"})


def _milliseconds(function: Callable[[], object], repeat: int) -> float:
    times = []
    for _ in range(max(repeat, 1)):
        began = time.perf_counter()
        function()
        times.append(1e3 * (time.perf_counter() - began))
    return statistics.median(times)


def backward_error(A: Sparse, x: np.ndarray, b: np.ndarray) -> float:
    """Return |b - A x| / (|A| |x| + |b|), infinity norm.

    >>> backward_error(sp.eye_array(3), np.ones(3), np.ones(3))
    0.0
    """
    norm = abs(A).sum(axis=1).max()
    return float(abs(b - A @ x).max() / (norm * abs(x).max() + abs(b).max()))


def _upper(A: sp.csr_array) -> sp.csr_array:
    """Return the upper triangle with all diagonal entries stored, which PARDISO requires."""
    half = sp.triu(A, format="coo")
    n = np.arange(A.shape[0])
    at = np.append(half.row, n), np.append(half.col, n)
    values = np.append(half.data, np.zeros(n.size, A.dtype))
    return sp.csr_array(sp.coo_array((values, at), shape=A.shape))
