"""Values and right-hand sides of batches, converted to arrays with one row for each system."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from .._typing import is_on_cupy
from ..errors import NonFiniteInputError
from ..matrix.canonical import working_dtype
from ..matrix.exact import refuse_inexact, refuse_masked
from ..matrix.value_map import ValueMap
from ..numeric.linear_system import Vectors
from ..symbolic.phase import Symbolic

AnyArray: TypeAlias = Vectors  # user input: arrays of NumPy or CuPy, lists, matrices


class RhsBlock(NamedTuple):
    """Right-hand sides (batch or 1, k, n), and the map from (batch, k, n) to the shape of b.

    Attributes
    ----------
    for_each : bool
        Whether b has a batch axis.
    """

    values: AnyArray
    restore: Callable[[AnyArray], AnyArray]
    for_each: bool

    def refuse_non_finite(self) -> None:
        """Raise if b contains NaN or infinity."""
        if bool(module_of(self.values, True).isfinite(self.values).all()):
            return
        B = on_host(self.values)
        i, c, j = (int(a) for a in np.argwhere(~np.isfinite(B))[0])
        system = (i,) if self.for_each else ()
        index = (*system, j, *((c,) if self.restore is _turned else ()))
        raise NonFiniteInputError("b", index, B[i, c, j].item())


def on_host(x: AnyArray) -> AnyArray:
    """Return an array of CuPy as a copy on the host; other objects unchanged."""
    return x.get() if is_on_cupy(x) else x


def module_of(x: AnyArray, on_device: bool) -> AnyArray:
    """Return CuPy for arrays that stay on the device, otherwise NumPy."""
    return sys.modules["cupy"] if on_device and is_on_cupy(x) else np


def arranged_values(
    values: AnyArray,
    order: ValueMap,
    symbolic: Symbolic,
    on_device: bool = False,
    *,
    fresh: bool = True,
) -> AnyArray:
    """Return values (batch, nnz) by columns.

    Parameters
    ----------
    values : (batch, ...) array
        Each row is ``A.data`` of a matrix, in the order of `order`.
    order : ValueMap
    symbolic : Symbolic
        Of the pattern.
    on_device : bool
        Whether arrays of CuPy stay on their device.
    fresh : bool
        Always return a copy.

    Raises
    ------
    ValueError
        If the shape does not fit.
    """
    refuse_masked(values, "values")
    array, xp = values if on_device else np.asarray(on_host(values)), module_of(values, on_device)
    work, nnz = working_dtype(array.dtype, "values"), symbolic.indices.size
    refuse_inexact(array, "values")
    if array.ndim < 2 or array.shape[1:] != order.shape:
        shape = ", ".join(str(k) for k in order.shape)
        raise ValueError(
            f"values has shape {array.shape}, but A stores {shape} values: values must be "
            f"(batch, {shape}), each row in the order of A.data. Try: values.T, if systems are "
            "stored by columns"
        )
    count = array.shape[0]
    if order.is_by_columns:
        make = xp.array if fresh else xp.asarray
        return make(array.reshape(count, nnz), work, order="C")
    order.require(np.empty(order.shape))
    array = array.reshape(count, -1)
    place = order.place
    if place is None:
        place = order.by_rows(symbolic.indptr, symbolic.indices)
    if order.repeated:
        csr_arrays = np.ones(place.size, work), place, np.arange(place.size + 1)
        into = sp.csr_array(csr_arrays, shape=(place.size, nnz))
        return xp.asarray(np.ascontiguousarray(on_host(array) @ into, work))
    out = xp.empty((count, nnz), work)
    out[:, xp.asarray(place)] = array
    return out


def rhs_block(b: AnyArray, count: int, n: int, dtype: np.dtype) -> RhsBlock:
    """Convert right-hand sides to a `RhsBlock`.

    Parameters
    ----------
    b : (n,), (n, k), (batch, n) or (batch, n, k) array
        If both (batch, n) and (n, k) fit, b is read as (batch, n).
    count, n : int
    dtype : numpy.dtype
        Of the matrices.
    """
    xp = module_of(b, True)
    values = xp.asarray(b)
    work = working_dtype(np.result_type(dtype, values.dtype), "b")
    refuse_inexact(values, "b")
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
    B = xp.ascontiguousarray(block, work)
    if xp is np:
        B = np.require(B, requirements=["C", "W"])
    for_each = values.ndim == 3 or (values.ndim == 2 and restore is _first)
    return RhsBlock(B, restore, for_each)


def _first(X: AnyArray) -> AnyArray:
    return X[:, 0]


def _turned(X: AnyArray) -> AnyArray:
    return X.transpose(0, 2, 1)


def rhs_list(b: Sequence[AnyArray], members: np.ndarray, n: int, dtype: np.dtype) -> RhsBlock:
    """Do as `rhs_block` for the items `members` of a list of right-hand sides (n,) or (n, k)."""
    parts = [np.asarray(on_host(b[i])) for i in members.tolist()]
    if len({block.shape for block in parts}) > 1:
        raise ValueError(
            "right-hand sides of matrices of one pattern must have one shape, not "
            f"{sorted({block.shape for block in parts})}"
        )
    single = not parts or parts[0].ndim == 1
    stack = np.stack([b[:, None] if single else b for b in parts])
    block = rhs_block(stack, members.size, n, dtype)
    return block._replace(restore=_first) if single else block
