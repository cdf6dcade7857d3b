"""Row interchanges of LU for a batch, counted from 0 as SciPy does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..runtime.array import Array
from ..runtime.device import Device
from .arguments import Argument
from .copies import copied
from .lists import Batch as Listed
from .lists import Held
from .operands import MatrixBatch


@dataclass(frozen=True)
class Pivots:
    """Interchanges of each matrix, one after the other in memory.

    Attributes
    ----------
    arrays : int32 array or `lists.Batch`
        As users see them: a vector for each matrix.
    batch : Batch
        A column for each matrix, as the drivers take them.
    """

    arrays: Held
    batch: MatrixBatch

    @classmethod
    def empty(cls, held: Argument) -> Pivots:
        """Allocate the pivots of matrices to be factored."""
        made = held.new(np.minimum(*held.sizes), 1, np.int32, vectors=True)
        return cls(made.result(), made.batch)

    @classmethod
    def given(cls, held: Argument, piv: Held) -> Pivots:
        """Take the pivots that a user passes back, checked for kind, type and sizes."""
        device, is_list = held.batch.device, held.kind == "list"
        known = isinstance(piv, Listed) if is_list else isinstance(piv, device.xp.ndarray)
        if not known or (len(piv) and getattr(piv, "dtype", None) != np.int32):
            raise TypeError("piv must be the int32 pivots that lu_factor returned")
        if isinstance(piv, Listed):
            fits = np.array_equal(piv.form.m, held.batch.n) and (piv.form.vectors or not len(piv))
        else:
            fits = piv.shape == held.arrays.shape[:-1]
        if not fits:
            raise ValueError("piv must have one number for each column of each matrix")
        return cls._listed(piv, device) if isinstance(piv, Listed) else cls._of(piv, device)

    @classmethod
    def _listed(cls, piv: Listed, device: Device) -> Pivots:
        held = piv if piv.form.ld is not None else copied(piv, device)
        assert isinstance(held, Listed)
        return cls(held, held.described(device))

    @classmethod
    def _of(cls, piv: Array, device: Device) -> Pivots:
        held = piv.ravel().reshape(*piv.shape)
        return cls(held, MatrixBatch.of(device, held[..., None]))
