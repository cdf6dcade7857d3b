"""Lists of matrices of different sizes, looked at once: `Batch`.

Python asks an array for its address, sizes and strides in a microsecond, and makes one in two: for
a thousand of them more than most kernels take. A `Batch` knows them as arrays of numbers, and what
functions return for one is a `Batch` again, whose matrices are made when somebody asks for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import overload

import numpy as np
import numpy.typing as npt

from ..runtime.array import Array
from ..runtime.device import Device, device_of
from . import operands
from .operands import table_of


class Form:
    """Sizes and strides of a list's matrices: equal to another where all of them are.

    Attributes
    ----------
    dtype : numpy.dtype
    m, n : int32 arrays (count,)
        Rows and columns.
    row, column : int64 arrays (count,)
        Elements from a row to the next, and from a column to the next.
    vectors : bool
        Matrices of one column, which users see as vectors.
    """

    def __init__(
        self,
        dtype: np.dtype,
        m: np.ndarray,
        n: np.ndarray,
        row: np.ndarray,
        column: np.ndarray,
        vectors: bool = False,
    ) -> None:
        self.dtype, self.vectors = dtype, vectors
        self.m, self.n = (np.ascontiguousarray(x, np.int32) for x in (m, n))
        self.row, self.column = (np.ascontiguousarray(x, np.int64) for x in (row, column))
        parts = (self.m, self.n, self.row, self.column)
        self._all = dtype.str, vectors, b"".join(x.tobytes() for x in parts)
        self._hash = hash(self._all)

    @classmethod
    def dense(cls, dtype: np.dtype, m: np.ndarray, n: np.ndarray, vectors: bool = False) -> Form:
        """Matrices with contiguous columns that follow each other."""
        return cls(dtype, m, n, np.ones(len(m)), np.maximum(m, 1), vectors)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Form) and self._all == other._all)

    @property
    def count(self) -> int:
        """Number of matrices."""
        return len(self.m)

    @cached_property
    def ld(self) -> np.ndarray | None:
        """Leading dimensions, int32; None where columns are not contiguous, or overlap."""
        m, n, row, column = self.m, self.n, self.row, self.column
        wrong = ((m > 1) & (row != 1)) | ((n > 1) & (column < m)) | (row < 0) | (column < 0)
        empty = (m == 0) | (n == 0)
        if (wrong & ~empty).any():
            return None
        return np.where(empty, np.maximum(m, 1), np.maximum(column, np.maximum(m, 1))).astype("i4")

    @cached_property
    def turned(self) -> Form:
        """Sizes and strides of the transposes."""
        return Form(self.dtype, self.n, self.m, self.column, self.row)

    @cached_property
    def offsets(self) -> np.ndarray:
        """Where matrices begin that follow each other, in bytes."""
        sizes = np.multiply(self.m, self.n, dtype=np.int64) * self.dtype.itemsize
        return np.cumsum(sizes) - sizes

    @cached_property
    def entries(self) -> int:
        """Entries of all matrices."""
        return int(np.multiply(self.m, self.n, dtype=np.int64).sum())


class Batch(Sequence[Array]):
    """Matrices or vectors of different sizes, which functions take in the place of a list.

    It looks at its arrays once, and functions that are given one return one. So a list that comes
    again costs no more of the host than a stack does: make a `Batch` of it, and change the entries
    of its arrays, not the arrays. QR, SVD and what is made of them look at each matrix all the
    same.

    Parameters
    ----------
    arrays : sequence of cupy.ndarray
        All matrices or all vectors, of one scalar type, in any memory order. They are not copied,
        and kept.

    Raises
    ------
    TypeError
        Where they are not all arrays of one type.
    ValueError
        Where dimensions differ.

    Examples
    --------
    >>> import cupy as cp
    >>> from frontal.gpu import batched
    >>> a = batched.Batch([cp.array([[1.0, 2.0], [2.0, 6.0]]), cp.array([[4.0]])])
    >>> b = batched.Batch([cp.array([3.0, 8.0]), cp.array([2.0])])
    >>> x = batched.solve(a, b)
    >>> x[1]
    array([0.5])
    >>> list(x)
    [array([1., 1.]), array([0.5])]
    """

    form: Form
    device: Device
    pointers: Array  # uint64 (count,), on the device
    _flat: Array | None  # where matrices follow each other; None where they are of the user
    _arrays: list[Array] | None

    def __init__(self, arrays: Sequence[Array]) -> None:
        self._arrays, self._flat = list(arrays), None
        first = self._arrays[0] if self._arrays else None
        if first is not None and not isinstance(first, device_of().xp.ndarray):
            raise TypeError(f"arrays[0] is a {type(first).__name__}. Try: cupy.asarray(...)")
        self.device = device_of(first)
        self.form, addresses = _looked_at(self._arrays, self.device)
        self.pointers = self.device.upload(addresses)

    @classmethod
    def _of(cls, form: Form, device: Device, pointers: Array) -> Batch:
        made = cls.__new__(cls)
        made.form, made.device, made.pointers = form, device, pointers
        made._flat, made._arrays = None, None
        return made

    @classmethod
    def new(cls, form: Form, device: Device, zero: bool = False) -> Batch:
        """Take memory, perhaps cleared, for matrices that follow each other, as a form says."""
        flat = (device.xp.zeros if zero else device.xp.empty)(form.entries, form.dtype)
        return cls.at(form, device, flat, operands.placed(device, flat, form.offsets))

    @classmethod
    def at(cls, form: Form, device: Device, flat: Array, pointers: Array) -> Batch:
        """Matrices that follow each other in memory, of given addresses."""
        made = cls._of(form, device, pointers)
        made._flat = flat
        return made

    @property
    def memory(self) -> tuple[Array, Array]:
        """Memory of matrices that follow each other, and their addresses."""
        assert self._flat is not None
        return self._flat, self.pointers

    @property
    def dtype(self) -> np.dtype:
        """Scalar type of all matrices."""
        return self.form.dtype

    @property
    def ndim(self) -> int:
        """1 for vectors, 2 for matrices."""
        return 1 if self.form.vectors else 2

    def turned(self) -> Batch:
        """The transposes, in the same memory."""
        made = Batch._of(self.form.turned, self.device, self.pointers)
        made._flat, made._arrays = self._flat, self._arrays  # which are only kept
        return made

    def as_vectors(self) -> Batch:
        """The same columns, as vectors."""
        form = self.form
        if not form.vectors:
            form = Form(form.dtype, form.m, form.n, form.row, form.column, True)
        made = Batch._of(form, self.device, self.pointers)
        made._flat = self._flat
        return made

    def described(self, device: Device) -> operands.Batch:
        """What drivers take; columns must be contiguous."""
        form, ld = self.form, self.form.ld
        assert ld is not None
        table = table_of(device, form.m, form.n, ld)
        keep = (self,) if self._flat is None else (self._flat,)
        return operands.Batch.at(
            device, form.dtype, self.pointers, table, (form.m, form.n, ld), keep
        )

    def __len__(self) -> int:
        return self.form.count

    def _views(self, members: Sequence[int] | range) -> list[Array]:
        form, item, device = self.form, self.form.dtype.itemsize, self.device
        assert self._flat is not None
        memory, view, offsets = device.memory_of(self._flat), device.view, form.offsets.tolist()
        m, n = form.m.tolist(), form.n.tolist()
        if form.vectors:
            return [view(memory, offsets[i], (m[i],), form.dtype, (item,)) for i in members]
        return [
            view(memory, offsets[i], (m[i], n[i]), form.dtype, (item, item * max(m[i], 1)))
            for i in members
        ]

    @overload
    def __getitem__(self, index: int) -> Array: ...
    @overload
    def __getitem__(self, index: slice) -> list[Array]: ...
    def __getitem__(self, index: int | slice) -> Array | list[Array]:
        if self._arrays is not None:
            return self._arrays[index]
        members = range(len(self))[index]
        return self._views([members])[0] if isinstance(members, int) else self._views(members)

    def __iter__(self) -> Iterator[Array]:
        return iter(self[:])

    def __repr__(self) -> str:
        kind = "vectors" if self.form.vectors else "matrices"
        return f"<Batch of {len(self)} {kind} of {self.dtype}>"


def described(arrays: Sequence[Array], device: Device) -> Batch | None:
    """Return a list as a `Batch`; None for one that is empty or not as it should be."""
    if isinstance(arrays, Batch):
        return arrays
    if not len(arrays):
        return None
    try:
        form, addresses = _looked_at(arrays, device)
    except (TypeError, ValueError):
        return None  # whoever takes the list says what is wrong
    made = Batch._of(form, device, device.upload(addresses))
    made._arrays = list(arrays)
    return made


def _looked_at(arrays: Sequence[Array], device: Device) -> tuple[Form, np.ndarray]:
    """Sizes and strides of arrays, and their addresses: one pass over them, for each question."""
    kind, count = device.xp.ndarray, len(arrays)
    for i, a in enumerate(arrays):
        if type(a) is not kind and not isinstance(a, kind):
            raise TypeError(f"arrays[{i}] is a {type(a).__name__}. Try: cupy.asarray(...)")
    types, dimensions = {a.dtype for a in arrays}, {a.ndim for a in arrays}
    if len(types) > 1:
        raise TypeError(f"arrays must have one dtype, not {', '.join(sorted(map(str, types)))}")
    if len(dimensions) > 1 or not dimensions <= {1, 2}:
        raise ValueError("arrays must all be matrices, or all vectors")
    dtype = types.pop() if types else np.dtype(np.float64)
    vectors = dimensions == {1}
    each = 1 if vectors else 2
    addresses = np.array(device.pointers(arrays), np.uint64)
    shapes = _numbers((a.shape for a in arrays), count, each)
    strides, rest = np.divmod(_numbers((a.strides for a in arrays), count, each), dtype.itemsize)
    if rest.any():
        raise ValueError("strides must be whole elements")
    if vectors:
        shapes = np.stack([shapes[:, 0], np.ones(count, np.int64)], axis=1)
        strides = np.stack([strides[:, 0], np.maximum(shapes[:, 0], 1)], axis=1)
    (m, n), (row, column) = shapes.T, strides.T
    return Form(dtype, m, n, row, column, vectors), addresses


def _numbers(given: Iterable[tuple[int, ...]], count: int, each: int) -> np.ndarray:
    """Shapes or strides as the rows of an array."""
    found: npt.NDArray[np.int64] = np.fromiter(chain.from_iterable(given), np.int64, count * each)
    return found.reshape(count, each)
