"""The solvers compared, each behind the same five calls."""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import scipy.sparse as sp


class Frontal:
    """This package; ``solve`` is the sweep alone, ``solve_refined`` what a user gets by default."""

    def __init__(self, A, spd: bool, kind: str = "auto", reuse: int = 10):
        import frontal.api

        frontal.api._analyses.clear()  # of the same pattern, by an earlier sample
        self.api, self.A, self.kind, self.reuse = frontal, sp.csc_array(A), kind, reuse

    def analyze(self):
        self.analysis = self.api.analyze(self.A, kind=self.kind, reuse=self.reuse)

    def factor(self):
        self.factored = self.analysis.factorize(self.A)

    def refactor(self):
        self.factored.refactorize(self.A)

    def solve(self, B):
        return self.factored.solve(B, refine=0)

    def solve_refined(self, B):
        return self.factored.solve(B)

    def fresh(self):
        other = copy(self)
        other.factor()
        return other

    def scratch(self, B):
        return self.api.solve(self.A, B, kind=self.kind)

    def told(self, B) -> dict:
        """Return what the report of a solve from scratch tells, which takes a few more solves."""
        _, info = self.api.solve(self.A, B, kind=self.kind, return_info=True)
        names = ("method", "ordering", "refinement_steps", "perturbed_pivots", "growth")
        return {"scratch_" + name: getattr(info, name) for name in names}

    def close(self):
        self.factored = None

    def facts(self) -> dict:
        analysis = self.analysis
        return {
            "method": analysis.method,
            "ordering": analysis.ordering.method,
            "nnz_factor": int(analysis.nnz_factor),
            "flops": float(analysis.flops),
            "fronts": int(analysis.n_fronts),
            "memory_estimate": {k: int(v) for k, v in analysis.memory.items()},
            "analysis_seconds": {k: float(v) for k, v in analysis.seconds.items()},
        }


class Peer:
    """A foreign solver: from scratch is the phases one after the other."""

    def told(self, B) -> dict:
        return {}

    def scratch(self, B):
        self.analyze()
        self.factor()
        return self.solve(B)

    def close(self):
        pass

    def facts(self) -> dict:
        return {}


class SuperLU(Peer):
    """``scipy.sparse.linalg.splu``: no analysis apart, so a refactorization starts anew."""

    def __init__(self, A, spd: bool):
        from scipy.sparse.linalg import splu

        self.A, self.splu = sp.csc_array(A), splu

    def analyze(self):
        pass

    def factor(self):
        self.factored = self.splu(self.A)

    refactor = factor

    def solve(self, B):
        return self.factored.solve(B)

    def facts(self):
        return {"nnz_factor": int(self.factored.L.nnz + self.factored.U.nnz)}


class Cholmod(Peer):
    """CHOLMOD through scikit-sparse, with its own choice of ordering and of supernodes."""

    def __init__(self, A, spd: bool):
        from sksparse import cholmod

        self.cholmod, self.A = cholmod, sp.csc_matrix(A)

    def analyze(self):
        self.symbolic = self.cholmod.analyze(self.A)

    def factor(self):
        self.factored = self.symbolic.cholesky(self.A)

    def refactor(self):
        self.factored.cholesky_inplace(self.A)

    def solve(self, B):
        return self.factored(B)


