"""Solutions of many systems of one pattern on the CPU: one compiled loop, threads over systems.

Each system is solved and refined as in `factor.refine`, with its own condition number. Systems that
may need a warning are reported, and handled by `Factor`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compile.atomics import fetch_add
from ..compile.jit import allocating, jit
from ..compile.tile_queue import WORD
from ..cpu.blas import routines
from ..cpu.by_reference import keep_alive, reference
from ..cpu.residual import judge_column, measure, weights
from ..cpu.shared_state import INTERRUPT
from ..cpu.small.one_system import EntryPattern
from ..cpu.small.solve import condition_of, weighted_norm
from ..cpu.substitution import ScaledPermutation, Substitution
from ..cpu.sweeps import TriangularFactors, substitute
from ..numeric.acceptance import limits_of, packed, unpacked
from ..numeric.condition import CERTIFIED, ESTIMATED, MAX_SILENT_PRODUCT, enough
from ..numeric.linear_system import eps_of
from ..numeric.refinement import MAX_STEPS, improved
from ..numeric.thresholds import THRESHOLDS, margin_of
from ..symbolic.phase import Symbolic
from .factorize import BatchArrays, on_threads

_WARNED = THRESHOLDS.warned
_improved = allocating(improved)


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


class SharedData(NamedTuple):
    """What `_solve_each` reads for all systems.

    Attributes
    ----------
    factors : TriangularFactors
        Of the plan; panels, pivots, D and scaling are replaced for each system.
    pattern : EntryPattern
    data : (batch, nnz) array
        Values of op(A), by columns of A.
    transposed, conjugated : bool
        See `substitute`.
    by_component, limits
        See `residual.measure`.
    enough : float
        See `condition_of`.
    margin : float
        See `thresholds.margin_of`.
    most : float
        Estimates of condition numbers above this are not trusted: the factor is less precise.
    wide : (0,) array
        Has the scalar type of an estimate's vectors.
    """

    factors: TriangularFactors
    pattern: EntryPattern
    data: np.ndarray
    transposed: bool
    conjugated: bool
    by_component: bool
    limits: np.ndarray
    enough: float
    margin: float
    most: float
    wide: np.ndarray


@allocating
def _judged(sizes, matrix):
    """Return normwise errors and merits of the columns, (2, k)."""
    by_component, norm, limits = matrix[4], matrix[5], unpacked(matrix[6])
    errors = np.empty((2, sizes.shape[1]))
    for c in range(sizes.shape[1]):
        errors[0, c], errors[1, c], _, _ = judge_column(sizes, c, norm, by_component, limits)
    return errors


@allocating
def _refine(factors, shared, matrix, B, X, R, sizes):
    """Correct X while errors halve; return the values of `measure`, and the number of steps."""
    D, T, S = np.empty_like(X), np.empty_like(X), np.empty_like(R)
    trial_sizes, taken = np.empty_like(sizes), 0
    before = _judged(sizes, matrix)[1]
    for _ in range(MAX_STEPS):
        if not (before > 1).any():
            break
        substitute(factors, shared.transposed, shared.conjugated, R, D)
        for c in range(X.shape[0]):
            for j in range(X.shape[1]):
                T[c, j] = X[c, j] + D[c, j]
        measure(matrix, T, B, S, trial_sizes)
        after = _judged(trial_sizes, matrix)[1]
        better, halved = _improved(before, after)
        for c in range(X.shape[0]):
            if better[c]:
                X[c], R[c], before[c] = T[c], S[c], after[c]
        taken += better.any()
        if not halved.any():
            break
    error, fine = measure(matrix, X, B, R, sizes)
    return error, fine, taken


@allocating
def _factors(shared, numbers, i):
    """Return the `TriangularFactors` of system i."""
    plan, panels, coupling = shared.factors, numbers.panels[i], numbers.subdiagonal[i]
    return TriangularFactors(
        plan.start, plan.pointer, plan.rows, plan.panel, panels, numbers.pivots[i],
        panels[shared.pattern.place] if plan.indefinite else coupling, coupling, plan.routines,
        plan.one_triangle, plan.unit, plan.indefinite, plan.conjugate,
        plan.row_place, numbers.row[i], plan.column_place, numbers.column[i], plan.widest,
        plan.most,
    )  # fmt: skip


@jit
def _solve_each(shared, numbers, known, B, X, report, systems, ticket):
    """Solve systems taken by `ticket` until none is left."""
    k, n, (transposed, conjugated) = X.shape[1], X.shape[2], (shared.transposed, shared.conjugated)
    R, Z = np.empty((k, n), X.dtype), np.empty((1, n), X.dtype)
    sizes, w, how = np.empty((5, k), X.real.dtype), np.empty(n), CERTIFIED
    side, eps = np.int64(transposed), unpacked(shared.limits).eps
    while ticket[INTERRUPT] == 0:
        t = fetch_add(ticket, WORD, 1)
        if t >= systems.size:
            break
        i = systems[t]
        b, x = B[i if B.shape[0] > 1 else 0], X[i]
        norm = numbers.norms[i, 1 if transposed else 0]
        factors = _factors(shared, numbers, i)
        by, taken = reference(factors), 0
        matrix = (
            shared.pattern.indptr, shared.pattern.indices, shared.data[i], transposed,
            shared.by_component, norm, shared.limits,
        )  # fmt: skip
        substitute(by, transposed, conjugated, b, x)
        error, fine = measure(matrix, x, b, R, sizes)
        if not fine:
            error, fine, taken = _refine(by, shared, matrix, b, x, R, sizes)
        report.error[i] = _judged(sizes, matrix)[0].max()
        report.steps[i], report.clean[i] = taken, False
        if fine:
            if not known.counted[side, i] >= 0:
                value, certified = condition_of(
                    by, transposed, conjugated, matrix, how, shared.enough, shared.wide, Z
                )
                how = CERTIFIED if certified else ESTIMATED  # a failed bound is not tried again
                known.condition[side, i] = value
                known.counted[side, i] = value if certified else shared.margin * value
                if not certified and value > shared.most:
                    known.counted[side, i] = np.inf
            error, condition = max(error, eps), known.condition[side, i]
            clean = known.counted[side, i] * error <= MAX_SILENT_PRODUCT
            if not clean:
                weights(matrix, x, b, sizes[1], error, w)
                small = _WARNED / (shared.margin * error)
                condition = weighted_norm(by, transposed, w, small, shared.wide)
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
    count, k = numbers.values.shape[0], B.shape[1]
    X, report = np.full((count, k, symbolic.n), np.nan, B.dtype), Report.empty(count)
    if not (systems.size and k and symbolic.n):
        report.error[systems], report.clean[systems] = 0.0, True
        return X, report
    shared = _shared(symbolic, panel, pattern, numbers, trans, B)
    flops = 8.0 * panel[-1] * k * systems.size

    def run(ticket: np.ndarray) -> None:
        _solve_each(shared, numbers, known, B, X, report, systems, ticket)

    on_threads(run, systems.size, flops)
    return X, report


def _shared(
    symbolic: Symbolic,
    panel: np.ndarray,
    pattern: EntryPattern,
    numbers: BatchArrays,
    trans: str,
    B: np.ndarray,
) -> SharedData:
    """Return the data shared by all systems; see `solve`."""
    dtype, coupling = numbers.panels.dtype, numbers.subdiagonal[0]
    solver = Substitution(  # of the first system
        symbolic,
        panel,
        (numbers.panels[0], numbers.pivots[0], coupling, coupling),
        trans,
        ScaledPermutation(symbolic.row_perm, numbers.row[0]),
        ScaledPermutation(symbolic.perm, numbers.column[0]),
    )
    factors = TriangularFactors._make((*solver.factors, solver.most(B.shape[1])))
    data = numbers.values.astype(B.dtype, copy=False)
    return SharedData(
        factors=factors._replace(routines=routines(dtype)),
        pattern=pattern,
        data=data.conj() if solver.conjugated else data,
        transposed=solver.transposed,
        conjugated=solver.conjugated,
        by_component=symbolic.method.scaling,
        limits=packed(limits_of(dtype, B.dtype)),
        enough=enough(B.dtype),
        margin=margin_of(B.dtype),
        most=THRESHOLDS.single / eps_of(dtype) if eps_of(dtype) > eps_of(B.dtype) else np.inf,
        wide=np.empty(0, np.complex128 if B.dtype.kind == "c" else np.float64),
    )
