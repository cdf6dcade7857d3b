"""Row interchanges of LU for a batch, counted from 0 as in SciPy: a column for each matrix."""

from __future__ import annotations

import numpy as np

from .arguments import Argument
from .copies import copied
from .lists import Arrays, described
from .lists import Batch as Listed
from .operands import MatrixBatch


def new_pivots(operand: Argument) -> Argument:
    """Allocate the pivots of matrices to be factored."""
    return operand.new(np.minimum(*operand.sizes), 1, np.int32, vectors=True)


def pivots_of(factor: Argument, piv: Arrays) -> MatrixBatch:
    """Check kind, type and sizes of the pivots that a user passes, and return them."""
    device, is_list = factor.batch.device, factor.kind == "list"
    is_array = isinstance(piv, Listed) if is_list else isinstance(piv, device.xp.ndarray)
    if not is_array or (len(piv) and getattr(piv, "dtype", None) != np.int32):
        raise TypeError("piv must be the int32 pivots that lu_factor returned")
    if isinstance(piv, Listed):
        fits = np.array_equal(piv.form.m, factor.batch.n) and (piv.form.vectors or not len(piv))
    else:
        fits = piv.shape == factor.arrays.shape[:-1]
    if not fits:
        raise ValueError("piv must have one number for each column of each matrix")
    if isinstance(piv, Listed):
        return described(piv if piv.form.ld is not None else copied(piv, device), device)
    return described(piv.ravel().reshape(*piv.shape)[..., None], device)
