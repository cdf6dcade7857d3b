"""A matrix on the device: values, their scaling, and what looks at them."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from ...matrix.canonical import Canonical
from ...symbolic.scaling import Scaling, ScalingRequest
from ..runtime.array import Array
from ..runtime.graph import Launch
from .factorize import pivot_statistics
from .factorize.entries import PatternEntries
from .factorize.equilibration import Equilibration, Scales, scaled
from .pattern import DevicePattern
from .storage import PivotBlocks, Storage


class DeviceMatrix:
    """Values of a pattern on the device, and their scaling.

    Parameters
    ----------
    entries : PatternEntries
    values : array (nnz,) on the host, or on the device if `on_device`
        By columns.
    scaling : Scaling or ScalingRequest, optional
        Of rows and columns, or what it is to come from, with `scale`.
    scales : two device arrays (n,), optional
        A scaling that is there already.
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
    wanted : ScalingRequest or None
        What the scaling comes from, if it is made here.
    scales : two device arrays (n,), or None
        Of rows and columns.
    """

    def __init__(
        self,
        entries: PatternEntries,
        values: Any,
        scaling: Scaling | ScalingRequest | None,
        scales: Scales = (None, None),
        *,
        on_device: bool,
        hermitian: bool,
        borrowed: bool = False,
    ) -> None:
        upload, self._host_values, self._borrowed = (
            entries.device.upload,
            None if on_device else values,
            borrowed,
        )
        self.values: Array = values
        self.entries, self.hermitian, self.on_device, self._sent = (
            entries,
            hermitian,
            on_device,
            False,
        )
        self.wanted = scaling if isinstance(scaling, ScalingRequest) else None
        self._scaling = scaling if isinstance(scaling, Scaling) else None
        self._equilibration: Equilibration | None = None
        if self._scaling is not None:
            scales = upload(self._scaling.row), upload(self._scaling.column)
        self.scales = scales

    def send(self) -> None:
        """Begin to move values of the host to memory that a factor then has for them."""
        if not self.on_device:
            self.values, self._sent = (
                self.entries.device.upload(np.asarray(self._host_values)),
                True,
            )

    def settle(self, storage: Storage) -> None:
        """Put the values into the memory that a factor has for them, or take it."""
        if self._borrowed:
            return
        source, target = self.values, storage.values
        if target is None or target.dtype != source.dtype:
            adopted = self._sent or self.entries.owns(source)
            buffer = source if adopted else self.entries.device.xp.empty(source.size, source.dtype)
            target = storage.values = buffer
        if source.size and target is not source:
            self.entries.device.copy(source, target)
        self.values = target

    def of_copy(self, storage: Storage) -> DeviceMatrix:
        """The same beside a copy of its factor, which has a copy of the values."""
        twin, (row, column) = copy(self), self.scales
        twin.values = self.values if storage.values is None else storage.values
        if row is not None and column is not None:
            of_rows = row.copy()
            twin.scales = of_rows, of_rows if column is row else column.copy()
        return twin

    def separate_count(self, dtype: np.dtype) -> int:
        """Values that are factorized in this scalar type and are not those that are kept."""
        plain = self.wanted is None and self.scales[0] is None
        same = plain and self.values.dtype == dtype
        return 0 if same else self.entries.nnz

    @cached_property
    def host(self) -> Canonical:
        """The same on the host."""
        values = self._host_values
        if values is None:
            values = self.entries.device.download(self.values)
        return self.entries.symbolic.with_values(values, self.hermitian)

    @property
    def scaling(self) -> Scaling | None:
        """That of the values, on the host."""
        row, column = self.scales
        if self._scaling is None and row is not None and column is not None:
            of_rows = self.entries.device.download(row)
            of_columns = of_rows if column is row else self.entries.device.download(column)
            self._scaling = Scaling(of_rows, of_columns)
        return self._scaling

    def scaled(self, dtype: np.dtype) -> Array:
        """The values that are factorized, in the scalar type of the factors."""
        out = self.entries.device.xp.empty(self.values.size, dtype)
        self._write_scaled(out)
        return out

    def scale(self, out: Array, equilibration: Equilibration | None) -> Equilibration | None:
        """Put there the values that are factorized, in its scalar type, if they are elsewhere.

        Parameters
        ----------
        made : Equilibration, optional
            What has done so before.

        Returns
        -------
        Equilibration, optional
            What does so for such values.
        """
        if self.wanted is None or not self.entries.nnz:
            self._write_scaled(out)
            return equilibration
        if equilibration is None or not equilibration.fits(self.wanted, self.values, out):
            equilibration = Equilibration(self.entries, self.wanted, self.values, out)
        equilibration()
        self._equilibration, self.scales = equilibration, equilibration.scales
        return equilibration

    @property
    def uneven(self) -> bool:
        """Whether the scaling that was made, and waited for, is not that of the host."""
        return self._equilibration is not None and self._equilibration.uneven

    def _write_scaled(self, out: Array) -> None:
        entries, (row, column) = self.entries, self.scales
        if not entries.nnz or out is self.values:
            return
        if row is None or column is None:
            entries.device.copy(self.values, out)
        else:
            scaled(entries, (row, column), self.values, out)()

    def examination(
        self,
        pattern: DevicePattern,
        panels: Array,
        d: PivotBlocks | None,
        largest: Array | None,
        values: Array,
        numbers: Array,
        repeated: bool,
        columns: tuple[int, int] | None = None,
    ) -> Launch:
        """What looks at a new factor and the values that it is of; see
        `pivot_statistics.examination`.

        The symmetry of those that came from the host with the first factorization is known there.
        """
        entries = self.entries
        arguments = entries.pointer, entries.index, entries.perm, values
        unknown = (repeated or self._host_values is None) and entries.pattern.method.one_triangle
        lanes = entries.lanes if unknown else 0
        return pivot_statistics.examination(
            pattern, panels, d, largest, *arguments, lanes, numbers, columns
        )
