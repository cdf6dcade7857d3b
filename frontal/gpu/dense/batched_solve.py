"""Factorization and solution of batches of systems in one call."""

from __future__ import annotations

from typing import Any

from ..runtime.array import Array
from ..runtime.device import Device
from . import batched
from .arguments import M
from .call_cache import cached_call
from .lists import Arrays
from .outcome import outcome


def solve(
    a: M,
    b: M,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check: bool = True,
    assume_a: str = "gen",
) -> Any:
    """Solve A x = b by LU with partial pivoting, or by Cholesky.

    Parameters
    ----------
    a : (n, n) array, (count, n, n) array, or list of (n_i, n_i) arrays
    b : as ``a``, (n, k) or (n,) each
        Right-hand sides.
    lower : bool
        With ``assume_a="pos"``, read the lower triangle of ``a``; default: the upper one.
    overwrite_a, overwrite_b : bool
        Permit the factors and the solution in the memory of ``a`` and ``b``.
    check : bool
        Wait, and raise if a matrix is singular or not positive definite.
    assume_a : {"gen", "pos"}
        General, or Hermitian positive definite.

    Returns
    -------
    x : as ``b``
    info : (count,) int32 array
        With ``check=False`` only: 0, or the first column without a pivot, counted from 1.

    Raises
    ------
    ValueError
        If sizes do not fit, or for an unknown ``assume_a``.
    BatchError
        With ``check=True``, with the indices of the matrices that failed.

    Examples
    --------
    >>> import cupy as cp
    >>> from frontal.gpu import batched
    >>> batched.solve(cp.array([[1.0, 2.0], [2.0, 6.0]]), cp.array([3.0, 8.0]))
    array([1., 1.])
    """
    if assume_a not in ("gen", "pos"):
        raise ValueError(f"assume_a must be 'gen' or 'pos', not {assume_a!r}")
    overwrite = bool(overwrite_a) + 2 * bool(overwrite_b)
    if assume_a == "pos":
        x, info = cached_call(_by_cholesky, ("a", "b"), (a, b), (bool(lower),), overwrite)
        return outcome("cholesky", x, info, check)
    x, info = cached_call(_by_lu, ("a", "b"), (a, b), (), overwrite)
    return outcome("lu_factor", x, info, check)


def _by_cholesky(
    device: Device, a: Arrays, b: Arrays, lower: bool, overwrite: int
) -> tuple[Arrays, Array]:
    c, info = batched.run_cholesky(device, a, lower, bool(overwrite & 1))
    (x,) = batched.run_cho_solve(device, c, b, lower, bool(overwrite & 2))
    return x, info


def _by_lu(device: Device, a: Arrays, b: Arrays, overwrite: int) -> tuple[Arrays, Array]:
    factors, piv, info = batched.run_lu_factor(device, a, bool(overwrite & 1))
    (x,) = batched.run_lu_solve(device, factors, piv, b, 0, bool(overwrite & 2))
    return x, info
