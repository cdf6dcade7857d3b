"""Solutions of many systems of one pattern on the CPU: one compiled loop, threads over systems.

Each system is solved, measured, refined and its condition estimated as `factor.refine` and
`factor.condition` do it. What is not certain to need no further word is told, and left to them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._jit import allocating, inner, jit
from ..accuracy import COMPONENTWISE, NORMWISE, borders, eps_of
from ..cpu.blas import routines
from ..cpu.residual import measure, weights
from ..cpu.single import Pattern
from ..cpu.team import INTERRUPT
from ..cpu.triangular import SMALL, substitute
from ..native import fetch_add
from ..phases import WORD
from ..symbolic.symbolic import Symbolic
from .factorize import Numbers, on_threads

UNKNOWN = -9999  # a decade of |A||x|/|b| for which no condition number was estimated
_STEPS = 5  # of refinement, as `refine.refine` takes by default
_SMALL = 1e-5  # an error of solutions that is far from what is warned of,
_WORST = 0.01  # which is this, as in `factor.verdict`
_WIDTH = 32  # right-hand sides solved together by BLAS,
_MANY = 16  # by which so many are solved in small fronts too
_FORMED = 4  # orders up to which all columns of an inverse are formed
_VECTORS, _TURNS = 2, 3


class Report(NamedTuple):
    """What is found of the solutions of each system.

    Attributes
    ----------
    error : (batch,) float64 array
        Largest normwise backward error.
    steps : (batch,) int64 array
        Corrections kept.
    condition : (batch,) float64 array
        Of the solution; an estimate that is small is less by a factor of about 3.
    clean : (batch,) bool array
        No word is needed.
    """

    error: np.ndarray
    steps: np.ndarray
    condition: np.ndarray
    clean: np.ndarray

    @classmethod
    def empty(cls, count: int) -> Report:
        """That of systems that were not solved."""
        error, condition = np.full((2, count), np.nan)
        return cls(error, np.zeros(count, np.int64), condition, np.zeros(count, np.bool_))


class Known(NamedTuple):
    """What was estimated at earlier solutions, (2, batch) each: with A, and with A^T or A^H.

    Attributes
    ----------
    decade : int64 array
        Of |A||x|/|b|, `UNKNOWN` where nothing was estimated.
    condition : float64 array
    """

    decade: np.ndarray
    condition: np.ndarray

    @classmethod
    def nothing(cls, count: int) -> Known:
        """For new factors."""
        return cls(np.full((2, count), UNKNOWN, np.int64), np.full((2, count), np.nan))


@allocating
def _solve(of, numbers, i, sides, transposed, conjugated, B, X):
    """Solutions by the factors alone; `sides` are of the rows and columns of A."""
    start, pointer, rows, panel, place, routine, kind, widest, most = of
    panels, coupling = numbers.panels[i], numbers.coupling[i]
    diagonal = panels[place] if kind[2] else coupling
    into, left, out, right = sides[0], numbers.row[i], sides[1], numbers.column[i]
    if transposed:
        into, left, out, right = out, right, into, left
    substitute(
        start, pointer, rows, panel, panels, numbers.pivots[i], diagonal, coupling,
        routine[0], routine[1], routine[2], routine[3], kind[0], kind[1], kind[2], kind[3],
        transposed, conjugated, into, left, out, right, widest, most, B, X,
    )  # fmt: skip


@allocating
def _merit(sizes, norm, badly_scaled, limits):
    """Error of each column in units of what is good enough."""
    merit = np.empty(sizes.shape[1])
    for c in range(merit.size):
        residual, solution = np.float64(sizes[0, c]), np.float64(sizes[1, c])
        scale = norm * solution + np.float64(sizes[2, c])
        error = residual / scale if scale > 0 else residual
        merit[c] = error / limits[0] if np.isfinite(error) else np.inf
        if badly_scaled:
            merit[c] = max(merit[c], np.float64(sizes[3, c]) / limits[1])
    return merit


@allocating
def _refine(of, numbers, i, sides, op, matrix, B, X, R, sizes):
    """Corrections while they halve the error; returns what `measure` says, and how many."""
    indptr, indices, data, flipped, badly_scaled, norm, limits = matrix
    D, T, S = np.empty_like(X), np.empty_like(X), np.empty_like(R)
    found, taken = np.empty_like(sizes), 0
    merit = _merit(sizes, norm, badly_scaled, limits)
    for _ in range(_STEPS):
        if not (merit > 1).any():
            break
        _solve(of, numbers, i, sides, op[0], op[1], R, D)
        for c in range(X.shape[0]):
            for j in range(X.shape[1]):
                T[c, j] = X[c, j] + D[c, j]
        measure(indptr, indices, data, flipped, badly_scaled, norm, limits, T, B, S, found)
        after = _merit(found, norm, badly_scaled, limits)
        better, halved = False, False
        for c in range(X.shape[0]):
            if after[c] < merit[c]:
                better, halved = True, halved or after[c] <= merit[c] / 2
                X[c], R[c], merit[c] = T[c], S[c], after[c]
        taken += better
        if not halved:
            break
    told = measure(indptr, indices, data, flipped, badly_scaled, norm, limits, X, B, R, sizes)
    return told, taken


@inner
def _begin(V):
    """The vectors that `Probes.first` gives."""
    n = V.shape[1]
    for j in range(n):
        if n <= _FORMED:
            V[j, j] = 1
        else:
            growing = (1 + j / (n - 1)) / (1.5 * n)
            V[0, j], V[1, j] = 1 / n, -growing if j % 2 else growing


@inner
def _signs(w, Y, S):
    """Signs of Y times the weights; the largest 1-norm of a row of Y times them, and which."""
    most, which = -1.0, 0
    for c in range(Y.shape[0]):
        total = 0.0
        for j in range(Y.shape[1]):
            size = np.float64(np.abs(Y[c, j]))
            total += w[j] * size
            S[c, j] = w[j] * (Y[c, j] / size) if size > 0 else w[j]
        if total > most or total != total:
            most, which = total, c
    return most, which


@inner
def _gains(Z):
    """Largest modulus of the columns of Z, and those of the largest two; NaN where there is one."""
    largest, other, first, second = -1.0, -1.0, 0, 0
    for j in range(Z.shape[1]):
        gain = 0.0
        for c in range(Z.shape[0]):
            size = np.float64(np.abs(Z[c, j]))
            gain = size if size > gain or size != size else gain
        if gain > largest or gain != gain:
            other, largest, second, first = largest, gain, first, j
        elif gain > other:
            other, second = gain, j
    return largest, first, second


@allocating
def _condition(of, numbers, i, sides, op, matrix, B, X, solution, error):
    """As `solution_condition`, roughly where it is small, by the blocks of `one_norm`."""
    n = X.shape[1]
    w = np.empty(n)
    weights(matrix[0], matrix[1], matrix[2], matrix[3], X, B, solution, error, w)
    count = n if n <= _FORMED else _VECTORS
    V, Y = np.zeros((count, n), X.dtype), np.empty((count, n), X.dtype)
    S = np.empty((count, n), X.dtype)
    _begin(V)
    found, flip = -1.0, op[0]  # op(A), but for conjugates, and its adjoint
    for turn in range(_TURNS):
        _solve(of, numbers, i, sides, not flip, not flip, V, Y)
        most, which = _signs(w, Y, S)
        if most < found:
            break
        found = most
        if turn == _TURNS - 1 or n <= _FORMED or not found < np.inf:
            break
        _solve(of, numbers, i, sides, flip, flip, S, Y)
        largest, first, second = _gains(Y)
        own = X.dtype.type(0)
        for j in range(n):
            own += np.conj(Y[which, j]) * V[which, j]
        if largest <= np.abs(own):
            break
        found = max(found, largest) if largest == largest else np.inf
        if found * error <= _SMALL or not found < np.inf:
            break
        V[:] = 0
        V[0, first] = V[1, second] = 1
    return found if found == found else np.inf


@allocating
def _estimated(of, numbers, i, sides, op, matrix, B, X, sizes, told, known, eps):
    """The condition number that holds for solutions, from before or made anew."""
    which, error = np.int64(op[0]), max(told[0], eps)
    decade = np.int64(round(np.log10(told[1]))) if told[1] > 0 else np.int64(-400)
    if abs(known.decade[which, i] - decade) > 1:
        used = False
        for c in range(sizes.shape[1]):
            used |= sizes[1, c] > 0
        if not used:
            return 0.0
        of_x = matrix, B, X, sizes[1], error
        known.condition[which, i] = _condition(of, numbers, i, sides, op, *of_x)
        known.decade[which, i] = decade
    return known.condition[which, i]


@jit
def _solve_each(
    of, numbers, sides, op, pattern, more, data, known, B, X, report, wide, systems, ticket
):
    """Solve systems until none is left that nobody has taken."""
    badly_scaled, limits, eps = more
    k, n = X.shape[1], X.shape[2]
    R, sizes = np.empty((k, n), X.dtype), np.empty((4, k), wide.dtype)
    while ticket[INTERRUPT] == 0:
        t = fetch_add(ticket, WORD, 1)
        if t >= systems.size:
            break
        i = systems[t]
        b, x = B[i if B.shape[0] > 1 else 0], X[i]
        norm = numbers.norms[i, 1 if op[0] else 0]
        matrix = pattern.indptr, pattern.indices, data[i], op[0], badly_scaled, norm, limits
        _solve(of, numbers, i, sides, op[0], op[1], b, x)
        told, taken = measure(*matrix, x, b, R, sizes), 0
        if not told[2]:
            told, taken = _refine(of, numbers, i, sides, op, matrix, b, x, R, sizes)
        report.error[i], report.steps[i], report.clean[i] = told[0], taken, False
        if told[2]:
            of_x = matrix, b, x, sizes, told, known, eps
            condition = _estimated(of, numbers, i, sides, op, *of_x)
            report.condition[i] = condition
            report.clean[i] = condition * max(told[0], eps) <= _WORST


def solve(
    symbolic: Symbolic,
    panel: np.ndarray,
    pattern: Pattern,
    numbers: Numbers,
    known: Known,
    trans: str,
    B: np.ndarray,
    systems: np.ndarray,
) -> tuple[np.ndarray, Report]:
    """Solve systems with their factors.

    Parameters
    ----------
    symbolic : Symbolic
    panel : (f + 1,) int64 array
        Where the panels of each front begin.
    pattern, numbers
        As they were factorized.
    known : Known
        Changed.
    trans : {"N", "T", "H"}
    B : (batch, k, n) or (1, k, n) array
    systems : int64 array
        Those that are solved.

    Returns
    -------
    X : (batch, k, n) array
        NaN for other systems.
    report : Report
    """
    plan, method, dtype = symbolic.plan, symbolic.method, numbers.panels.dtype
    count, k, eps = numbers.values.shape[0], B.shape[1], eps_of(B.dtype)
    X, report = np.full((count, k, symbolic.n), np.nan, B.dtype), Report.empty(count)
    if not (systems.size and k and symbolic.n):
        report.error[systems], report.clean[systems] = 0.0, True
        return X, report
    widest, largest = symbolic.largest
    conjugate = method.one_triangle and method.adjoint and dtype.kind == "c"
    of = (
        *(plan.start, plan.pointer, plan.rows, panel, pattern.place, tuple(routines(dtype))),
        (method.one_triangle, method.pivots, method.indefinite, conjugate),
        *(max(1, widest), _WIDTH if largest > SMALL or k >= _MANY else 1),
    )
    limits = np.array((NORMWISE * eps, COMPONENTWISE * eps, *borders(dtype, B.dtype)))
    data = numbers.values.astype(B.dtype, copy=False)
    data = data.conj() if trans == "H" else data
    arguments = (
        *(of, numbers, (symbolic.row_perm, symbolic.perm), (trans != "N", trans == "H")),
        *(pattern, (method.scaling, limits, eps), data, known, B, X, report),
        *(np.empty(0, np.finfo(B.dtype).dtype), systems),
    )
    flops = 8.0 * panel[-1] * k * systems.size

    def run(ticket: np.ndarray) -> None:
        _solve_each(*arguments, ticket)

    on_threads(run, systems.size, flops)
    return X, report
