"""Positions of the entries of a pattern on the device, by columns and rows, and values for them."""

from __future__ import annotations

from collections.abc import Callable
from weakref import ReferenceType, WeakKeyDictionary, ref

import numpy as np

from ...._typing import MatrixLike, Sparse, Untyped, is_sparse
from ....machine.lockfree_property import cached_property
from ....machine.threads import copied, equal
from ....matrix.canonical import on_device, working_dtype
from ....matrix.exact import refuse_inexact
from ....matrix.value_map import ValueMap
from ....symbolic.phase import Symbolic
from ...runtime.array import NULL, Array, Value
from ...runtime.jit import SCALARS
from .. import launch
from ..pattern import DevicePattern

_Gathered = tuple[Array | None, Array]
# mean entries of a column; searching so few takes no longer than reading a list
_MAX_SHORT_COLUMN = 8
# positions in 32 bits, less what a team of threads adds to the start of a column
_MAX_INT32_POSITION = np.iinfo(np.int32).max - 32


def position_type(nnz: int) -> type[np.signedinteger]:
    """Return the type of positions among `nnz` entries, and of the extents of columns and rows."""
    return np.int64 if nnz > _MAX_INT32_POSITION else np.int32


def columns_are_short(symbolic: Symbolic) -> bool:
    """Return whether columns are short enough to search transposed entries without a list."""
    return int(symbolic.indptr[-1]) <= _MAX_SHORT_COLUMN * symbolic.n


