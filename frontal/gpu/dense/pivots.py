"""Row interchanges of LU for a batch, counted from 0 as SciPy does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..runtime.array import Array
from ..runtime.device import Device
from .arguments import Argument
from .copies import copied_batch, copy_list, split
from .lists import Batch as Listed
from .lists import Form
from .operands import Batch, Matrices


@dataclass(frozen=True)
class Pivots:
    """Interchanges of each matrix, one after the other in memory.

    Attributes
    ----------
    kind : {"matrix", "stack", "list"}
    flat : (total,) int32 array, or `Batch` of them
    size : int64 array (count,), on the host
        Interchanges of each matrix.
    batch : Batch
        A column for each matrix, as the drivers take them.
    """

    kind: str
    flat: Array | Listed
    size: np.ndarray
    batch: Batch

    @classmethod
    def empty(cls, held: Argument) -> Pivots:
        """Allocate the pivots of matrices to be factored."""
        size = np.minimum(held.batch.m, held.batch.n).astype(np.int64)
        if isinstance(held.arrays, Listed):
            form = Form.dense(np.dtype(np.int32), size, np.ones_like(size), vectors=True)
            return cls._listed(Listed.new(form, held.batch.device), held.batch.device)
        flat = held.batch.device.xp.empty(int(size.sum()), np.int32)
        return cls._of(held, flat, size)

    @classmethod
    def _listed(cls, columns: Listed, device: Device) -> Pivots:
        return cls("list", columns, columns.form.m, columns.described(device))

    @classmethod
    def _of(cls, held: Argument, flat: Array, size: np.ndarray) -> Pivots:
        if held.kind == "list":
            columns: Matrices = split(flat, size, np.ones_like(size))
        else:
            columns = cls._shaped(held, flat)[..., None]
        return cls(held.kind, flat, size, Batch.of(held.batch.device, columns))

    @staticmethod
    def _shaped(held: Argument, flat: Array) -> Array:
        shape = held.arrays.shape
        return flat.reshape(*shape[:-2], min(shape[-2:]))

    def result(self, held: Argument) -> Matrices:
        """Return the pivots, one vector a matrix."""
        if isinstance(self.flat, Listed):
            return self.flat
        if self.kind != "list":
            return self._shaped(held, self.flat)
        end = np.cumsum(self.size).tolist()
        return [self.flat[i:j] for i, j in zip([0, *end], end, strict=False)]

    @classmethod
    def given(cls, held: Argument, piv: Matrices) -> Pivots:
        """Take the pivots that a user passes back, checked for kind, type and sizes."""
        device, size = held.batch.device, held.batch.n.astype(np.int64)
        if isinstance(held.arrays, Listed):
            return cls._given_batch(device, size, piv)
        xp, is_list = device.xp, held.kind == "list"
        given_list = isinstance(piv, Sequence)
        each: list[Array] = list(piv) if given_list else [piv]
        if given_list != is_list or not all(
            isinstance(p, xp.ndarray) and p.dtype == np.int32 for p in each
        ):
            raise TypeError("piv must be the int32 pivots that lu_factor returned")
        wanted = [(k,) for k in size.tolist()] if is_list else [held.arrays.shape[:-1]]
        if [p.shape for p in each] != wanted:
            raise ValueError("piv must have one number for each column of each matrix")
        if not is_list:
            return cls._of(held, each[0].ravel(), size)
        flat = xp.empty(int(size.sum()), np.int32)
        # the copying kernel knows the four scalars, of which float32 has the size of a pivot
        target = split(flat.view(np.float32), size, np.ones_like(size))
        copy_list([p[:, None].view(np.float32) for p in each], target, device)
        return cls._of(held, flat, size)

    @classmethod
    def _given_batch(cls, device: Device, size: np.ndarray, piv: Matrices | Listed) -> Pivots:
        if not isinstance(piv, Listed) or piv.dtype != np.int32 or not piv.form.vectors:
            raise TypeError("piv must be the int32 pivots that lu_factor returned")
        if not np.array_equal(piv.form.m, size):
            raise ValueError("piv must have one number for each column of each matrix")
        contiguous = bool(((piv.form.row == 1) | (piv.form.m <= 1)).all())
        return cls._listed(piv if contiguous else copied_batch(piv, device), device)
