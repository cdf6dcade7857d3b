"""The unknowns of a Schur complement as users choose them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..backend.choose import requested


def required_index(schur: ArrayLike | None, n: int) -> np.ndarray | None:
    """Return the `schur` of `frontal.analyze` as distinct int32 indices; None if not given.

    Raises
    ------
    ValueError, TypeError
        If it is neither a (k,) array of distinct integers from 0 to n - 1 nor an (n,) bool array.
    """
    if schur is None:
        return None
    index = np.asarray(schur)
    if index.dtype.kind == "b":
        if index.shape != (n,):
            raise ValueError(f"schur has shape {index.shape}, a mask of the matrix needs {(n,)}")
        return np.flatnonzero(index).astype(np.int32)
    if index.ndim != 1:
        raise ValueError(f"schur has shape {index.shape}, but must be a vector of indices")
    if not index.size:
        return np.empty(0, np.int32)
    if index.dtype.kind not in "iu":
        raise TypeError(f"schur has dtype {index.dtype}, but must hold integers or booleans")
    outside = np.flatnonzero((index < 0) | (index >= n))
    if outside.size:
        at = outside[0]
        raise ValueError(f"schur[{at}] is {index[at]}; indices are from 0 to {n - 1}")
    values, count = np.unique(index, return_counts=True)
    if values.size < index.size:
        raise ValueError(f"schur has index {values[count > 1][0]} more than once")
    return index.astype(np.int32)


def host_backend(name: str) -> str:
    """Return ``"cpu"``, the backend of Schur complements; raise ValueError for ``"gpu"``."""
    if name == "gpu" or (name != "auto" and requested(name) != "cpu"):
        raise ValueError("Schur complements are computed on the CPU. Try: backend='cpu'")
    return "cpu"


def require_same_schur(schur: ArrayLike | None, planned: np.ndarray | None, n: int) -> None:
    """Raise ValueError if `schur` is given and differs from that `planned` by an analysis."""
    index = required_index(schur, n)
    if index is None:
        return
    if planned is None or not np.array_equal(planned, index):
        raise ValueError("the analysis has another `schur`. Try: frontal.analyze(A, schur=...)")