class Pardiso(Peer):
    """MKL PARDISO by its C interface: phases 11, 22 and 33 apart, and every matrix type.

    ``structure`` picks the type: "spd" (2, 4), "symmetric" (-2, 6) or "general" (11, 13), the
    real and the complex one; by default "spd" where A is, else "general".
    """

    TYPES: ClassVar = {"spd": (2, 4), "symmetric": (-2, 6), "general": (11, 13)}
    ERRORS: ClassVar = {
        -2: "not enough memory",
        -3: "reordering failed",
        -4: "zero pivot or not positive definite",
    }

    def __init__(self, A, spd: bool, structure: str | None = None):
        from pypardiso import PyPardisoSolver

        self.mkl = ctypes.CDLL(PyPardisoSolver().libmkl._name)  # with no argument types set
        structure = structure or ("spd" if spd else "general")
        self.mtype = self.TYPES[structure][np.iscomplexobj(A)]
        A = sp.csr_array(A)
        if not np.diff(A.indptr).all():
            raise ValueError("PARDISO ends the process on an empty row")
        if structure != "general":
            A = upper_triangle(A)
        A.sort_indices()
        self.n, self.data = A.shape[0], A.data
        self.indptr, self.indices = A.indptr.astype(np.int32), A.indices.astype(np.int32)
        self.start()

    def start(self):
        self.handle = np.zeros(64, np.int64)
        self.iparm = np.zeros(64, np.int32)
        self.mkl.pardisoinit(
            self.handle.ctypes, ctypes.byref(ctypes.c_int(self.mtype)), self.iparm.ctypes
        )
        self.iparm[34] = 1  # zero-based indices

    def call(self, phase: int, B=None, X=None):
        """Run one phase; B and X are n × k in Fortran order."""
        integers = {"maxfct": 1, "mnum": 1, "mtype": self.mtype, "phase": phase, "n": self.n}
        head = [ctypes.byref(ctypes.c_int(v)) for v in integers.values()]
        columns = 1 if B is None or B.ndim == 1 else B.shape[1]
        error = ctypes.c_int(0)
        address = [None if v is None else v.ctypes.data_as(ctypes.c_void_p) for v in (B, X)]
        self.mkl.pardiso(
            self.handle.ctypes,
            *head,
            *(v.ctypes.data_as(ctypes.c_void_p) for v in (self.data, self.indptr, self.indices)),
            None,
            ctypes.byref(ctypes.c_int(columns)),
            self.iparm.ctypes,
            ctypes.byref(ctypes.c_int(0)),
            *address,
            ctypes.byref(error),
        )
        if error.value:
            reason = self.ERRORS.get(error.value, "see its documentation")
            raise RuntimeError(f"PARDISO error {error.value}: {reason}")

    def analyze(self):
        self.call(11)

    def factor(self):
        self.call(22)

    refactor = factor

    def solve(self, B):
        B = np.asarray(B, dtype=self.data.dtype, order="F")
        X = np.empty_like(B)
        self.call(33, B, X)
        return X

    def scratch(self, B):
        self.start()
        return super().scratch(B)

    def close(self):
        self.call(-1)

    def facts(self):
        # 1-based iparm 18: entries of the factors; 14: perturbed pivots.
        return {
            "nnz_factor": int(self.iparm[17]),
            "perturbed_pivots": int(self.iparm[13]),
            "mtype": self.mtype,
        }


class Mumps(Peer):
    """MUMPS in sequence through python-mumps, ordered by METIS where it has that; LU or LDLᵀ.

    Its threshold is 0.01, as ours.
    """

    def __init__(self, A, spd: bool, symmetric: bool = False):
        import mumps

        self.context, self.A, self.symmetric = mumps.Context(), sp.coo_array(A), symmetric
        has = mumps.possible_orderings()
        self.ordering = "metis" if "metis" in has else "auto"

    def analyze(self):
        self.context.set_matrix(self.A, symmetric=self.symmetric)
        self.context.analyze(ordering=self.ordering)

    def factor(self):
        self.context.factor(reuse_analysis=True, pivot_tol=0.01)

    refactor = factor

    def solve(self, B):
        return self.context.solve(B)

    def facts(self):
        found = self.context.mumps_instance.infog
        return {"nnz_factor": int(found[29]), "ordering": self.ordering, "delayed": int(found[13])}


class Klu(Peer):
    """KLU by its C interface, in the library that kvxopt brings, with its default parameters."""

    def __init__(self, A, spd: bool):
        import kvxopt

        folder = Path(kvxopt.__file__).parent.with_name("kvxopt.libs")
        self.library = ctypes.CDLL(str(next(folder.glob("libklu-*.so*"))))
        A = sp.csc_array(A)
        A.sort_indices()
        self.indptr, self.indices = A.indptr.astype(np.int32), A.indices.astype(np.int32)
        complex_ = A.dtype.kind == "c"
        self.data = A.data.astype(complex if complex_ else float)
        self.letter = "z_" if complex_ else ""
        self.common = ctypes.create_string_buffer(4096)  # larger than a klu_common
        self.library.klu_defaults(self.common)

    def call(self, name: str, *arguments):
        function = getattr(self.library, f"klu_{name}")
        function.restype = ctypes.c_void_p
        result = function(*arguments, self.common)
        if not result:
            raise RuntimeError(f"KLU could not {name}")
        return ctypes.c_void_p(result)

    def analyze(self):
        n, pattern = self.indptr.size - 1, (self.indptr.ctypes, self.indices.ctypes)
        self.symbolic = self.call("analyze", n, *pattern)

    def _numeric(self, name: str, *more):
        arrays = (v.ctypes for v in (self.indptr, self.indices, self.data))
        return self.call(self.letter + name, *arrays, self.symbolic, *more)

    def factor(self):
        self.numeric = self._numeric("factor")

    def refactor(self):
        self._numeric("refactor", self.numeric)

    def solve(self, B):
        X = np.array(B, self.data.dtype, order="F")
        columns = 1 if X.ndim == 1 else X.shape[1]
        factors = self.symbolic, self.numeric
        self.call(self.letter + "solve", *factors, X.shape[0], columns, X.ctypes)
        return X


