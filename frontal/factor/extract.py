"""L, D and U as sparse matrices, gathered from the panels of the fronts, if there are fronts."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ..backend.protocol import NumericFactor, panel_offsets
from ..compile.jit import jit


@jit
def _counts(plan):
    """Return the entries of each column of L and of each row of U, including the diagonal."""
    counts = np.empty(plan.start[-1], np.int64)
    for s in range(plan.parent.size):
        m = plan.pointer[s + 1] - plan.pointer[s]
        for j in range(plan.start[s], plan.start[s + 1]):
            counts[j] = plan.start[s + 1] - j + m
    return counts


@jit
def _gather(plan, panel, panels, position, indptr, upper, unit):
    """Return columns of L with row indices mapped through `position`, or rows of U if `upper`."""
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
    """Return the position of each row after the interchanges, by position before pivoting."""
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
    """Return each column's elimination position; interchanged like the rows in LDL^T and LDL^H."""
    before = np.argsort(factor.symbolic.perm).astype(np.int32)
    return interchanged_positions(factor)[before] if factor.symbolic.method.indefinite else before


def row_positions(factor: NumericFactor) -> np.ndarray:
    """Return the position of each row of A in elimination order, after the interchanges."""
    return interchanged_positions(factor)[np.argsort(factor.symbolic.row_perm)]


def row_at(factor: NumericFactor) -> np.ndarray:
    """Return, for each position after the interchanges, the row's position before them, (n,)."""
    return np.argsort(interchanged_positions(factor))


def interchanged_positions(factor: NumericFactor) -> np.ndarray:
    """Return the position after the interchanges of each position before them, (n,)."""
    if factor.symbolic.columns is not None:
        return factor.pivots
    return _interchanged(factor.symbolic.plan, factor.pivots)


def _rows(factor: NumericFactor, position: np.ndarray) -> np.ndarray:
    """Return the row of A at each elimination position, after the interchanges."""
    return np.argsort(position[np.argsort(factor.symbolic.row_perm)])


def lower_factor(factor: NumericFactor) -> sp.csc_array:
    """Return L by columns, in elimination order, of the unscaled matrix."""
    position, scaling = interchanged_positions(factor), factor.scaling
    L = sp.csc_array(_triangle(factor, position, False))
    if scaling is None:
        return L
    row = scaling.row[_rows(factor, position)]
    unscaled = sp.diags_array(1 / row) @ L @ sp.diags_array(row)
    return sp.csc_array(unscaled).astype(L.dtype)


def upper_factor(factor: NumericFactor) -> sp.csc_array:
    """Return U of the unscaled matrix in elimination order: L^H for Cholesky, D L^H for LDL^H.

    Raises
    ------
    ValueError
        If D has 2x2 blocks.
    """
    scaling, method = factor.scaling, factor.symbolic.method
    if method.indefinite:
        if factor.subdiagonal().any():
            raise ValueError(
                "U = D L^H is not triangular, since D has 2x2 blocks. Try: L and D, or LU with "
                "kind='general'"
            )
        L = lower_factor(factor)
        return sp.csc_array(block_diagonal(factor) @ (L.conj().T if method.adjoint else L.T))
    if method.one_triangle:
        return sp.csc_array(lower_factor(factor).conj().T)
    position = interchanged_positions(factor)
    if scaling is None:
        return sp.csc_array(_triangle(factor, position, True).T)
    U = sp.csc_array(_triangle(factor, position, True).T.tocsc())
    row = scaling.row[_rows(factor, position)]
    column = scaling.column[factor.symbolic.perm]
    return sp.csc_array(sp.diags_array(1 / row) @ U @ sp.diags_array(1 / column)).astype(U.dtype)


def block_diagonal(factor: NumericFactor) -> sp.csc_array:
    """Return D of LDL^H in elimination order, of the unscaled matrix."""
    method, n = factor.symbolic.method, factor.symbolic.n
    if not method.indefinite:
        raise ValueError(f"the factors of {method.name} have no D. Try: L and U")
    diagonal, coupling = factor.diagonal(), factor.subdiagonal()
    coupling = coupling[:-1] if coupling.size else np.zeros(max(0, n - 1), factor.dtype)
    above = coupling.conj() if method.adjoint else coupling
    D = sp.diags_array([coupling, diagonal, above], offsets=[-1, 0, 1], shape=(n, n))
    if factor.scaling is not None:
        row = sp.diags_array(1 / factor.scaling.row[_rows(factor, interchanged_positions(factor))])
        D = row @ D @ row
    D = sp.csc_array(D).astype(factor.dtype)
    D.eliminate_zeros()
    return D


def pivots(factor: NumericFactor) -> np.ndarray:
    """Return the (n,) pivots by columns of A, of the unscaled matrix."""
    values, method = factor.diagonal(), factor.symbolic.method
    position = column_positions(factor)
    if method.square_root:
        return values[position] ** 2
    if factor.scaling is not None:
        row = factor.scaling.row[_rows(factor, interchanged_positions(factor))]
        column = factor.scaling.column[np.argsort(position)]
        values = (values / row / column).astype(values.dtype)
    return values[position]


def _triangle(factor: NumericFactor, position: np.ndarray, upper: bool) -> sp.csc_array:
    """Return L, or the transpose of U, of the factorized matrix."""
    plan, method, host = factor.symbolic.plan, factor.symbolic.method, factor.to_host()
    if host.triangles is not None:
        return sp.csc_array(host.triangles[1].T) if upper else host.triangles[0]
    n, unit = int(plan.start[-1]), method.unit and not upper
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(_counts(plan), out=indptr[1:])
    panel, panels = panel_offsets(plan, method), host.panels
    indices, data = _gather(plan, panel, panels, position, indptr, upper, unit)
    triangle = sp.csc_array((data, indices, indptr), shape=(n, n))
    triangle.eliminate_zeros()
    triangle.sort_indices()
    return triangle
