"""Solutions of many systems of one pattern on the CPU: one compiled loop, threads over systems.

Each system is solved and refined as in `factor.refine`, with its own condition number. Systems that
may need a warning are reported, and handled by `Factor`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compile.atomics import fetch_add
from ..compile.jit import allocating, inner, jit
from ..compile.tile_queue import WORD
from ..cpu.blas import routines
from ..cpu.by_reference import keep_alive, reference
from ..cpu.residual import measure, merit, normwise, weights
from ..cpu.shared_state import INTERRUPT
from ..cpu.small.one_system import EntryPattern
from ..cpu.small.solve import Factors, condition_of, substitute_by, weighted_norm
from ..cpu.sweeps import MAX_LOOP_PANEL_ENTRIES
from ..numeric.backward_error import limits_of
from ..numeric.condition import CERTIFIED, ESTIMATED, MAX_SILENT_PRODUCT, enough
from ..numeric.linear_system import eps_of
from ..numeric.thresholds import THRESHOLDS, margin_of
from ..symbolic.phase import Symbolic
from .factorize import BatchArrays, on_threads

_STEPS, _WARNED = THRESHOLDS.corrections, THRESHOLDS.warned
_WIDTH = 32  # right-hand sides in one call of BLAS
_MIN_BLAS_RHS = 16  # right-hand sides from which small fronts are solved in such blocks, too


class Report(NamedTuple):
    """Quality of the solution of each system.

    Attributes
    ----------
    error : (batch,) float64 array
        Largest normwise backward error.
    steps : (batch,) int64 array
        Accepted corrections.
    condition : (batch,) float64 array
        Of the system for all right-hand sides, or of the solution if the former is too large.
    clean : (batch,) bool array
        The system needs no warning.
    """

    error: np.ndarray
    steps: np.ndarray
    condition: np.ndarray
    clean: np.ndarray

    @classmethod
    def empty(cls, count: int) -> Report:
        """Return the report of systems that were not solved."""
        error, condition = np.full((2, count), np.nan)
        return cls(error, np.zeros(count, np.int64), condition, np.zeros(count, np.bool_))


class BatchConditions(NamedTuple):
    """Condition numbers of the current factors, (2, batch): of A, and of A^T or A^H.

    Attributes
    ----------
    condition, counted : float64 arrays
        Fields `value` and `counted` of `numeric.condition.Condition`; NaN if not computed.
    """

    condition: np.ndarray
    counted: np.ndarray

    @classmethod
    def empty(cls, count: int) -> BatchConditions:
        """Return NaN for new factors."""
        return cls(*np.full((2, 2, count), np.nan))


@inner
def _normwise(sizes, norm):
    """Return the largest normwise backward error of the columns."""
    worst = 0.0
    for c in range(sizes.shape[1]):
        norms = np.float64(sizes[0, c]), np.float64(sizes[1, c]), np.float64(sizes[2, c])
        worst = max(worst, normwise(norm, *norms))
    return worst


@allocating
def _merit(sizes, norm, by_component, limits):
    """Return the error of each column in units of the limit for refinement."""
    errors = np.empty(sizes.shape[1])
    for c in range(errors.size):
        errors[c] = merit(sizes, c, norm, by_component, limits)
    return errors


@allocating
def _refine(factors, op, matrix, by_component, norm, limits, B, X, R, sizes):
    """Correct X while errors halve; return the values of `measure`, and the number of steps."""
    indptr, indices, data, flipped = matrix
    D, T, S = np.empty_like(X), np.empty_like(X), np.empty_like(R)
    trial_sizes, taken = np.empty_like(sizes), 0
    before = _merit(sizes, norm, by_component, limits)
    for _ in range(_STEPS):
        if not (before > 1).any():
            break
        substitute_by(factors, op[0], op[1], R, D)
        for c in range(X.shape[0]):
            for j in range(X.shape[1]):
                T[c, j] = X[c, j] + D[c, j]
        measure(indptr, indices, data, flipped, by_component, norm, limits, T, B, S, trial_sizes)
        after = _merit(trial_sizes, norm, by_component, limits)
        better, halved = False, False
        for c in range(X.shape[0]):
            if after[c] < before[c]:
                better, halved = True, halved or after[c] <= before[c] / 2
                X[c], R[c], before[c] = T[c], S[c], after[c]
        taken += better
        if not halved:
            break
    error, fine = measure(
        indptr, indices, data, flipped, by_component, norm, limits, X, B, R, sizes
    )
    return error, fine, taken


@allocating
def _factors(structure, numbers, i, sides):
    """Return the `Factors` of system i; `sides` are the permutations of rows and columns of A."""
    start, pointer, rows, panel, place, routine, kind, widest, most = structure
    panels, coupling = numbers.panels[i], numbers.subdiagonal[i]
    return Factors(
        start, pointer, rows, panel, panels, numbers.pivots[i],
        panels[place] if kind[2] else coupling, coupling,
        routine[0], routine[1], routine[2], routine[3], kind[0], kind[1], kind[2], kind[3],
        sides[0], numbers.row[i], sides[1], numbers.column[i], widest, most,
    )  # fmt: skip


@jit
def _solve_each(
    structure, numbers, sides, op, pattern, by_component, limits, enough, margin, most, data,
    known, B, X, report, wide, systems, ticket,
):  # fmt: skip
    """Solve systems taken by `ticket` until none is left."""
    k, n, side = X.shape[1], X.shape[2], np.int64(op[0])
    R, Z = np.empty((k, n), X.dtype), np.empty((1, n), X.dtype)
    sizes, w, how = np.empty((5, k), X.real.dtype), np.empty(n), CERTIFIED
    while ticket[INTERRUPT] == 0:
        t = fetch_add(ticket, WORD, 1)
        if t >= systems.size:
            break
        i = systems[t]
        b, x = B[i if B.shape[0] > 1 else 0], X[i]
        norm = numbers.norms[i, 1 if op[0] else 0]
        factors = _factors(structure, numbers, i, sides)
        by, matrix = reference(factors), (pattern.indptr, pattern.indices, data[i], op[0])
        substitute_by(by, op[0], op[1], b, x)
        how_measured, taken = (by_component, norm, limits), 0
        error, fine = measure(*matrix, *how_measured, x, b, R, sizes)
        if not fine:
            error, fine, taken = _refine(by, op, matrix, *how_measured, b, x, R, sizes)
        report.error[i] = _normwise(sizes, norm)
        report.steps[i], report.clean[i] = taken, False
        if fine:
            if not known.counted[side, i] >= 0:
                value, certified = condition_of(by, op[0], op[1], matrix, how, enough, wide, Z)
                how = CERTIFIED if certified else ESTIMATED  # a failed bound is not tried again
                known.condition[side, i] = value
                known.counted[side, i] = value if certified else margin * value
                if not certified and value > most:
                    known.counted[side, i] = np.inf
            error, condition = max(error, limits[7]), known.condition[side, i]
            clean = known.counted[side, i] * error <= MAX_SILENT_PRODUCT
            if not clean:
                weights(*matrix, x, b, sizes[1], error, w)
                condition = weighted_norm(by, op[0], w, _WARNED / (margin * error), wide)
                clean = condition * error <= _WARNED
            report.condition[i], report.clean[i] = condition, clean
        keep_alive(factors)


def solve(
    symbolic: Symbolic,
    panel: np.ndarray,
    pattern: EntryPattern,
    numbers: BatchArrays,
    known: BatchConditions,
    trans: str,
    B: np.ndarray,
    systems: np.ndarray,
) -> tuple[np.ndarray, Report]:
    """Solve systems with their factors.

    Parameters
    ----------
    symbolic : Symbolic
    panel : (f + 1,) int64 array
        Offsets of the panels of the fronts.
    pattern, numbers
        As in `factorize`.
    known : BatchConditions
        Condition numbers of these factors; updated.
    trans : {"N", "T", "H"}
    B : (batch, k, n) or (1, k, n) array
    systems : int64 array
        Systems to solve.

    Returns
    -------
    X : (batch, k, n) array
        NaN for other systems.
    report : Report
    """
    plan, method, dtype = symbolic.plan, symbolic.method, numbers.panels.dtype
    count, k = numbers.values.shape[0], B.shape[1]
    X, report = np.full((count, k, symbolic.n), np.nan, B.dtype), Report.empty(count)
    if not (systems.size and k and symbolic.n):
        report.error[systems], report.clean[systems] = 0.0, True
        return X, report
    widest, largest = symbolic.largest
    conjugate = method.one_triangle and method.adjoint and dtype.kind == "c"
    structure = (
        *(plan.start, plan.pointer, plan.rows, panel, pattern.place, tuple(routines(dtype))),
        (method.one_triangle, method.pivots, method.indefinite, conjugate),
        *(max(1, widest), _WIDTH if largest > MAX_LOOP_PANEL_ENTRIES or k >= _MIN_BLAS_RHS else 1),
    )
    data = numbers.values.astype(B.dtype, copy=False)
    data = data.conj() if trans == "H" else data
    arguments = (
        *(structure, numbers, (symbolic.row_perm, symbolic.perm), (trans != "N", trans == "H")),
        *(pattern, method.scaling, limits_of(dtype, B.dtype), enough(B.dtype), margin_of(B.dtype)),
        THRESHOLDS.single / eps_of(dtype) if eps_of(dtype) > eps_of(B.dtype) else np.inf,
        *(data, known, B, X, report),
        *(np.empty(0, np.complex128 if B.dtype.kind == "c" else np.float64), systems),
    )
    flops = 8.0 * panel[-1] * k * systems.size

    def run(ticket: np.ndarray) -> None:
        _solve_each(*arguments, ticket)

    on_threads(run, systems.size, flops)
    return X, report