class PatternEntries:
    """Positions of the entries of a pattern, by columns and by rows, on a device.

    Parameters
    ----------
    searching : bool
        Rows may be read as in `mirrors`.

    Attributes
    ----------
    symbolic : Symbolic
        On the host.
    pattern : DevicePattern
        The fronts.
    type : type
        Type of `pointer` and of positions of entries; `long` if it is int64, in which case kernels
        have the constant LONG.
    """

    def __init__(self, symbolic: Symbolic, pattern: DevicePattern, searching: bool = True) -> None:
        self.symbolic, self.pattern, self.device = symbolic, pattern, pattern.device
        self.n, self.nnz = symbolic.n, int(symbolic.indptr[-1])
        self.type = position_type(self.nnz)
        self.long = self.type is np.int64
        self._by_rows: tuple[Array, Array, Array, int] | None = None
        self._symmetric: bool | None = None
        self._short = searching and columns_are_short(symbolic)
        self._orders: WeakKeyDictionary[ValueMap, _Gathered] = WeakKeyDictionary()
        self._coordinates: WeakKeyDictionary[ValueMap, list[Array]] = WeakKeyDictionary()
        self._moved: ReferenceType[Array] | None = None
        self._copy: Callable[[], list[Array]] | None = None  # of the columns to the device

    @property
    def copy_bytes(self) -> int:
        """Bytes that `begin_copy` allocates."""
        if self._copy is not None:
            return 0
        pointer_bytes = np.dtype(self.type).itemsize * (self.n + 1)
        orders = (1 + self._moves_rows) * self.symbolic.perm.nbytes
        return pointer_bytes + self.symbolic.indices.nbytes + orders

    def begin_copy(self) -> Callable[[], list[Array]]:
        """Allocate memory for columns; return the copy, which overlaps work enqueued before it."""
        if self._copy is None:
            self._copy = self.device.later(self._host_columns(), self.pattern.piece)
        return self._copy

    def send_with_lists(self, dtype: np.dtype) -> None:
        """Upload the columns with all lists of a `light` pattern, for panels of a scalar type."""
        if self._copy is None:
            columns = self.pattern.send_all(dtype, self._host_columns())
            self._copy = lambda: columns
        else:
            self.pattern.send_all(dtype, [])

    def _host_columns(self) -> list[np.ndarray]:
        """Return the arrays of `_columns` on the host."""
        symbolic = self.symbolic
        pointer = symbolic.indptr if self.long else copied(symbolic.indptr, self.type)
        orders = [symbolic.perm] + [symbolic.row_perm] * self._moves_rows
        return [pointer, symbolic.indices, *orders]

    @cached_property
    def _moves_rows(self) -> bool:
        """Whether rows and columns are in different orders."""
        symbolic = self.symbolic
        if symbolic.row_perm is symbolic.perm:
            return False
        return not np.array_equal(symbolic.row_perm, symbolic.perm)

    @cached_property
    def _columns(self) -> list[Array]:
        return self.begin_copy()()

    @cached_property
    def pointer(self) -> Array:
        """(n + 1,) device array of this `type`: extents of columns."""
        return self._columns[0]

    @cached_property
    def index(self) -> Array:
        """(nnz,) int32 device array: rows of entries."""
        return self._columns[1]

    @cached_property
    def perm(self) -> Array:
        """(n,) int32 device array, see `Symbolic`."""
        return self._columns[2]

    @cached_property
    def row_perm(self) -> Array:
        """(n,) int32 device array, see `Symbolic`; the array `perm` if both are equal."""
        return self._columns[-1]

    @cached_property
    def lanes(self) -> int:
        """Threads that read a column together."""
        return self._lanes(int(np.diff(self.symbolic.indptr).max(initial=0)))

    def signs(self, values: Array, out: Array | None) -> Array:
        """Return the signs of the pivots, (n,) int8: known ones, or those of the diagonal of A.

        `out` is the array of an earlier call, which is reused.
        """
        known = self.symbolic.signs
        if known.size:
            return self.device.upload(known) if out is None else out
        signs: Array = self.device.xp.zeros(self.n, np.int8) if out is None else out
        if self.nnz:
            inputs = np.int32(self.n), self.pointer, self.index, self.perm, values
            self.pattern.system_launch(
                "signs", np.dtype(values.dtype), self.n, *inputs, signs, LONG=self.long
            )()
        return signs

    @property
    def columns(self) -> tuple[Value, ...]:
        """Arguments of kernels: order, lanes, extents of columns, and rows of entries."""
        return np.int32(self.n), np.int32(self.lanes), self.pointer, self.index

    def _lanes(self, longest: int) -> int:
        return launch.row_lanes(self.n, self.nnz // max(self.n, 1), longest)

    def by_rows(self, dtype: np.dtype) -> tuple[Array, Array, Array, int]:
        """Return compressed rows: pointers, columns, positions among the values of A, and lanes.

        `dtype` is a scalar type for which the caller needs kernels anyway.
        """
        if self._by_rows is None:
            if self.is_symmetric(dtype):
                mirror = self.device.xp.empty(self.nnz, self.type)
                self._look_for_mirrored(dtype, mirror)
                self._by_rows = self.pointer, self.index, mirror, self.lanes
            else:
                self._by_rows = self._sorted()
        return self._by_rows

    def is_symmetric(self, dtype: np.dtype) -> bool:
        """Return whether each entry has a transposed entry."""
        if self._symmetric is None:
            self._symmetric = self._look_for_mirrored(dtype, NULL)
        return self._symmetric

    def mirrors(self, dtype: np.dtype) -> bool:
        """Return whether rows are read by searching transposed entries, as columns are short."""
        return self._short and self.is_symmetric(dtype)

    def _look_for_mirrored(self, dtype: np.dtype, mirror: Value) -> bool:
        """Return whether each entry has a transposed entry.

        Its position is written to `mirror`, unless that is null.
        """
        missing = self.device.xp.zeros(1, np.int32)
        arguments = *self.columns, mirror, missing
        work = self.n * self.lanes
        self.pattern.system_launch("mirror", dtype, work, *arguments, LONG=self.long)()
        return not self.device.download(missing)[0]

    def _sorted(self) -> tuple[Array, Array, Array, int]:
        """Return the rows of any pattern."""
        xp = self.device.xp
        position = xp.argsort(self.index, kind="stable")
        column = xp.searchsorted(self.pointer, position, side="right") - 1
        # not bincount: CuPy's allocates gigabytes
        pointer = xp.searchsorted(self.index[position], xp.arange(self.n + 1, dtype=np.int32))
        longest = int(self.device.download(xp.diff(pointer).max())) if self.n else 0
        rows = pointer.astype(self.type), column.astype(np.int32), position.astype(self.type)
        return *rows, self._lanes(longest)

    def values_of(self, A: Untyped, order: ValueMap) -> tuple[Array, ValueMap] | None:
        """See `NumericFactor.device_values`."""
        if order.is_by_columns and self.device.holds(A) and A.shape == order.shape:  # usual case
            values: Array = A
            if values.dtype in SCALARS and A.flags.c_contiguous:
                return values, order
        value_order = None
        if on_device(A):
            value_order = order if order.is_value_array(A) and order.triangle is None else None
        elif getattr(A, "format", "") in ("csc", "csr") and on_device(A.indices):
            value_order, A = self.order_of(A), A.data
        else:
            A, value_order = self._of_host(A, order)
            if value_order is not None:
                moved = self.arranged(A, value_order)
                self._moved = ref(moved)
                return moved, value_order
        return None if value_order is None else (self.arranged(A, value_order), value_order)

    def owns(self, values: Array) -> bool:
        """Return whether `values` were last uploaded by `values_of`; no other object uses them."""
        return self._moved is not None and self._moved() is values

    def _of_host(
        self, A: MatrixLike, order: ValueMap
    ) -> tuple[np.ndarray | Array | None, ValueMap | None]:
        """Upload the values of a matrix on the host; return them with their order.

        None unless the matrix has this pattern and its values need no conversion.
        """
        if order.is_value_array(A):
            values, value_order = np.asarray(A), None if order.triangle else order
        elif is_sparse(A) and A.format in ("csc", "csr") and self._may_be_pattern(A):
            values, value_order = A.data, ValueMap(A.format, (self.nnz,))
        else:
            return None, None
        if value_order is None or values.dtype not in SCALARS:
            return None, None
        value_order.require(values)
        uploaded = self.device.upload(values)
        if is_sparse(A) and not self._is_pattern(A):  # while the values are copied
            return None, None
        return uploaded, value_order

    def _may_be_pattern(self, A: Sparse) -> bool:
        return A.shape == (self.n, self.n) and A.data.size == self.nnz

    def _is_pattern(self, A: Sparse) -> bool:
        """Return whether a matrix on the host has this pattern, entry for entry.

        A matrix by rows has it if the pattern is symmetric.
        """
        symbolic = self.symbolic
        if A.format == "csr" and not self.is_symmetric(working_dtype(A.data.dtype, "A")):
            return False
        return equal(A.indptr, symbolic.indptr) and equal(A.indices, symbolic.indices)

    def order_of(self, A: Untyped) -> ValueMap | None:
        """Return the order of the values of a CSC or CSR matrix on the device.

        None if the matrix has another pattern or is not sorted.
        """
        pointer, index = self.pointer, self.index
        dtype = working_dtype(A.data.dtype, "A")
        if A.format == "csr" and not self.is_symmetric(dtype):
            pointer, index = self.by_rows(dtype)[:2]
        if A.shape != (self.n, self.n) or A.indices.size != self.nnz or A.data.size != self.nnz:
            return None
        same = self.device.xp.stack([(A.indptr == pointer).all(), (A.indices == index).all()])
        return ValueMap(A.format, (self.nnz,)) if self.device.download(same).all() else None

    def coordinates(self, order: ValueMap) -> list[Array]:
        """Return row and column of each value in another order, int32; see `ValueMap`."""
        if order not in self._coordinates:
            host = order.coordinates(self.symbolic.indptr, self.symbolic.indices)
            self._coordinates[order] = self.device.uploads(host)
        return self._coordinates[order]

    def arranged(self, values: Array, order: ValueMap) -> Array:
        """Return values in another order by columns, in a scalar type of this package.

        The given array is returned without a copy if nothing has to be done.
        """
        xp = self.device.xp
        source = xp.asarray(values)
        order.require(source)
        source = source.reshape(-1)
        work = working_dtype(source.dtype, "A")
        refuse_inexact(source, "A")
        if order.is_by_columns and source.dtype == work and source.flags.c_contiguous:
            return source
        out = xp.empty(self.nnz, work)
        if order.is_by_columns:
            self.device.copy(source, out)
        elif order.place is None:
            out[self.by_rows(work)[2]] = source
        else:
            pointer, position = self._gathered(order, order.place)
            if pointer is None:
                out[...] = source[position]
            else:
                self._sum(pointer, position, xp.ascontiguousarray(source, work), out)
        # True + True is True, as in a matrix
        return (out != 0).astype(work) if source.dtype.kind == "b" else out

    def _sum(self, pointer: Array, position: Array, source: Array, out: Array) -> None:
        constants = {"LONG": 1} if position.itemsize > 4 else {}
        kernel = self.device.kernel("system.cu", "system_sum", out.dtype, **constants)
        arguments = np.int64(out.size), pointer, position, source, out
        blocks = launch.system_blocks(out.size, self.device.limits)
        kernel((blocks,), (launch.SYSTEM_THREADS,), arguments)

    def _gathered(self, order: ValueMap, host_place: np.ndarray) -> _Gathered:
        """Return positions of the values that are summed into entries, one entry after another.

        The first array has the start of each entry; None if each entry is one value.
        """
        if order not in self._orders:
            xp, place = self.device.xp, self.device.upload(host_place)
            position, pointer = xp.argsort(place, kind="stable"), None
            kind = position_type(position.size)
            if order.repeated:
                ends = xp.arange(self.nnz + 1, dtype=place.dtype)
                pointer = xp.searchsorted(place[position], ends).astype(kind)
            self._orders[order] = pointer, position.astype(kind)
        return self._orders[order]