class Umfpack(Peer):
    """UMFPACK through kvxopt, with its default parameters; it pivots anew in a refactorization."""

    def __init__(self, A, spd: bool):
        from kvxopt import matrix, spmatrix, umfpack

        self.library, self.dense = umfpack, matrix
        coo = sp.coo_array(A)
        entries = (matrix(v.tolist()) for v in (coo.data, coo.row, coo.col))
        self.A = spmatrix(*entries, A.shape, "z" if coo.dtype.kind == "c" else "d")

    def analyze(self):
        self.symbolic = self.library.symbolic(self.A)

    def factor(self):
        self.numeric = self.library.numeric(self.A, self.symbolic)

    refactor = factor

    def solve(self, B):
        X = self.dense(B)
        self.library.solve(self.A, self.numeric, X)
        return np.asarray(X).reshape(B.shape, order="F")


def upper_triangle(A):
    """Return the upper triangle with every diagonal entry stored, as PARDISO wants it."""
    coo = sp.triu(A, format="coo")
    diagonal = np.arange(A.shape[0])
    rows, columns = np.append(coo.row, diagonal), np.append(coo.col, diagonal)
    data = np.append(coo.data, np.zeros(A.shape[0], A.dtype))
    return sp.csr_array(sp.coo_array((data, (rows, columns)), shape=A.shape))


def mkl_as_blas() -> dict:
    """Return the environment in which a library linked to the system's BLAS calls MKL instead."""
    found = sorted(Path(sys.prefix, "lib").glob("libmkl_rt.so*"))
    return {"LD_PRELOAD": str(found[0]), "LD_LIBRARY_PATH": str(found[0].parent)} if found else {}


def _lacks_mkl() -> str:
    return "" if mkl_as_blas() else "mkl"


@dataclass(frozen=True)
class Solver:
    """How to build a solver, which module it needs, what matrices it takes, if it uses threads.

    ``takes`` holds the kinds of `problems.kind_of`: "spd", "symmetric" and "general"; ``lacks``
    returns what else is not installed here.
    """

    build: Callable
    needs: str
    takes: tuple[str, ...] = ("spd", "symmetric", "general")
    options: dict = field(default_factory=dict)
    environment: Callable[[], dict] = dict
    threaded: bool = True
    lacks: Callable[[], str] = str

    def missing(self) -> str:
        """Return the name of what is not installed here, or nothing."""
        return self.lacks() if importlib.util.find_spec(self.needs) else self.needs


SOLVERS = {
    "frontal": Solver(Frontal, "numba"),
    "frontal-lu": Solver(Frontal, "numba", ("spd", "symmetric"), {"kind": "general"}),
    "frontal-ldl": Solver(Frontal, "numba", ("spd",), {"kind": "symmetric"}),
    "cholmod": Solver(Cholmod, "sksparse", ("spd",)),
    "cholmod-mkl": Solver(Cholmod, "sksparse", ("spd",), {}, mkl_as_blas, lacks=_lacks_mkl),
    "pardiso": Solver(Pardiso, "pypardiso"),
    "pardiso-lu": Solver(Pardiso, "pypardiso", ("spd",), {"structure": "general"}),
    "pardiso-sym": Solver(Pardiso, "pypardiso", ("symmetric",), {"structure": "symmetric"}),
    "mumps": Solver(Mumps, "mumps", ("symmetric", "general"), threaded=False),
    "mumps-sym": Solver(Mumps, "mumps", ("symmetric",), {"symmetric": True}, threaded=False),
    "klu": Solver(Klu, "kvxopt", threaded=False),
    "umfpack": Solver(Umfpack, "kvxopt", threaded=False),
    "superlu": Solver(SuperLU, "scipy", threaded=False),
}
