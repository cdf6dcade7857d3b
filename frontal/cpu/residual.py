"""Residuals and backward errors of solutions on the host.

Vectors are the rows of (k, n) arrays. A matrix is given by columns, or by rows if `flipped`.
"""

from __future__ import annotations

import numpy as np

from ..compile.jit import allocating, forced, inner, jit
from ..numeric.acceptance import judge, unpacked
from ..numeric.backward_error import componentwise, is_long, modulus, rowwise


def as_rows(M: np.ndarray) -> np.ndarray:
    """Return the vectors of M, (n, k), as rows of an array, which may share the memory of M.

    A view is copied unless it is contiguous, writable and aligned: compiled code has another type
    for such arrays.
    """
    rows = M.T
    flags = rows.flags
    if flags.c_contiguous and flags.writeable and flags.aligned:
        return rows
    return np.array(rows, order="C")


@forced
def _larger(a, b):
    """Return the larger of two numbers; NaN if one is NaN."""
    return b if b > a or b != b else a


@forced
def _row_sums(indices, data, x, first, last):
    """Return the sums of a row of A x and of |A||x|, each from two partial sums."""
    p, last = np.uint64(first), np.uint64(last)
    total = second = data.dtype.type(0) * x.dtype.type(0)
    scale = other = np.abs(total)
    for _ in range((last - p) // np.uint64(2)):
        product = data[p] * x[np.uint32(indices[p])]
        following = data[p + np.uint64(1)] * x[np.uint32(indices[p + np.uint64(1)])]
        total, second = total + product, second + following
        scale, other = scale + modulus(product), other + modulus(following)
        p += np.uint64(2)
    if p < last:
        product = data[p] * x[np.uint32(indices[p])]
        total, scale = total + product, scale + modulus(product)
    return total + second, scale + other


@inner
def _residual(indptr, indices, data, flipped, x, b, r, y, least):
    """Compute r = b - A x and y = |A||x| + |b|; return max |r|, |x|, |b| and |r| / (y + least).

    One pass over A. Vectors are read once if A is given by rows, twice if by columns.
    """
    if not flipped:
        for i in range(x.size):
            r[i], y[i] = 0, 0
        for j in range(x.size):
            x_j = x[j]
            for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
                i = np.uint32(indices[p])
                product = data[p] * x_j
                r[i] += product
                y[i] += modulus(product)
    residual = solution = rhs = np.abs(b[0]) * 0
    ratio = 0.0
    for j in range(x.size):
        if flipped:
            total, scale = _row_sums(indices, data, x, indptr[j], indptr[j + 1])
            scale += np.abs(b[j])
        else:
            total, scale = r[j], y[j] + np.abs(b[j])
        r[j], y[j] = b[j] - total, scale
        size, denominator = np.float64(np.abs(r[j])), np.float64(scale) + least
        if not size <= ratio * denominator:
            ratio = size / denominator
        residual, solution = _larger(residual, np.abs(r[j])), _larger(solution, np.abs(x[j]))
        rhs = _larger(rhs, np.abs(b[j]))
    return residual, solution, rhs, ratio


_judge = inner(judge)


@inner
def judge_column(sizes, c, norm, by_component, limits):
    """Judge the solution of column c; see `measure` for `sizes`."""
    r, x, b = np.float64(sizes[0, c]), np.float64(sizes[1, c]), np.float64(sizes[2, c])
    errors = np.float64(sizes[3, c]), np.float64(sizes[4, c])
    return _judge((r, x, b, *errors), norm, by_component, limits)


@inner
def is_harmless(matrix, x, b):
    """Return whether `judge` would find a solution inside, from the sizes of x and b alone.

    Residuals do not overflow if |A||x| does not.
    """
    norm, limits = matrix[5], unpacked(matrix[6])
    solution = rhs = np.abs(b[0]) * 0
    for j in range(x.size):
        solution, rhs = _larger(solution, np.abs(x[j])), _larger(rhs, np.abs(b[j]))
    zero = np.float64(0)
    sizes = zero, np.float64(solution), np.float64(rhs), zero, zero
    return _judge(sizes, norm, False, limits)[3]


@allocating
def measure(matrix, X, B, R, sizes):
    """Compute R = B - A X and the backward errors of X.

    Parameters
    ----------
    matrix : tuple
        A: `indptr`, `indices`, `data` and `flipped`; `by_component`, whether the componentwise
        error must be small too (see `BackwardErrors`); the infinity norm of A; and the `limits`, an
        array of `ErrorLimits`.
    X, B, R : (k, n) arrays, n and k positive
    sizes : (5, k) array
        On return, largest moduli of R, X and B, componentwise and rowwise backward errors.

    Returns
    -------
    worst : float
        Largest rowwise backward error.
    fine : bool
        Whether all columns are within the limits.
    """
    indptr, indices, data, flipped, by_component, norm, packed = matrix
    worst, fine, limits = 0.0, True, unpacked(packed)
    scale, least = np.empty(X.shape[1], sizes.dtype), limits.tiny / limits.eps  # not denormal
    for c in range(X.shape[0]):
        x, b, r = X[c], B[c], R[c]
        maxima = _residual(indptr, indices, data, flipped, x, b, r, scale, least)
        sizes[0, c], sizes[1, c], sizes[2, c], error = maxima
        solution = np.float64(sizes[1, c])
        certain, row = error <= limits.accepted and np.isfinite(sizes[0, c]), -1
        if not certain:
            error, certain, row = componentwise(r, scale, norm * solution, limits)
        sizes[3, c] = error
        if not (certain or (row >= 0 and not is_long(indptr, indices, flipped, row))):
            error = rowwise(matrix, b, r, scale, solution)
        sizes[4, c] = error
        worst = max(worst, error)
        fine &= judge_column(sizes, c, norm, by_component, limits)[2]
    return worst, fine


@jit
def measured(matrix, X, B, R, sizes):
    """Run `measure`, from Python."""
    return measure(matrix, X, B, R, sizes)


@jit
def weights(matrix, X, B, solution, error, out):
    """Write the largest (|A||x| + |b| + |b - A x| / error) / |x|_max of all vectors, by rows.

    Parameters
    ----------
    matrix : tuple
        See `measure`.
    solution : (k,) float array
        Largest modulus of each row of X; a row is skipped unless this is positive and finite.
    error : float
        Precision of X.
    out : (n,) float64 array
        On return, the weight of each row of A.
    """
    indptr, indices, data, flipped = matrix[0], matrix[1], matrix[2], matrix[3]
    scale, r = np.empty(out.size), np.empty(out.size, X.dtype)
    out[:] = 0
    for c in range(X.shape[0]):
        size = np.float64(solution[c])
        if not (size > 0 and np.isfinite(size)):
            continue
        x, b = X[c], B[c]
        _residual(indptr, indices, data, flipped, x, b, r, scale, 1.0)
        for i in range(out.size):
            weight = (scale[i] + np.float64(np.abs(r[i])) / error) / size
            if weight > out[i] or weight != weight:
                out[i] = weight
