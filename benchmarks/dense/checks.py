"""Residuals of the GPU ladder's results, in units of n·eps, so that 20 is the limit for all."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

LIMIT = 20.0
Operands = dict[str, np.ndarray]


def residual(routine: str, source: Operands, result: np.ndarray, pivots=None) -> float:
    """Return the scaled residual of one matrix; 1e99 where the result is not finite."""
    eps = np.finfo(result.dtype).eps
    wide = np.complex128 if np.iscomplexobj(result) else np.float64
    source = {name: x.astype(wide) for name, x in source.items()}
    result = result.astype(wide)
    if result.size == 0:
        return 0.0
    difference, scale = CHECKS[routine](source, result, pivots)
    order = max(source["a"].shape[0], 1)
    found = float(difference / (scale * order * eps))
    return min(found, 1e99) if np.isfinite(found) else 1e99


def _norm(x: np.ndarray) -> float:
    return float(np.linalg.norm(x)) or 1.0


def _hermitian(a: np.ndarray) -> np.ndarray:
    lower = np.tril(a, -1)
    return lower + lower.conj().T + np.diag(a.diagonal().real)


def _probe(n: int) -> np.ndarray:
    """A few vectors, enough to see any error of a product with them; all where n is small."""
    return np.eye(n) if n <= 512 else np.random.default_rng(3).standard_normal((n, 4))


def _potrf(source, result, _):
    a, low = _hermitian(source["a"]), np.tril(result)
    x = _probe(len(a))
    return _norm_of(a @ x - low @ (low.conj().T @ x)), _norm(a) * _per_column(x)


def _getrf(source, result, pivots):
    a = source["a"]
    low, up = np.tril(result, -1) + np.eye(len(a)), np.triu(result)
    rows = np.arange(len(a))
    for i, p in enumerate(pivots):
        rows[[i, p]] = rows[[p, i]]
    x = _probe(len(a))
    if np.abs(low).max() > 1 + 1e-6 + np.iscomplexobj(low) * 0.5:
        return float("inf"), 1.0  # not partial pivoting
    return _norm_of(a[rows] @ x - low @ (up @ x)), _norm(low) * _norm(up) * _per_column(x)


def _inv(source, result, _):
    a = source["a"]
    return _norm_of(a @ result - np.eye(len(a))), _norm(a) * _norm(result)


def _gemm(source, result, _):
    a, b, c = source["a"], source["b"], source["c"]
    x = _probe(b.shape[1])
    expected = a @ (b @ x) + c @ x
    return _norm_of(result @ x - expected), (_norm(a) * _norm(b) + _norm(c)) * _per_column(x)


def _herk(source, result, _):
    a, c = source["a"], source["c"]
    expected = np.tril(a @ a.conj().T) + np.tril(_diagonal_real(c))
    return _norm_of(np.tril(result) - expected), _norm(a) ** 2 + _norm(c)


def _diagonal_real(c: np.ndarray) -> np.ndarray:
    c = c.copy()
    np.fill_diagonal(c, c.diagonal().real)
    return c


def _trsm(source, result, _):
    a, b = np.tril(source["a"]), source["b"]
    return _norm_of(result @ a.conj().T - b), _norm(result) * _norm(a) + _norm(b)


def _gemv(transposed: bool) -> Callable:
    def check(source, result, _):
        a, b, c = (source[x] for x in "abc")
        a = a.T if transposed else a
        return _norm_of(result - (a @ b + c)), _norm(a) * _norm(b) + _norm(c)

    return check


def _potrs(source, result, _):
    a, b = np.tril(source["a"]), source["b"]
    return _norm_of(a @ (a.conj().T @ result) - b), _norm(a) ** 2 * _norm(result) + _norm(b)


def _getrs(source, result, _):
    a, b = source["a"], source["b"]
    low, up = np.tril(a, -1) + np.eye(len(a)), np.triu(a)
    scale = _norm(low) * _norm(up) * _norm(result) + _norm(b)
    return _norm_of(low @ (up @ result) - b), scale


def _three(middle: Callable[[np.ndarray], np.ndarray]) -> Callable:
    """A check of unitary U and V with A = U M Vᴴ: `result` has U, columns that make M, Vᴴ."""

    def check(source, result, _):
        a, n = source["a"], len(source["a"])
        u, vh = result[:, :n], result[:, -n:]
        error = _norm_of(u @ middle(result[:, n:-n]) @ vh - a) / _norm(a)
        error += _norm_of(u.conj().T @ u - np.eye(n)) + _norm_of(vh @ vh.conj().T - np.eye(n))
        return error, 1.0

    return check


def _norm_of(x: np.ndarray) -> float:
    return float(np.linalg.norm(x))


def _per_column(x: np.ndarray) -> float:
    """Norm of a probe: one for the identity, so that the residual is the matrix's."""
    return 1.0 if x.shape[0] == x.shape[1] else float(np.linalg.norm(x)) / np.sqrt(len(x))


