"""Condition number of the scaled matrix, estimated from a few solves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, onenormest

from .scaling import Scaling

_TINY = 4  # orders up to which the inverse itself is formed


def scaled_condition(
    A: sp.csc_array, scaling: Scaling | None, solve: Callable[[np.ndarray, str], np.ndarray]
) -> float:
    """1-norm condition number of D_r A D_c (Higham and Tisseur 2000).

    Parameters
    ----------
    A : (n, n) sparse array
    scaling : Scaling or None
        D_r and D_c; None takes the symmetric scaling to a unit diagonal.
    solve : callable
        op(A)^-1 B for a (n, k) block B and ``"N"`` or ``"H"``.
    """
    n = A.shape[0]
    row, column = _scales(A, scaling)
    inverse = LinearOperator(
        (n, n),
        matvec=lambda x: solve(x.reshape(-1, 1) / row[:, None], "N")[:, 0] / column,
        rmatvec=lambda x: solve(x.reshape(-1, 1) / column[:, None], "H")[:, 0] / row,
        dtype=A.dtype,
    )
    norm = (sp.diags_array(row) @ abs(A) @ sp.diags_array(column)).sum(0).max()
    with np.errstate(all="ignore"):
        estimate = onenormest(inverse) if n > _TINY else abs(inverse @ np.eye(n)).sum(0).max()
    return float(norm) * float(estimate)


def witnessed_condition(
    A: sp.csc_array, scaling: Scaling | None, solve: Callable[[np.ndarray, str], np.ndarray]
) -> float:
    """Lower bound of the condition of D_r A D_c by inverse iteration, infinity norm.

    Each x that `solve` finds proves |D_r A D_c| |x| / |D_r A D_c x|, however x was found: replaced
    pivots, which an estimate by the factors does not see, cannot make it too large.

    Parameters
    ----------
    A, scaling, solve
        As for `scaled_condition`; `solve` as accurate as can be.

    Returns
    -------
    float
        Infinite if a solution is not finite.
    """
    row, column = _scales(A, scaling)
    norm = float((sp.diags_array(row) @ abs(A) @ sp.diags_array(column)).sum(1).max())
    b = np.random.default_rng(0).standard_normal((A.shape[0], 1)).astype(A.dtype)
    found = 0.0
    with np.errstate(all="ignore"):
        for _ in range(2):  # by A^-1 A^-H, which leads to the least singular value
            y = (
                solve(b / row[:, None], "N").astype(np.result_type(A.dtype, np.float64))
                / column[:, None]
            )
            y /= np.abs(y).max()
            image = np.abs(row[:, None] * (A @ (column[:, None] * y))).max()
            if not np.isfinite(image):
                return np.inf
            found = max(found, norm / image if image else np.inf)
            b = solve((y / column[:, None]).astype(A.dtype), "H") / row[:, None]
            b /= np.abs(b).max()
            if not np.isfinite(b).all():
                break
    return found


def _scales(A: sp.csc_array, scaling: Scaling | None) -> tuple[np.ndarray, np.ndarray]:
    """D_r and D_c as vectors; without a scaling that to a unit diagonal."""
    if scaling is not None:
        return scaling.row, scaling.column
    d = 1 / np.sqrt(np.abs(A.diagonal()))
    return d, d
