"""Solves with L, D, U and permutations of a factor, in the sense of CHOLMOD's systems.

A substitution (`cpu.sweeps`) scales, permutes, interchanges rows front by front, and sweeps with
the factors of the scaled matrix. Those of A are R^-1 L R, R^-1 D R^-1 and R^-1 U C^-1 (`extract`)
for the scaling R of the rows, and C of the columns, in elimination order. These are powers of two,
so that all parts together round as the whole.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from ..backend.protocol import NumericFactor, panel_offsets
from ..cpu.columns.arrays import ColumnPattern, ColumnValues
from ..cpu.columns.substitution import ColumnSubstitution
from ..cpu.part_sweeps import Steps
from ..cpu.substitution import PartialSubstitution, ScaledPermutation, Substitution
from ..errors import SolutionOverflowError
from . import extract
from .replaced_pivots import require_exact_pivots
from .solve import FactorSolver

# The steps of each system. With one triangle U is D L^H, so both names have the same steps.
_STEPS = {
    "LDLt": Steps(True, True, True),
    "LD": Steps(True, True, False),
    "DLt": Steps(False, True, True),
    "D": Steps(False, True, False),
    "Lt": Steps(False, False, True),
    "LU": Steps(True, True, True),
    "U": Steps(False, True, True),
    "L": Steps(True, False, False),
}
_ONE_TRIANGLE = "LDLt", "LD", "DLt", "D", "Lt"
_PERMUTATIONS = "P", "Pt", "Q", "Qt"
_MAX_SHIFT = {"f": 120, "F": 120, "d": 1000, "D": 1000}  # exponents of normal numbers
SYSTEMS = "A", *_STEPS, *_PERMUTATIONS

_PartialSolve = Callable[[np.ndarray], np.ndarray]


class PartSolver:
    """The solves with parts of one factor, on the host.

    A factor on a device is copied to the host once. Solvers of parts are prepared at their first
    use.

    Attributes
    ----------
    solver : FactorSolver
        Of the whole factor.
    """

    def __init__(self, solver: FactorSolver) -> None:
        self.solver = solver
        self._factor, self._host = solver.factor, solver.factor.to_host()
        self._solves: dict[str, _PartialSolve] = {}

    def __call__(self, B: np.ndarray, system: str) -> np.ndarray:
        """Return X, (n, k), for a system of `Factor.solve` other than "A".

        Raises
        ------
        ValueError
            If the method has no such system.
        InverseInaccurateError
            If pivots were replaced.
        SolutionOverflowError
            If X is not finite.
        """
        solve = self._solves.get(system)
        if solve is None:
            self._require_system(system)
            solve = self._solves[system] = self._prepared(system)
        if not B.size:
            return np.empty(B.shape, np.result_type(B.dtype, self._factor.dtype))
        if system in _PERMUTATIONS:
            return solve(B)
        if B.dtype.kind == "c" and self._factor.dtype.kind != "c":
            X = solve(np.asfortranarray(np.real(B))) + 1j * solve(np.asfortranarray(np.imag(B)))
            return _finite(X)
        return _finite(solve(B))

    def deviations(self, Z: np.ndarray) -> np.ndarray:
        """Return P^T L^-H Z for Cholesky: deviations with covariance A^-1, if Z is white noise.

        Rows of Z are in elimination order, those of the result in the order of A.
        """
        solve = self._solves.get("deviations")
        if solve is None:
            solve = self._solves["deviations"] = self._prepared("deviations")
        return _finite(solve(Z))

    def _require_system(self, system: str) -> None:
        """Raise if a system is no name, or not one of the method; if the factor is inexact."""
        method = self._factor.symbolic.method
        names = tuple(name for name in SYSTEMS if method.one_triangle or name not in _ONE_TRIANGLE)
        if system not in names:
            listed = ", ".join(map(repr, names))
            unknown = f"system is {system!r}, but the factors of {method.name} have the systems "
            remedy = "'U' for 'Lt' and 'DLt'; or, if the matrix is symmetric, kind='symmetric'"
            raise ValueError(f"{unknown}{listed}. Try: {remedy}")
        if system not in _PERMUTATIONS:
            require_exact_pivots(self.solver, "solves with parts")

    def _prepared(self, system: str) -> _PartialSolve:
        factor = self._factor
        if system in _PERMUTATIONS:
            return _permutation(factor, system)
        if factor.scaling is None:
            return self._scaled_solver(system, (), ())
        row = factor.scaling.row[np.argsort(extract.row_positions(factor))]
        column = factor.scaling.column[np.argsort(extract.column_positions(factor))]
        by, back = 1 / row if system == "Lt" else row, 1 / row if system == "L" else column
        return _normalized(self._scaled_solver(system, (by,), (back,)))

    def _scaled_solver(
        self, system: str, by: tuple[np.ndarray, ...], back: tuple[np.ndarray, ...]
    ) -> _PartialSolve:
        """Return the solver of a system, or of `deviations`.

        The factors are those of the scaled matrix; `by` and `back` scale right-hand sides and
        solutions, unless they are empty.
        """
        factor, host, symbolic = self._factor, self._host, self._factor.symbolic
        method, identity = symbolic.method, np.arange(symbolic.n, dtype=np.int32)
        if host.triangles is not None:
            sides = ScaledPermutation(identity, *by), ScaledPermutation(identity, *back)
            return _by_columns(*host.triangles, system, *sides)
        steps = _STEPS["Lt" if system == "deviations" else system]
        position = extract.interchanged_positions(factor).astype(np.int32)
        # sweeps with L begin, or end, before the interchanges
        into = position if steps.forward else identity
        out = position if steps.backward and method.one_triangle else identity
        if system == "deviations":
            out = symbolic.perm
        diagonal = factor.diagonal() if method.indefinite else host.subdiagonal
        numbers = host.panels, host.pivots, diagonal, host.subdiagonal
        sides = ScaledPermutation(into, *by), ScaledPermutation(out, *back)
        panel = panel_offsets(symbolic.plan, method)
        return PartialSubstitution(Substitution(symbolic, panel, numbers, "N", *sides), steps)


def _finite(X: np.ndarray) -> np.ndarray:
    """Return X; raise `SolutionOverflowError` if it is not finite."""
    if not np.isfinite(X).all():
        raise SolutionOverflowError(str(X.dtype))
    return X


def _normalized(solve: _PartialSolve) -> _PartialSolve:
    """Return a solver that multiplies columns by powers of two: scaling does not underflow."""

    def normalized(B: np.ndarray) -> np.ndarray:
        largest = np.abs(B).max(axis=0)
        limit = _MAX_SHIFT[B.dtype.char]
        exponent = np.clip(np.frexp(largest)[1], -limit, limit)
        size = np.ldexp(largest.dtype.type(1), exponent)
        X = solve(np.asfortranarray(B / size))
        with np.errstate(over="ignore"):  # refused by the caller
            return X * size

    return normalized


def _permutation(factor: NumericFactor, system: str) -> _PartialSolve:
    """Return the product with Pr, its transpose, Pc or its transpose."""
    rows, columns = extract.row_positions(factor), extract.column_positions(factor)
    index = {"P": np.argsort(rows), "Pt": rows, "Q": columns, "Qt": np.argsort(columns)}[system]
    return lambda B: np.asfortranarray(B[index])


def _by_columns(
    L: sp.csc_array,
    U: sp.csc_array,
    system: str,
    rows: ScaledPermutation,
    columns: ScaledPermutation,
) -> _PartialSolve:
    """Return the solver with triangles by columns, in elimination order."""
    n, dtype = L.shape[0], L.dtype
    lower, upper = sp.csc_array(sp.tril(L, -1)), sp.csc_array(sp.triu(U, 1))
    diagonal, nothing = U.diagonal(), sp.csc_array((n, n), dtype=dtype)
    if system == "L":
        upper, diagonal = nothing, np.ones(n, dtype)
    elif system == "U":
        lower = nothing
    start = [t.indptr.astype(np.int64) for t in (lower, upper)]
    row = [t.indices.astype(np.int32) for t in (lower, upper)]
    pattern = ColumnPattern(
        start[0], row[0], start[1], row[1], start[1][1:], rows.place, rows.place
    )
    values = ColumnValues(lower.data, upper.data, diagonal)
    one_block = np.array([0, n], np.int32)
    sides = rows.place, rows.factors, columns.place, columns.factors
    return ColumnSubstitution(one_block, pattern, values, "N", sides)
