"""Row interchanges of LU for a batch, counted from 0 as in SciPy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..runtime.array import Array
from ..runtime.device import Device
from .arguments import Argument
from .copies import copied
from .lists import Arrays
from .lists import Batch as Listed
from .operands import MatrixBatch


@dataclass(frozen=True)
class Pivots:
    """Row interchanges of each matrix, consecutive in memory.

    Attributes
    ----------
    arrays : int32 array or `lists.Batch`
        A vector for each matrix, as users see them.
    batch : MatrixBatch
        A column for each matrix, as the drivers take them.
    """

    arrays: Arrays
    batch: MatrixBatch

    @classmethod
    def empty(cls, operand: Argument) -> Pivots:
        """Allocate the pivots of matrices to be factored."""
        pivots = operand.new(np.minimum(*operand.sizes), 1, np.int32, vectors=True)
        return cls(pivots.result(), pivots.batch)

    @classmethod
    def from_user(cls, factor: Argument, piv: Arrays) -> Pivots:
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
        return (
            cls._from_list(piv, device) if isinstance(piv, Listed) else cls._from_array(piv, device)
        )

    @classmethod
    def _from_list(cls, piv: Listed, device: Device) -> Pivots:
        vectors = piv if piv.form.ld is not None else copied(piv, device)
        assert isinstance(vectors, Listed)
        return cls(vectors, vectors.described(device))

    @classmethod
    def _from_array(cls, piv: Array, device: Device) -> Pivots:
        vectors = piv.ravel().reshape(*piv.shape)
        return cls(vectors, MatrixBatch.from_array(device, vectors[..., None]))