CHECKS: dict[str, Callable] = {
    "potrf": _potrf,
    "getrf": _getrf,
    "inv": _inv,
    "gemm": _gemm,
    "herk": _herk,
    "trsm": _trsm,
    "gemv_n": _gemv(False),
    "gemv_t": _gemv(True),
    "potrs": _potrs,
    "getrs": _getrs,
    "gebrd": _three(lambda x: np.diag(x[:, 0]) + np.diag(x[:-1, 1], 1)),
    "svd": _three(lambda x: np.diag(x[:, 0])),
}


# --- one large matrix, on the device: the same residuals by products with one vector -------------


def _large_potrf(xp, arrays, before, _):
    a, x = arrays["a"], xp.ones(len(before), before.dtype)
    factor = xp.tril(a)
    found = factor @ (factor.conj().T @ x)
    scale = float(xp.linalg.norm(factor)) ** 2
    del factor
    lower = xp.tril(before, -1)
    expected = lower @ x + lower.conj().T @ x + before.diagonal().real * x
    return _scaled(xp, found - expected, scale)


def _large_getrf(xp, arrays, before, pivots):
    a, x = arrays["a"], xp.ones(len(before), before.dtype)
    rows = np.arange(len(a))
    for i, p in enumerate(pivots):
        rows[[i, p]] = rows[[p, i]]
    upper = xp.triu(a)
    y, scale = upper @ x, float(xp.linalg.norm(upper))
    del upper
    lower = xp.tril(a, -1)
    found = lower @ y + y
    scale *= float(xp.linalg.norm(lower)) + len(a) ** 0.5
    return _scaled(xp, found - (before @ x)[xp.asarray(rows)], scale)


def _large_gemm(xp, arrays, before, _):
    x = xp.ones(len(before), before.dtype)
    a, b, c = (arrays[name] for name in "abc")
    scale = float(xp.linalg.norm(a)) * float(xp.linalg.norm(b)) + float(xp.linalg.norm(c))
    return _scaled(xp, c @ x - (a @ (b @ x) + before @ x), scale)


def _large_trsm(xp, arrays, before, _):
    x = xp.ones(len(before), before.dtype)
    factor, b = xp.tril(arrays["a"]), arrays["b"]
    scale = float(xp.linalg.norm(b)) * float(xp.linalg.norm(factor))
    return _scaled(xp, b @ (factor.conj().T @ x) - before @ x, scale)


def _scaled(xp, difference, scale: float) -> float:
    eps = float(np.finfo(difference.dtype).eps)
    found = float(xp.linalg.norm(difference)) / (scale * len(difference) * eps)
    return min(found, 1e99) if np.isfinite(found) else 1e99


LARGE: dict[str, Callable] = {
    "potrf": _large_potrf,
    "getrf": _large_getrf,
    "gemm": _large_gemm,
    "trsm": _large_trsm,
}
