"""Values and right-hand sides of batches: from what users have to one row of an array a system."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from ..accuracy import Vectors
from ..errors import NonFiniteInputError
from ..matrix import working_dtype
from ..symbolic.symbolic import Symbolic
from ..values import StoredOrder

Given: TypeAlias = Vectors  # what users have: arrays of NumPy or CuPy, lists, matrices
Block = tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]


def on_host(x: Given) -> Given:
    """An array of CuPy on the host; others as they are."""
    return x.get() if hasattr(x, "__cuda_array_interface__") and hasattr(x, "get") else x


def arranged_values(values: Given, order: StoredOrder, symbolic: Symbolic) -> np.ndarray:
    """Values (batch, nnz) by columns, in an array of their own.

    Parameters
    ----------
    values : (batch, ...) array
        In each row what ``A.data`` is of a matrix in this order.
    order : StoredOrder
    symbolic : Symbolic
        With the pattern.

    Raises
    ------
    ValueError
        If the shape does not fit.
    """
    given = np.asarray(on_host(values))
    work, nnz = working_dtype(given.dtype, "values"), symbolic.indices.size
    if given.ndim < 2 or given.shape[1:] != order.shape:
        shape = ", ".join(str(k) for k in order.shape)
        raise ValueError(
            f"values has shape {given.shape}, and A stores {shape} of them: values must be "
            f"(batch, {shape}), each row in the order of A.data. Try: values.T, if systems are "
            "columns"
        )
    count = given.shape[0]
    if order.is_by_columns:
        return np.array(given.reshape(count, nnz), work, order="C")
    order.require(given[0] if count else np.empty(order.shape))
    given = given.reshape(count, -1)
    place = order.place
    if place is None:
        place = order.by_rows(symbolic.indptr, symbolic.indices)
    out = np.zeros((count, nnz), work)
    if order.repeated:
        np.add.at(out.T, place, given.T.astype(work, copy=False))
    else:
        out[:, place] = given
    return out


def rhs_block(b: np.ndarray, count: int, n: int, dtype: np.dtype) -> Block:
    """Right-hand sides (batch or 1, k, n), and what gives solutions (batch, k, n) the shape of b.

    Parameters
    ----------
    b : (n,), (n, k), (batch, n) or (batch, n, k) array
        Of (batch, n) and (n, k) the first is meant where both fit.
    count, n : int
    dtype : numpy.dtype
        Of the matrices.
    """
    values = np.asarray(b)
    work = working_dtype(np.result_type(dtype, values.dtype), "b")
    shape = values.shape
    if shape == (count, n) and values.ndim == 2:
        block, restore = values[:, None, :], _first
    elif values.ndim == 1 and shape[0] == n:
        block, restore = values[None, None, :], _first
    elif values.ndim == 2 and shape[0] == n:
        block, restore = values.T[None], _turned
    elif values.ndim == 3 and shape[:2] == (count, n):
        block, restore = values.transpose(0, 2, 1), _turned
    else:
        raise ValueError(
            f"b has shape {shape}, and there are {count} systems of {n} equations: b must be "
            f"({n},), ({n}, k), ({count}, {n}) or ({count}, {n}, k)"
        )
    B = np.require(np.ascontiguousarray(block, work), requirements=["C", "W"])
    bad = np.argwhere(~np.isfinite(B))
    if bad.size:
        i, c, j = (int(a) for a in bad[0])
        of_all = (i,) if values.ndim == 3 or (values.ndim == 2 and restore is _first) else ()
        index = (*of_all, j, *((c,) if restore is _turned else ()))
        raise NonFiniteInputError("b", index, B[i, c, j].item())
    return B, restore


def _first(X: np.ndarray) -> np.ndarray:
    return X[:, 0]


def _turned(X: np.ndarray) -> np.ndarray:
    return X.transpose(0, 2, 1)


def rhs_list(b: Sequence[Given], members: np.ndarray, n: int, dtype: np.dtype) -> Block:
    """As `rhs_block`, for some items of a list of right-hand sides (n,) or (n, k)."""
    parts = [np.asarray(on_host(b[i])) for i in members.tolist()]
    if len({part.shape for part in parts}) > 1:
        raise ValueError(
            "right-hand sides of matrices of one pattern must have one shape, "
            f"these have {sorted({part.shape for part in parts})}"
        )
    single = not parts or parts[0].ndim == 1
    stack = np.stack([part[:, None] if single else part for part in parts])
    B, restore = rhs_block(stack, members.size, n, dtype)
    return B, _first if single else restore
