"""A matrix on the device: values, their scaling, and what looks at them."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from ...matrix import Canonical
from ...symbolic.scaling import Scaling, scaled
from ..runtime.array import Array
from ..runtime.graph import Launch
from . import health, launch
from .entries import Entries
from .pattern import Pattern
from .storage import Blocks, Storage


class DeviceMatrix:
    """Values of a pattern on the device, and their scaling.

    Parameters
    ----------
    entries : Entries
    values : array (nnz,) on the host, or on the device if `there`
        By columns.
    scaling : Scaling, optional
        Of rows and columns.
    scales : two device arrays (n,), optional
        The same, if they are there already.
    hermitian : bool
        A is known to be exactly Hermitian.
    kept : bool
        Values that are there stay where they are, and as they are, for as long as this lives.

    Attributes
    ----------
    values : array (nnz,)
        Those that were given, until `settle` has put them with their factor.
    there : bool
        They were given on the device.
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
        kept: bool = False,
    ) -> None:
        upload, self._given, self._kept = entries.device.upload, None if there else values, kept
        self.values: Array = values
        self.entries, self.scaling, self.hermitian = entries, scaling, hermitian
        self.there = there
        if scaling is None:
            scales = (None, None)
        elif scales is None:
            scales = upload(scaling.row), upload(scaling.column)
        self.scales: tuple[Array | None, Array | None] = scales

    def settle(self, storage: Storage) -> None:
        """Put the values into the memory that a factor has for them, or take it."""
        if self._kept:
            return
        given, there = self.values, storage.values
        if there is None or there.dtype != given.dtype:
            there = storage.values = self.entries.device.xp.empty(given.size, given.dtype)
        if given.size and there is not given:
            self.entries.device.copy(given, there)
        self.values = there

    def of_copy(self, storage: Storage) -> DeviceMatrix:
        """The same beside a copy of its factor, which has a copy of the values."""
        twin = copy(self)
        twin.values = self.values if storage.values is None else storage.values
        return twin

    def apart(self, dtype: np.dtype) -> int:
        """Values that are factorized in this scalar type and are not those that are kept."""
        same = self.scaling is None and not self._kept and self.values.dtype == dtype
        return 0 if same else self.entries.nnz

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
        """Put there the values that are factorized, in its scalar type, if they are elsewhere."""
        entries, (row, column) = self.entries, self.scales
        if not entries.nnz or out is self.values:
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
        pattern: Pattern,
        panels: Array,
        d: Blocks | None,
        largest: Array | None,
        values: Array,
        found: Array,
        again: bool,
        columns: tuple[int, int] | None = None,
    ) -> Launch:
        """What looks at a new factor and the values that it is of; see `health.examination`.

        The symmetry of those that came from the host with the first factorization is known there.
        """
        entries = self.entries
        of = entries.pointer, entries.index, entries.perm, values
        unknown = (again or self._given is None) and entries.pattern.method.one_triangle
        lanes = entries.lanes if unknown else 0
        return health.examination(pattern, panels, d, largest, *of, lanes, found, columns)
