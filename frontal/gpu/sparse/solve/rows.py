"""Matrix data for kernels on the device: the rows of op(A), and the orders around its sweeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from ...runtime.array import NULL, Array, Value
from ..factorize.entries import PatternEntries
from ..factorize.equilibration import Scales
from ..workspace import FactorWorkspace

CONJUGATED, MIRRORED = 1, 2  # flags of rows, as in rows.cuh


class Resident(Protocol):
    """A matrix that stays on the device with its factor."""

    entries: PatternEntries
    values: Array  # (nnz,): by columns
    scales: Scales  # (n,): of rows and columns
    hermitian: bool  # A is known to be exactly Hermitian: its columns are read as rows
    storage: FactorWorkspace


@dataclass(eq=False)
class OtherValues:
    """Other values of the pattern beside a factor: a `Resident` that does not solve."""

    entries: PatternEntries
    values: Array
    scales: Scales
    hermitian: bool
    storage: FactorWorkspace


class Order(NamedTuple):
    """Permutation and scaling of vectors before or after the sweeps."""

    place: Array  # (n,) int32
    scale: Array | None  # (n,)
    conjugate: np.int32  # whether entries are conjugated

    @property
    def arguments(self) -> tuple[Value, ...]:
        """Arguments of kernels."""
        return *self.places, self.conjugate

    @property
    def places(self) -> tuple[Value, Value]:
        """Arguments of kernels for real vectors."""
        return self.place, NULL if self.scale is None else self.scale


class Ends(NamedTuple):
    """Permutation and scaling around sweeps that solve with op(A)."""

    # before and after the sweeps
    enter: Order
    leave: Order
    transposed: bool  # the sweeps are those of the transpose


def ends_of(resident: Resident, trans: str) -> Ends:
    """Return permutation and scaling around sweeps that solve with op(A).

    For Hermitian A the factor solves A X = B, and A^T is the conjugate of A; for complex symmetric
    A, A^H is.
    """
    entries, method = resident.entries, resident.entries.pattern.method
    conjugated = "T" if method.transpose_is_conjugate else "H"
    conjugate = np.int32(resident.values.dtype.kind == "c" and trans == conjugated)
    rows = Order(entries.row_perm, resident.scales[0], conjugate)
    columns = Order(entries.perm, resident.scales[1], conjugate)
    enter, leave = (rows, columns) if trans == "N" else (columns, rows)
    return Ends(enter, leave, trans != "N" and not method.one_triangle)


class OperatorRows(NamedTuple):
    """The rows of op(A): see rows.cuh."""

    number: np.int32  # number of rows
    lanes: int  # threads of each row
    pointer: Array
    column: Array
    # positions of entries among the values; None: entries are in the order of the values
    position: Array | None
    flags: np.int32  # `CONJUGATED` values, `MIRRORED` ones
    values: Array

    @property
    def arguments(self) -> tuple[Value, ...]:
        """Arguments of kernels."""
        position = NULL if self.position is None else self.position
        return self.pointer, self.column, position, self.flags, self.values


def rows_of(resident: Resident, trans: str) -> OperatorRows:
    """Return the rows of op(A) for the kernels that read it."""
    entries, values = resident.entries, resident.values
    n = np.int32(entries.n)
    if trans == "N" and not resident.hermitian:
        if not entries.mirrors(values.dtype):
            pointer, index, position, lanes = entries.by_rows(values.dtype)
            return OperatorRows(n, lanes, pointer, index, position, np.int32(0), values)
        flags = MIRRORED
    else:
        flags = CONJUGATED if values.dtype.kind == "c" and trans != "T" else 0
    return OperatorRows(
        n, entries.lanes, entries.pointer, entries.index, None, np.int32(flags), values
    )
