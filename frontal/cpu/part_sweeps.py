"""Substitution with parts of the factors: some of the steps of `sweeps.substitute`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compile.jit import inner, jit
from .by_reference import keep_alive, reference
from .sweeps import conjugate_all, divide, enter, leave, sweep, triangular_factors


class Steps(NamedTuple):
    """The steps of a substitution that a part of the factors needs, in this order.

    Attributes
    ----------
    forward, divide, backward : bool
        Whether to solve with L, with D, and with U, L^T or L^H.
    """

    forward: bool
    divide: bool
    backward: bool


@inner
def _solve_part(factors, steps, B, X, x, buffer):
    """Run `substitute_part` for vectors that are swept together."""
    width, one_triangle, unit = B.shape[0], factors.one_triangle, factors.unit
    conjugate = factors.conjugate
    enter(factors.row_place, factors.row_scale, B, x)
    if steps.forward:
        sweep(factors, x, width, buffer, True, unit, False)
    if steps.divide and factors.indefinite:
        divide(x, width, factors.diagonal, factors.subdiagonal, conjugate)
    if steps.backward:
        if conjugate:  # L^H y = z is L^T conj(y) = conj(z)
            conjugate_all(x)
        sweep(factors, x, width, buffer, one_triangle, one_triangle and unit, True)
        if conjugate:
            conjugate_all(x)
    leave(factors.column_place, factors.column_scale, x, X)


@jit
def substitute_part(fields, steps, B, X):
    """Solve with a part of the factors of A, as `substitute` with some of its steps.

    Parameters
    ----------
    fields : tuple
        Those of `TriangularFactors`.
    steps : Steps
    B, X : (k, n) arrays
        A right-hand side, or a solution, in each row.
    """
    factors = triangular_factors(fields)
    most, n, panels = factors.most, B.shape[1], factors.panels
    width = min(most, B.shape[0])
    x, buffer = np.empty(n * width, panels.dtype), np.empty(factors.widest * width, panels.dtype)
    for first in range(0, B.shape[0], most):
        last = min(first + most, B.shape[0])
        vectors = x[: n * (last - first)]
        _solve_part(reference(factors), steps, B[first:last], X[first:last], vectors, buffer)
    keep_alive(factors)
