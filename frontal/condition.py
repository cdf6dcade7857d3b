"""Condition number of the scaled matrix, estimated from a few solves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, onenormest

from .scaling import Scaling

_TINY = 4  # orders up to which the inverse itself is formed


def scaled_condition(
    A: sp.csc_array, scaling: Scaling | None, solve: Callable[..., np.ndarray]
) -> float:
    """1-norm condition number of D_r A D_c (Higham and Tisseur 2000).

    Parameters
    ----------
    A : (n, n) sparse array
    scaling : Scaling or None
        D_r and D_c; None takes the symmetric scaling to a unit diagonal.
    solve : callable
        op(A)^-1 B for a (n, k) block B and ``"N"`` or ``"H"``; with False as its third argument,
        that of D_r A D_c where there is a `scaling`.
    """
    n = A.shape[0]
    if scaling is None:
        d = 1 / np.sqrt(np.abs(A.diagonal()))
        scaling = Scaling(d, d)

        def column_of(x: np.ndarray, trans: str) -> np.ndarray:
            return solve(x.reshape(-1, 1) / d[:, None], trans)[:, 0] / d
    else:  # in its own variables, which are of moderate size

        def column_of(x: np.ndarray, trans: str) -> np.ndarray:
            return solve(x.reshape(-1, 1), trans, False)[:, 0]

    row, column = scaling.row, scaling.column
    inverse = LinearOperator(
        (n, n),
        matvec=lambda x: column_of(x, "N"),
        rmatvec=lambda x: column_of(x, "H"),
        dtype=A.dtype,
    )
    norm = (sp.diags_array(row) @ abs(A) @ sp.diags_array(column)).sum(0).max()
    with np.errstate(all="ignore"):
        estimate = onenormest(inverse) if n > _TINY else abs(inverse @ np.eye(n)).sum(0).max()
    return float(norm) * float(estimate)


def witnessed_condition(
    A: sp.csc_array, scaling: Scaling | None, x: np.ndarray, b: np.ndarray
) -> float:
    """Lower bound of the condition of D_r A D_c by a solution of A x = b, infinity norm.

    It sees what replaced pivots hide from an estimate by the factors.
    """
    row = column = np.ones(A.shape[0])
    if scaling is not None:
        row, column = scaling.row, scaling.column
    norm = (sp.diags_array(row) @ abs(A) @ sp.diags_array(column)).sum(1).max()
    with np.errstate(all="ignore"):
        bound = float(norm * np.abs(x[:, 0] / column).max() / np.abs(row * b[:, 0]).max())
    return bound if np.isfinite(bound) else 0.0  # an x that overflows is no witness
