"""Residuals of solutions on the host and what they tell.

Vectors are the rows of (k, n) arrays. A matrix is its columns, or those of its transpose if
`flipped`.
"""

from __future__ import annotations

import numpy as np

from .._jit import allocating, inner, jit

_1, _2, _3, _4 = np.arange(1, 5, dtype=np.uint64)


def as_rows(M: np.ndarray) -> np.ndarray:
    """Vectors (n, k) as the rows of an array; it may share memory with M, if M can be written to.

    Compiled code knows other arrays for other types.
    """
    rows = M.T
    flags = rows.flags
    if flags.c_contiguous and flags.writeable and flags.aligned:
        return rows
    return np.array(rows, order="C")


@inner
def _product(indptr, indices, data, flipped, x, y):
    """y = A x."""
    if not flipped:
        y[:] = 0
        for j in range(x.size):
            for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
                y[np.uint32(indices[p])] += data[p] * x[j]
        return
    for j in range(x.size):
        total = y.dtype.type(0)
        for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            total += data[p] * x[np.uint32(indices[p])]
        y[j] = total


@inner
def _residual(indptr, indices, data, flipped, x, b, r):
    """r = b - A x."""
    _product(indptr, indices, data, flipped, x, r)
    for i in range(x.size):
        r[i] = b[i] - r[i]


@inner
def _residual_and_scale(indptr, indices, data, flipped, x, b, r, y):
    """r = b - A x and y = |A| |x| + |b| in one pass over A."""
    for i in range(x.size):
        r[i], y[i] = 0, np.abs(b[i])
    for j in range(x.size):
        total, scale, own, size = r[j], y[j], x[j], np.abs(x[j])
        for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            i, a = np.uint32(indices[p]), np.abs(data[p])
            if flipped:
                total += data[p] * x[i]
                scale += a * np.abs(x[i])
            else:
                r[i] += data[p] * own
                y[i] += a * size
        if flipped:
            r[j], y[j] = total, scale
    for i in range(x.size):
        r[i] = b[i] - r[i]


@inner
def _largest(x):
    """Largest modulus; NaN if there is one."""
    a = b = c = d = np.abs(x[0])  # four that do not wait for each other
    bad, n = False, np.uint64(x.size)
    for i in range(np.uint64(0), n - n % _4, _4):
        p, q, r, s = np.abs(x[i]), np.abs(x[i + _1]), np.abs(x[i + _2]), np.abs(x[i + _3])
        a, b = p if p > a else a, q if q > b else b
        c, d = r if r > c else c, s if s > d else d
        bad |= (p != p) | (q != q) | (r != r) | (s != s)
    for i in range(n - n % _4, n):
        p = np.abs(x[i])
        a = p if p > a else a
        bad |= p != p
    found = max(max(a, b), max(c, d))
    return found * np.nan if bad else found


@inner
def _componentwise(r, scale):
    """Largest |r| / scale; infinite where r is not finite."""
    found = 0.0
    for i in range(r.size):
        size = np.float64(np.abs(r[i]))
        if not np.isfinite(size):
            return np.inf
        if size > 0 and not size <= found * scale[i]:
            found = size / scale[i]
            if found != found:
                return found
    return found


@inner
def normwise(norm, residual, solution, rhs):
    """Normwise backward error, infinite if that is no number."""
    scale = norm * solution + rhs
    error = residual / scale if scale > 0 else residual
    return error if np.isfinite(error) else np.inf


@inner
def is_fine(error, component, norm, solution, rhs, limits):
    """Whether errors are what rounding costs, and sizes within the `limits` of `measure`."""
    if not (error <= limits[0] and component <= limits[1]):
        return False
    if rhs == 0:
        return True
    low, high, most = limits[2], limits[3], limits[4]
    inside = low <= norm <= high and low <= rhs <= high and low <= solution <= high
    return inside and norm * solution <= most


@allocating
def measure(indptr, indices, data, flipped, badly_scaled, norm, limits, X, B, R, sizes):
    """R = B - A X, and what it says of X.

    Parameters
    ----------
    badly_scaled : bool
        Componentwise backward errors are wanted.
    norm : float
        Infinity norm of A.
    limits : (5,) float64 array
        What backward errors, normwise and componentwise, need no correction; the least and the
        largest size of A, of b and x, and the largest |A||x|, whose exponents are of no matter.
    X, B, R : (k, n) arrays, n and k positive
    sizes : (4, k) array
        Gets largest moduli of R, X and B, and componentwise backward errors if wanted.

    Returns
    -------
    worst : float
        Largest normwise backward error.
    amplification : float
        Largest |A||x|/|b|, 0 for what is no number.
    fine : bool
        All columns are within the limits.
    """
    worst, amplification, fine = 0.0, 0.0, True
    for c in range(X.shape[0]):
        x, b, r = X[c], B[c], R[c]
        component = 0.0
        if badly_scaled:
            scale = np.empty(x.size, sizes.dtype)
            _residual_and_scale(indptr, indices, data, flipped, x, b, r, scale)
            component = _componentwise(r, scale)
            sizes[3, c] = component
        else:
            _residual(indptr, indices, data, flipped, x, b, r)
        sizes[0, c], sizes[1, c], sizes[2, c] = _largest(r), _largest(x), _largest(b)
        of = np.float64(sizes[0, c]), np.float64(sizes[1, c]), np.float64(sizes[2, c])
        error = normwise(norm, *of)
        worst = max(worst, error)
        gain = norm * of[1] / of[2]
        if np.isfinite(gain):
            amplification = max(amplification, gain)
        fine &= is_fine(error, component, norm, of[1], of[2], limits)
    return worst, amplification, fine


@jit
def measured(indptr, indices, data, flipped, badly_scaled, norm, limits, X, B, R, sizes):
    """`measure` for Python."""
    return measure(indptr, indices, data, flipped, badly_scaled, norm, limits, X, B, R, sizes)


@jit
def weights(indptr, indices, data, flipped, X, B, solution, error, out):
    """Largest (|A||x| + |b| + |b - A x| / error) / |x|_max of the columns, for each row.

    Parameters
    ----------
    solution : (k,) float array
        Largest modulus of each row of X: those that are not positive numbers do not count.
    error : float
    out : (n,) float64 array
    """
    scale, r = np.empty(out.size), np.empty(out.size, X.dtype)
    out[:] = 0
    for c in range(X.shape[0]):
        size = np.float64(solution[c])
        if not (size > 0 and np.isfinite(size)):
            continue
        x, b = X[c], B[c]
        _residual_and_scale(indptr, indices, data, flipped, x, b, r, scale)
        for i in range(out.size):
            weight = (scale[i] + np.float64(np.abs(r[i])) / error) / size
            if weight > out[i] or weight != weight:
                out[i] = weight
