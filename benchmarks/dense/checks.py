"""Residuals of the dense ladder's results, in units of n·eps, so that 20 is the limit for all.

Checks take arrays of the host, or of the device with CuPy as ``xp``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

LIMIT = 20.0
LARGE = 512  # orders above are checked by products with a few vectors


def residual(
    routine: str, source: dict[str, Any], result: Any, pivots: Any = None, xp: Any = np
) -> float:
    """Return the scaled residual of one matrix; 1e99 where the result is not finite."""
    eps = np.finfo(result.dtype).eps
    wide = np.complex128 if result.dtype.kind == "c" else np.float64
    source = {name: x.astype(wide) for name, x in source.items()}
    if result.size == 0:
        return 0.0
    difference, scale = CHECKS[routine](xp, source, result.astype(wide), pivots)
    found = float(difference / (scale * max(source["a"].shape[0], 1) * eps))
    return min(found, 1e99) if np.isfinite(found) else 1e99


def _norm(x: Any) -> float:
    return float((abs(x) ** 2).sum()) ** 0.5


def _size(x: Any) -> float:
    return _norm(x) or 1.0


def _probe(xp: Any, n: int) -> tuple[Any, float]:
    """A few vectors, enough to see any error of a product with them, and the norm of one.

    All unit vectors where n is small, with 1 in place of their norm: the residual is the matrix's.
    """
    if n <= LARGE:
        return xp.eye(n), 1.0
    x = xp.asarray(np.random.default_rng(3).standard_normal((n, 4)))
    return x, _norm(x) / n**0.5


def _real_diagonal(xp: Any, a: Any) -> Any:
    """The lower triangle, of whose diagonal only the real part counts."""
    return xp.tril(a, -1) + xp.diag(a.diagonal().real)


def _potrf(xp, source, result, _):
    below, low = xp.tril(source["a"], -1), xp.tril(result)
    a = below.conj().T + _real_diagonal(xp, source["a"])
    x, size = _probe(xp, len(a))
    return _norm(a @ x - low @ (low.conj().T @ x)), _size(a) * size


def _getrf(xp, source, result, pivots):
    a, n = source["a"], len(result)
    low, up = xp.tril(result, -1) + xp.eye(n), xp.triu(result)
    rows = np.arange(n)
    for i, p in enumerate(pivots):
        rows[[i, p]] = rows[[p, i]]
    if abs(low).max() > 1 + 1e-6 + (low.dtype.kind == "c") * 0.5:
        return float("inf"), 1.0  # not partial pivoting
    x, size = _probe(xp, n)
    return _norm((a @ x)[xp.asarray(rows)] - low @ (up @ x)), _size(low) * _size(up) * size


def _inv(xp, source, result, _):
    a = source["a"]
    return _norm(a @ result - xp.eye(len(a))), _size(a) * _size(result)


def _gemm(xp, source, result, _):
    a, b, c = (source[x] for x in "abc")
    x, size = _probe(xp, b.shape[1])
    expected = a @ (b @ x) + c @ x
    return _norm(result @ x - expected), (_size(a) * _size(b) + _size(c)) * size


def _herk(xp, source, result, _):
    a, c = source["a"], source["c"]
    expected = xp.tril(a @ a.conj().T) + _real_diagonal(xp, c)
    return _norm(xp.tril(result) - expected), _size(a) ** 2 + _size(c)


def _trsm(xp, source, result, _):
    a, b = xp.tril(source["a"]), source["b"]
    return _norm(result @ a.conj().T - b), _size(result) * _size(a) + _size(b)


def _gemv(transposed: bool) -> Callable:
    def check(xp, source, result, _):
        a, b, c = (source[x] for x in "abc")
        a = a.T if transposed else a
        return _norm(result - (a @ b + c)), _size(a) * _size(b) + _size(c)

    return check


def _potrs(xp, source, result, _):
    a, b = xp.tril(source["a"]), source["b"]
    return _norm(a @ (a.conj().T @ result) - b), _size(a) ** 2 * _size(result) + _size(b)


def _getrs(xp, source, result, _):
    a, b = source["a"], source["b"]
    low, up = xp.tril(a, -1) + xp.eye(len(a)), xp.triu(a)
    return _norm(low @ (up @ result) - b), _size(low) * _size(up) * _size(result) + _size(b)


def _three(middle: Callable[[Any], Any]) -> Callable:
    """A check of unitary U and V with A = U M Vᴴ: `result` has U, columns that make M, Vᴴ."""

    def check(xp, source, result, _):
        a, n = source["a"], len(source["a"])
        u, vh = result[:, :n], result[:, -n:]
        error = _norm(u @ middle(result[:, n:-n]) @ vh - a) / _size(a)
        error += _norm(u.conj().T @ u - xp.eye(n)) + _norm(vh @ vh.conj().T - xp.eye(n))
        return error, 1.0

    return check


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
