"""The determinant of a factorized matrix."""

from __future__ import annotations

import numpy as np

from ..backend.protocol import NumericFactor
from ..compile.jit import jit
from ..numeric.linear_system import eps_of
from .extract import column_positions, row_positions
from .replaced_pivots import require_exact_pivots
from .solve import FactorSolver


def slogdet(factor: NumericFactor) -> tuple[np.number, float]:
    """Return sign (or phase) and logarithm of the modulus of det(A); (0, -inf) with null pivots."""
    method, scaling = factor.symbolic.method, factor.scaling
    if factor.nulls.size:
        return factor.dtype.type(0), -np.inf
    pivots = _pivots(factor)
    size = np.abs(pivots).astype(np.float64)
    with np.errstate(divide="ignore"):
        logdet = float(np.log(size).sum())
    if method.square_root:
        return pivots.dtype.type(1), 2 * logdet
    if scaling is not None:
        logdet -= float(np.log(scaling.row).sum() + np.log(scaling.column).sum())
    phase = np.prod(pivots / np.where(size > 0, size, 1.0))
    if method.inertia(factor.dtype):
        phase = np.sign(np.real(phase))
    elif not method.one_triangle:  # otherwise rows and columns are permuted equally
        for perm in (row_positions(factor), column_positions(factor)):
            phase = phase * permutation_sign(perm)
    return pivots.dtype.type(phase), logdet


def _pivots(factor: NumericFactor) -> np.ndarray:
    """Return the diagonal of L, U or D; for a 2x2 pivot det/e and e, with its subdiagonal e."""
    pivots, coupling = factor.diagonal(), factor.subdiagonal()
    first = np.flatnonzero(coupling)
    if first.size:
        pivots = pivots.copy()
        a, b, e = pivots[first], pivots[first + 1], coupling[first]
        conjugate = e.conj() if factor.symbolic.method.adjoint else e
        pivots[first], pivots[first + 1] = (a / e) * b - conjugate, e
    return pivots


def certain_slogdet(solver: FactorSolver) -> tuple[np.number, float]:
    """Return `slogdet`; raise `InverseInaccurateError` if signed pivots are not those of A."""
    if solver.factor.symbolic.method.signed:
        require_exact_pivots(solver, "determinant")
    return slogdet(solver.factor)


def logdet(solver: FactorSolver) -> float:
    """Return the natural logarithm of det(A); raise ValueError if det(A) is not positive."""
    sign, value = certain_slogdet(solver)
    if not is_positive(sign, solver.factor.symbolic.n):
        raise ValueError(f"det(A) is not positive (its sign is {sign}); use slogdet()")
    return value


def is_positive(sign: np.ndarray | np.number, n: int) -> np.ndarray | np.bool_:
    """Return whether signs, or phases up to rounding, of determinants of order n are positive."""
    return (np.real(sign) > 0) & (np.abs(np.imag(sign)) <= n * eps_of(sign.dtype))


@jit
def permutation_sign(perm):
    """Return +1 for an even permutation, -1 for an odd one."""
    seen = np.zeros(perm.size, np.bool_)
    sign = 1
    for i in range(perm.size):
        j = i
        while not seen[j]:
            seen[j] = True
            j = perm[j]
            if j != i:
                sign = -sign
    return sign
