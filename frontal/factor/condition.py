"""How near to singular a matrix is: its scaled condition, estimated from a few solves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, onenormest

from ..accuracy import Errors
from ..cpu.system import direct
from ..errors import IllConditionedWarning, SingularMatrixError, warn
from ..protocol import NumericFactor, relative_pivots
from ..symbolic.scaling import Scaling

_TINY = 4  # orders up to which the inverse itself is formed


def scaled_condition(
    A: sp.csc_array, scaling: Scaling | None, solve: Callable[..., np.ndarray]
) -> float:
    """1-norm condition number of D_r A D_c, estimated (Hager 1984; Higham 1988).

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
        row = column = d

        def column_of(x: np.ndarray, trans: str) -> np.ndarray:
            return solve(x.reshape(-1, 1) / d[:, None], trans)[:, 0] / d
    else:  # in its own variables, which are of moderate size
        row, column = scaling.row, scaling.column

        def column_of(x: np.ndarray, trans: str) -> np.ndarray:
            return solve(x.reshape(-1, 1), trans, False)[:, 0]

    inverse = LinearOperator(
        (n, n),
        matvec=lambda x: column_of(x, "N"),
        rmatvec=lambda x: column_of(x, "H"),
        dtype=A.dtype,
    )
    norm = _magnitude(A, row, column).sum(0).max()
    with np.errstate(all="ignore"):
        return float(norm) * _one_norm(inverse, n)


def _magnitude(A: sp.csc_array, row: np.ndarray, column: np.ndarray) -> sp.csc_array:
    """|D_r A D_c|."""
    return sp.diags_array(row) @ abs(A) @ sp.diags_array(column)


def _one_norm(inverse: LinearOperator, n: int) -> float:
    if n <= _TINY:
        return float(abs(inverse @ np.eye(n)).sum(0).max())
    # one column at a time begins with no random numbers; Higham's second start guards it
    alternating = (1 + np.arange(n) / (n - 1)) * np.where(np.arange(n) % 2, -1.0, 1.0)
    other = 2 / (3 * n) * np.abs(inverse @ alternating.astype(inverse.dtype)).sum()
    return max(float(onenormest(inverse, t=1)), float(other))


def witnessed_condition(
    A: sp.csc_array, scaling: Scaling, solve: Callable[[np.ndarray, str], np.ndarray]
) -> float:
    """Lower bound of the condition of D_r A D_c by inverse iteration, infinity norm.

    Each x that `solve` finds proves |D_r A D_c| |x| / |D_r A D_c x|, however x was found: replaced
    pivots, which an estimate by the factors does not see, cannot make it too large.

    Parameters
    ----------
    A, scaling
        As for `scaled_condition`.
    solve : callable
        op(A)^-1 B for a (n, 1) block B and ``"N"`` or ``"H"``, as accurate as can be.
    """
    row, column = scaling.row[:, None], scaling.column[:, None]
    norm = float(_magnitude(A, scaling.row, scaling.column).sum(1).max())
    b = np.random.default_rng(0).standard_normal((A.shape[0], 1)).astype(A.dtype)
    found = 0.0
    with np.errstate(all="ignore"):
        for _ in range(2):  # by A^-1 A^-H, which leads to the least singular value
            y = solve((b / row).astype(A.dtype), "N") / column
            y /= np.abs(y).max()
            image = np.abs(row * (A @ (column * y))).max()
            if not np.isfinite(image):
                break  # an x that overflows is no witness
            found = max(found, norm / image if image else np.inf)
            b = solve((y / column).astype(A.dtype), "H") / row
            b /= np.abs(b).max()
    return found


SolveOnHost = Callable[[np.ndarray, str, None], tuple[np.ndarray, Errors | None, int]]


def assess(factor: NumericFactor, solve_on_host: SolveOnHost) -> None:
    """Refuse a singular matrix, warn of a nearly singular one.

    A matrix is refused where inverse iteration proves a condition number near 1/eps, or where
    not even refined solutions have a small backward error.

    Parameters
    ----------
    factor : NumericFactor
    solve_on_host : callable
        As `Solver.solve_on_host`.
    """
    eps, replaced = float(np.finfo(factor.dtype).eps), bool(factor.perturbed)
    scaling, A = factor.scaling, factor.matrix.A

    def by_factors(B: np.ndarray, trans: str, scaled: bool = True) -> np.ndarray:
        return direct(factor, B, trans, scaled=scaled)

    condition = scaled_condition(A, scaling, by_factors)
    if scaling is not None and (replaced or condition * eps > 0.1):
        # rounding hides from solutions how near to singular A is, where the factors tell it
        bound = 0.1 if condition * eps >= 10 else 1.0 if replaced else np.inf
        condition = max(condition, _witnessed(factor, scaling, solve_on_host, bound / eps))
    if condition * eps > 0.1:
        warn(
            f"the matrix is singular to working precision or nearly so: its condition number "
            f"is about {condition:.0e}; solutions have a small residual and few right digits",
            IllConditionedWarning,
        )


def _witnessed(
    factor: NumericFactor, scaling: Scaling, solve_on_host: SolveOnHost, bound: float
) -> float:
    """Condition number proved by refined solutions.

    Raises
    ------
    SingularMatrixError
        If it is above `bound`, or if the factor gives no solutions.
    """
    errors: list[float] = []

    def solved(B: np.ndarray, trans: str) -> np.ndarray:
        X, found, _ = solve_on_host(B, trans, None)
        if found is not None:
            errors.append(found.normwise[0])
        return X

    condition = witnessed_condition(factor.matrix.A, scaling, solved)
    if condition >= bound or not max(errors) <= np.finfo(factor.dtype).eps ** 0.75:
        raise SingularMatrixError.numerical(smallest_pivot_column(factor))
    return condition


def smallest_pivot_column(factor: NumericFactor) -> int:
    """Column of A with the smallest pivot for what it came from."""
    of = factor.matrix, factor.symbolic, factor.scaling
    return int(factor.symbolic.perm[int(np.argmin(relative_pivots(factor.diagonal(), *of)))])
