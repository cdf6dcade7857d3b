"""A matrix on the device: values, their scaling, and what looks at them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ...matrix import Canonical
from ...symbolic.scaling import Scaling, scaled
from ..runtime.array import Array
from ..runtime.graph import Launch
from . import health, launch
from .entries import Entries
from .storage import Blocks


class DeviceMatrix:
    """Values of a pattern on the device, and their scaling.

    Parameters
    ----------
    entries : Entries
    values : array (nnz,) on the host, or on the device if `there`
        By columns. Kept, not copied, if on the device.
    scaling : Scaling, optional
        Of rows and columns.
    scales : two device arrays (n,), optional
        The same, if they are there already.
    hermitian : bool
        A is known to be exactly Hermitian.
    """

    def __init__(
        self,
        entries: Entries,
        values: Any,
        scaling: Scaling | None,
        scales: tuple[Array | None, Array | None] | None,
        *,
        there: bool,
        hermitian: bool,
    ) -> None:
        upload, self._given = entries.device.upload, None
        if not there:
            values, self._given = upload(values), values
        self.values: Array = values
        self.entries, self.scaling, self.hermitian = entries, scaling, hermitian
        if scaling is None:
            scales = (None, None)
        elif scales is None:
            scales = upload(scaling.row), upload(scaling.column)
        self.scales: tuple[Array | None, Array | None] = scales

    @cached_property
    def host(self) -> Canonical:
        """The same on the host."""
        values = self._given
        if values is None:
            values = self.entries.device.download(self.values)
        return self.entries.symbolic.with_values(values, self.hermitian)

    def scaled(self, dtype: np.dtype) -> Array:
        """The values that are factorized, in the scalar type of the factors."""
        out = self.entries.device.xp.empty(self.values.size, dtype)
        self.put_scaled(out)
        return out

    def put_scaled(self, out: Array) -> None:
        """Put there the values that are factorized, in its scalar type."""
        entries, (row, column) = self.entries, self.scales
        if not entries.nnz:
            return
        if row is None or column is None:
            entries.device.copy(self.values, out)
        elif self.scaling is not None and self.scaling.extreme:
            entries.device.copy(self._scaled_on_host(self.scaling).astype(out.dtype), out)
        elif out.dtype == self.values.dtype:
            self._scale(row, column, out)
        else:
            entries.device.copy(self.scaled(self.values.dtype), out)

    def _scale(self, row: Array, column: Array, out: Array) -> None:
        entries = self.entries
        blocks = launch.system_blocks(entries.n * entries.lanes, entries.device.limits)
        constants = health.constants(entries.pattern)
        kernel = entries.device.kernel("system.cu", "system_scale", self.values.dtype, **constants)
        sizes = np.int32(entries.n), np.int32(entries.lanes)
        arguments = (*sizes, entries.pointer, entries.index, row, column, self.values, out)
        kernel((blocks,), (launch.SYSTEM_THREADS,), arguments)

    def _scaled_on_host(self, scaling: Scaling) -> np.ndarray:
        """As `scaled`, where the kernel's product of two factors may overflow."""
        of, values = self.entries.symbolic, self.entries.device.download(self.values)
        return scaled(of.indptr, of.indices, values, scaling.row, scaling.column)

    def examination(
        self,
        panels: Array,
        d: Blocks | None,
        largest: Array | None,
        values: Array,
        found: Array,
        again: bool,
    ) -> Launch:
        """What looks at a new factor and the values that it is of; see `health.examination`.

        The symmetry of those that came from the host with the first factorization is known there.
        """
        entries = self.entries
        of = entries.pointer, entries.index, entries.perm, values
        # by rows and by columns, the entries of one triangle are the other's mirror images
        unknown = (again or self._given is None) and entries.pattern.method.one_triangle
        mirror = entries.by_rows[2] if unknown else None
        return health.examination(entries.pattern, panels, d, largest, *of, mirror, found)
