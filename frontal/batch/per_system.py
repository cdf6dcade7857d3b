"""Scalings, pivot ratios and determinants of all systems of a batch, computed on the host."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..compile.jit import jit
from ..factor.determinant import permutation_sign
from ..numeric.method import CHOLESKY, Method
from ..symbolic.phase import Symbolic
from ..symbolic.scaling import scale_values


@jit
def scaled_each(indptr, indices, values, first_row, first_column, symmetric, row, column):
    """Write the scalings of all systems to `row` and `column`; return which are usable."""
    out, good = np.empty(indices.size, values.dtype), np.zeros(values.shape[0], np.bool_)
    for i in range(values.shape[0]):
        row[i], column[i] = first_row, first_column
        arguments = indptr, indices, values[i], row[i], column[i]
        good[i] = scale_values(*arguments, symmetric, out)
    return good


def pivot_ratios(method: Method, diagonal: np.ndarray, coupling: np.ndarray) -> np.ndarray:
    """Return `Health.pivot_ratio` of LDL^T factors, from D(j, j) and D(j + 1, j), (batch, n)."""
    size = np.abs(diagonal).astype(np.float64)
    with np.errstate(all="ignore"):
        i, j = np.nonzero(coupling)
        d0, d1, b = diagonal[i, j], diagonal[i, j + 1], coupling[i, j]
        largest = np.maximum(np.abs(b), np.maximum(np.abs(d0), np.abs(d1)))
        mirrored = np.conj(b) if method.adjoint else b
        size[i, j] = size[i, j + 1] = np.abs(d0 / largest * d1 - b / largest * mirrored)
        return np.min(size, axis=1, initial=np.inf) / np.max(size, axis=1, initial=0.0)


def slogdets(
    symbolic: Symbolic,
    diagonal: np.ndarray,
    pivots: np.ndarray,
    scales: Sequence[np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Return signs (or phases) and log-moduli of determinants, by Cholesky or LU.

    Parameters
    ----------
    symbolic : Symbolic
    diagonal, pivots : (batch, n) arrays
        Of L or U in elimination order, and interchanges within fronts.
    scales : two (batch, n) arrays
        Of rows and columns, for LU.
    """
    size = np.abs(diagonal).astype(np.float64)
    value = np.log(size).sum(axis=1)
    if symbolic.method == CHOLESKY:
        return np.ones(value.size, diagonal.dtype), 2 * value
    for scale in scales:
        value -= np.log(scale).sum(axis=1)
    start = symbolic.plan.start
    identity = np.arange(symbolic.n) - np.repeat(start[:-1], np.diff(start))
    odd = (pivots != identity).sum(axis=1) % 2
    fixed = permutation_sign(symbolic.perm) * permutation_sign(symbolic.row_perm)
    return fixed * (1 - 2 * odd) * np.prod(diagonal / size, axis=1), value
