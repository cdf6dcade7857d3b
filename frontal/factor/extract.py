"""L and U as sparse matrices, gathered from the panels of the fronts."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .._jit import jit
from ..protocol import NumericFactor, panel_offsets


@jit
def _counts(plan):
    """Entries of each column of L, diagonal included; the same for each row of U."""
    counts = np.empty(plan.start[-1], np.int64)
    for s in range(plan.parent.size):
        m = plan.pointer[s + 1] - plan.pointer[s]
        for j in range(plan.start[s], plan.start[s + 1]):
            counts[j] = plan.start[s + 1] - j + m
    return counts


@jit
def _gather(plan, panel, panels, position, indptr, upper, unit):
    """Columns of L, or rows of U if `upper`; indices of L's rows mapped through `position`."""
    indices = np.empty(indptr[-1], np.int32)
    data = np.empty(indptr[-1], panels.dtype)
    for s in range(plan.parent.size):
        first = plan.start[s]
        k = np.int64(plan.start[s + 1] - first)
        m = plan.pointer[s + 1] - plan.pointer[s]
        ld = k + m
        for j in range(k):
            q = indptr[first + j]
            for i in range(j, k):
                where = j + i * ld if upper else i + j * ld
                data[q] = 1 if unit and i == j else panels[panel[s] + where]
                indices[q] = first + i
                q += 1
            base = panel[s] + (k * ld + j * m if upper else j * ld + k)
            for i in range(m):
                data[q] = panels[base + i]
                row = plan.rows[plan.pointer[s] + i]
                indices[q] = row if upper else position[row]
                q += 1
    return indices, data


@jit
def _interchanged(plan, pivots):
    """Where each row, by elimination position before pivoting, ends after the interchanges."""
    n = plan.start[-1]
    row_at = np.empty(n, np.int32)
    for i in range(n):
        row_at[i] = i
    if pivots.size > 0:
        for s in range(plan.parent.size):
            first = plan.start[s]
            for j in range(first, plan.start[s + 1]):
                p = first + pivots[j]
                row_at[j], row_at[p] = row_at[p], row_at[j]
    position = np.empty(n, np.int32)
    for i in range(n):
        position[row_at[i]] = i
    return position


def column_positions(factor: NumericFactor) -> np.ndarray:
    """Position of each column of A in elimination order."""
    return np.argsort(factor.symbolic.perm).astype(np.int32)


def row_positions(factor: NumericFactor) -> np.ndarray:
    """Position of each row of A in elimination order, after the interchanges."""
    return _positions(factor)[np.argsort(factor.symbolic.row_perm)]


def _positions(factor: NumericFactor) -> np.ndarray:
    return _interchanged(factor.symbolic.plan, factor.pivots)


def _rows(factor: NumericFactor, position: np.ndarray) -> np.ndarray:
    """The row of A at each position of elimination, after the interchanges."""
    return np.argsort(position[np.argsort(factor.symbolic.row_perm)])


def lower_factor(factor: NumericFactor) -> sp.csc_array:
    """L by columns, in elimination order; of the matrix before it was scaled."""
    position, scaling = _positions(factor), factor.scaling
    L = sp.csc_array(_triangle(factor, position, False))
    if scaling is None:
        return L
    row = scaling.row[_rows(factor, position)]
    unscaled = sp.diags_array(1 / row) @ L @ sp.diags_array(row)
    return sp.csc_array(unscaled).astype(L.dtype)


def upper_factor(factor: NumericFactor) -> sp.csc_array:
    """U in elimination order, of the matrix before it was scaled; the adjoint of L for Cholesky."""
    scaling = factor.scaling
    if factor.symbolic.method.one_triangle or scaling is None:
        return sp.csc_array(lower_factor(factor).conj().T)
    position = _positions(factor)
    U = sp.csc_array(_triangle(factor, position, True).T.tocsc())
    row = scaling.row[_rows(factor, position)]
    column = scaling.column[factor.symbolic.perm]
    return sp.csc_array(sp.diags_array(1 / row) @ U @ sp.diags_array(1 / column)).astype(U.dtype)


def _triangle(factor: NumericFactor, position: np.ndarray, upper: bool) -> sp.csc_array:
    plan, method = factor.symbolic.plan, factor.symbolic.method
    n, unit = int(plan.start[-1]), method.pivots and not upper
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(_counts(plan), out=indptr[1:])
    panel, panels = panel_offsets(plan, method), factor.to_host().panels
    indices, data = _gather(plan, panel, panels, position, indptr, upper, unit)
    triangle = sp.csc_array((data, indices, indptr), shape=(n, n))
    triangle.eliminate_zeros()
    triangle.sort_indices()
    return triangle
