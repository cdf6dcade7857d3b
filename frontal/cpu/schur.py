"""The dense Schur complement of a factorization, and substitutions before and after it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._typing import Untyped
from ..backend.protocol import SchurPivotFailure
from ..compile.jit import jit
from ..symbolic.phase import Symbolic
from . import shared_state
from .assembly import HostWorkspace
from .blas_limit import single_threaded_blas
from .by_reference import keep_alive, reference
from .residual import as_rows
from .substitution import Substitution
from .sweeps import solve_backward, solve_forward, triangular_factors


class SchurBlock(NamedTuple):
    """The last front of a factorization after its assembly.

    Attributes
    ----------
    values : (k, k) array
        The Schur complement of the scaled matrix, or its lower triangle.
    rows, columns : (k,) int32 arrays
        Its rows and columns in A.
    replaced : int
        Number of pivots that were replaced before.
    """

    values: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    replaced: int


def schur_block(
    symbolic: Symbolic, work: HostWorkspace, nulls: np.ndarray, perm: np.ndarray
) -> SchurBlock | None:
    """Return the Schur complement of a factorization, if its analysis has one.

    Parameters
    ----------
    symbolic : Symbolic
    work : HostWorkspace
    nulls, perm : int32 arrays
        Null columns of the factor, and its elimination order.

    Raises
    ------
    SchurPivotFailure
        If a column before the Schur complement is null.
    """
    if symbolic.schur is None:
        return None
    k = symbolic.schur.size
    before = symbolic.n - k
    absent = nulls[nulls < before]
    if absent.size:
        raise SchurPivotFailure(perm[absent])
    replaced = int(work.state[shared_state.REPLACED_BEFORE_SCHUR if k else shared_state.PERTURBED])
    values = work.schur.reshape(k, k).T
    return SchurBlock(values, symbolic.row_perm[before:], symbolic.perm[before:], replaced)


def columns_without_pivots(symbolic: Symbolic, work: HostWorkspace) -> np.ndarray:
    """Return the columns of A for which the front that failed has no pivots."""
    s, delays, start = ~int(work.state[shared_state.FAILURE]), work.delays, symbolic.plan.start
    k, done = start[s + 1] - start[s] + delays.received[s], delays.eliminated[s]
    listed = delays.listed[s]
    if listed >= 0:
        names = delays.names[listed + done : listed + k]
    else:
        names = start[s] + work.pivots[start[s] + done : start[s] + k]
    return symbolic.perm[np.where(names < 0, ~names, names)]  # null columns are marked


class SchurSubstitution:
    """Substitutions over all fronts except the last one.

    Parameters
    ----------
    solver : Substitution
        Of A.
    symbolic : Symbolic
        Of the factor.
    """

    def __init__(self, solver: Substitution, symbolic: Symbolic) -> None:
        k = 0 if symbolic.schur is None else symbolic.schur.size
        self._solver, self._before = solver, symbolic.n - k
        self.rows, self.columns = symbolic.row_perm[self._before :], symbolic.perm[self._before :]
        factors: tuple[Untyped, ...] = solver.factors  # of `TriangularFactors`
        panel, diagonal, coupling = factors[3], factors[6], factors[7]
        panel = panel[: panel.size - (k > 0)]
        indefinite = diagonal[: self._before], coupling[: self._before]
        self._fields = (*factors[:3], panel, *factors[4:6], *indefinite)
        self._fields += factors[8:]

    def condense(self, B: np.ndarray) -> np.ndarray:
        """Return b2 - A21 A11^-1 b1, (k, c), of the scaled matrix, for B (n, c)."""
        return self._run(B, np.empty((0, 0), B.dtype), False)[0]

    def expand(self, xs: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Return x, (n, c), with scaled x2 = xs, (k, c), and x1 = A11^-1 (b1 - A12 x2)."""
        return self._run(B, xs, True)[1]

    def _run(self, B: np.ndarray, xs: np.ndarray, expanding: bool) -> tuple[np.ndarray, np.ndarray]:
        n, dtype, before = self._solver.n, self._solver.dtype, self._before
        rhs, inner = as_rows(B), as_rows(xs.astype(dtype, copy=False))
        g = np.empty((0 if expanding else rhs.shape[0], n - before), dtype)
        X = np.empty((rhs.shape[0] if expanding else 0, n), dtype)
        fields = *self._fields, self._solver.most(rhs.shape[0])
        with single_threaded_blas():
            _sweep_around(fields, before, expanding, rhs, inner, g, X)
        return g.T, X.T


@jit
def sweep_around_schur(fields, before, expanding, B, xs, g, X):
    """Run the sweeps of `SchurSubstitution`: forward to g, or forward and backward to X."""
    factors = triangular_factors(fields)
    by_reference = reference(factors)
    most, n, panels = factors.most, B.shape[1], factors.panels
    width = min(most, B.shape[0])
    x, buffer = np.empty(n * width, panels.dtype), np.empty(factors.widest * width, panels.dtype)
    for first in range(0, B.shape[0], most):
        last = min(first + most, B.shape[0])
        count = last - first
        vectors = x[: n * count]
        solve_forward(by_reference, False, False, B[first:last], vectors, buffer)
        if not expanding:
            for c in range(count):
                for i in range(n - before):
                    g[first + c, i] = vectors[(before + i) * count + c]
            continue
        for c in range(count):
            for i in range(n - before):
                vectors[(before + i) * count + c] = xs[first + c, i]
        solve_backward(by_reference, False, False, vectors, X[first:last], buffer)
    keep_alive(factors)


_sweep_around = sweep_around_schur
