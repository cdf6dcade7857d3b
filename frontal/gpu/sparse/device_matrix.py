"""A matrix on the device: values, their scaling, and their examination."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..._typing import Untyped
from ...matrix.canonical import Canonical
from ...symbolic.scaling import Scaling, ScalingRequest
from ..runtime.array import Array
from ..runtime.graph import Launch
from .factorize import pivot_statistics
from .factorize.entries import PatternEntries
from .factorize.equilibration import Equilibration, Scales, scaled
from .storage import ComputedFactor, Storage


class GivenValues(NamedTuple):
    """Values of a pattern as passed to a factorization."""

    values: Untyped  # (nnz,): by columns, on the device or the host
    scaling: Scaling | ScalingRequest | None  # of rows and columns, or a request to compute it
    scales: Scales = (None, None)  # (n,): a scaling that is already on the device
    on_device: bool = True
    hermitian: bool = False  # A is known to be exactly Hermitian
    # the values stay in the caller's memory, which must stay valid and unchanged
    borrowed: bool = False


class DeviceMatrix:
    """Values of a pattern on the device, and their scaling.

    Attributes
    ----------
    values : array (nnz,)
        The given ones, until `settle` stores them with their factor.
    wanted : ScalingRequest or None
        The request, if the scaling is computed here.
    scales : two device arrays (n,), or None
        Of rows and columns.
    """

    def __init__(self, entries: PatternEntries, inputs: GivenValues) -> None:
        self.values: Array = inputs.values
        self.entries, self.hermitian, self.on_device = entries, inputs.hermitian, inputs.on_device
        self._host_values = None if inputs.on_device else inputs.values
        self._borrowed, self._sent = inputs.borrowed, False
        scaling, self.scales = inputs.scaling, inputs.scales
        self.wanted = scaling if isinstance(scaling, ScalingRequest) else None
        self._scaling = scaling if isinstance(scaling, Scaling) else None
        self._equilibration: Equilibration | None = None
        if self._scaling is not None:
            upload = entries.device.upload
            self.scales = upload(self._scaling.row), upload(self._scaling.column)

    def send(self) -> None:
        """Begin to upload values of the host, to memory that the factor then owns."""
        if not self.on_device:
            self.values = self.entries.device.upload(np.asarray(self._host_values))
            self._sent = True

    def settle(self, storage: Storage) -> None:
        """Copy the values to the memory of a factor, or make their memory that of the factor."""
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
        """Return this matrix for a copy of its factor, which has a copy of the values."""
        twin, (row, column) = copy(self), self.scales
        twin.values = self.values if storage.values is None else storage.values
        if row is not None and column is not None:
            of_rows = row.copy()
            twin.scales = of_rows, of_rows if column is row else column.copy()
        return twin

    def separate_count(self, dtype: np.dtype) -> int:
        """Return the number of values in separate memory for this scalar type, or 0."""
        plain = self.wanted is None and self.scales[0] is None
        same = plain and self.values.dtype == dtype
        return 0 if same else self.entries.nnz

    @cached_property
    def host(self) -> Canonical:
        """The matrix on the host."""
        values = self._host_values
        if values is None:
            values = self.entries.device.download(self.values)
        return self.entries.symbolic.with_values(values, self.hermitian)

    @property
    def scaling(self) -> Scaling | None:
        """Scaling of the values, on the host."""
        row, column = self.scales
        if self._scaling is None and row is not None and column is not None:
            of_rows = self.entries.device.download(row)
            of_columns = of_rows if column is row else self.entries.device.download(column)
            self._scaling = Scaling(of_rows, of_columns)
        return self._scaling

    def scaled(self, dtype: np.dtype) -> Array:
        """Return the values that are factorized, in the scalar type of the factors."""
        out = self.entries.device.xp.empty(self.values.size, dtype)
        self._write_scaled(out)
        return out

    def scale(self, out: Array, equilibration: Equilibration | None) -> Equilibration | None:
        """Write the values that are factorized to `out`, in its scalar type, unless they are there.

        Returns the `Equilibration` for the next values in the same memory, which is passed then.
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
        """Return whether the host would use another scaling; the device was waited for."""
        return self._equilibration is not None and self._equilibration.uneven

    def _write_scaled(self, out: Array) -> None:
        entries, (row, column) = self.entries, self.scales
        if not entries.nnz or out is self.values:
            return
        if row is None or column is None:
            entries.device.copy(self.values, out)
        else:
            scaled(entries, (row, column), self.values, out)()

    def examination(self, factor: ComputedFactor) -> Launch:
        """Return the launch that examines a new factor and the values it was computed from.

        See `pivot_statistics.examination`. In the first factorization of values from the host,
        symmetry is not checked: the host has checked it.
        """
        unknown = factor.repeated or self._host_values is None
        return pivot_statistics.examination(self.entries, factor, symmetry=unknown)
