"""Lists of matrices of different sizes, inspected once: `Batch`.

Python reads address, sizes and strides of an array in half a microsecond, and creates an array in
one: for a thousand arrays that exceeds the time of most kernels. A `Batch` stores them as arrays of
numbers. Functions return a `Batch` for a `Batch` or a list, and create its arrays on access.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import final, overload

import numpy as np

from ..._typing import Untyped
from ..runtime import device as devices
from ..runtime.array import Array
from ..runtime.device import Device
from .operands import Matrices, MatrixBatch, placed

_About = tuple[np.dtype, tuple[int, ...], tuple[int, ...]]  # of an array; strides in bytes
_ABOUT = attrgetter("dtype", "shape", "strides")


class Form:
    """Sizes and strides of a list's matrices; two forms are equal if all of these are equal.

    Attributes
    ----------
    dtype : numpy.dtype
    m, n : int32 arrays (count,)
        Rows and columns.
    row, column : int64 arrays (count,)
        Elements from a row to the next, and from a column to the next.
    vectors : bool
        The matrices have one column, and users see them as vectors.
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
        fields = (self.m, self.n, self.row, self.column)
        self._all = dtype.str, vectors, b"".join(x.tobytes() for x in fields)
        self._hash = hash(self._all)

    @classmethod
    def dense(cls, dtype: np.dtype, m: np.ndarray, n: np.ndarray, vectors: bool = False) -> Form:
        """Make the form of consecutive matrices with contiguous columns."""
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
        """Leading dimensions, int32; None if columns are not contiguous, or overlap."""
        m, n, row, column = self.m, self.n, self.row, self.column
        wrong = ((m > 1) & (row != 1)) | ((n > 1) & (column < m)) | (row < 0) | (column < 0)
        empty = (m == 0) | (n == 0)
        if (wrong & ~empty).any():
            return None
        return np.where(empty, np.maximum(m, 1), np.maximum(column, np.maximum(m, 1))).astype("i4")

    def some(self, members: slice) -> Form:
        """Return the form of a slice of the matrices."""
        m, n, row, column = (x[members] for x in (self.m, self.n, self.row, self.column))
        return Form(self.dtype, m, n, row, column, self.vectors)

    @cached_property
    def turned(self) -> Form:
        """Form of the transposes."""
        return Form(self.dtype, self.n, self.m, self.column, self.row)

    @cached_property
    def shapes(self) -> list[tuple[int, ...]]:
        """Shapes, as users see them."""
        sizes = (self.m,) if self.vectors else (self.m, self.n)
        return list(zip(*(x.tolist() for x in sizes), strict=True))

    @cached_property
    def order(self) -> str:
        """Memory order of consecutive matrices: by columns ("F") or by rows ("C")."""
        return "F" if (self.row == 1).all() else "C"

    @cached_property
    def offsets(self) -> np.ndarray:
        """Offsets of consecutive matrices, in bytes."""
        sizes = np.multiply(self.m, self.n, dtype=np.int64) * self.dtype.itemsize
        return np.cumsum(sizes) - sizes

    @cached_property
    def starts(self) -> list[int]:
        """`offsets` as a list."""
        return self.offsets.tolist()

    @cached_property
    def entries(self) -> int:
        """Number of entries of all matrices."""
        return int(np.multiply(self.m, self.n, dtype=np.int64).sum())


@final
class Batch(Sequence[Array]):
    """Matrices or vectors of different sizes, which functions accept instead of a list.

    Functions return a `Batch` for a list: a sequence that creates its arrays on access. A `Batch`
    inspects its arrays once, so its repeated use costs no more host time than a stack. Only the
    entries of the arrays may change, not the arrays.

    Parameters
    ----------
    arrays : sequence of cupy.ndarray
        All matrices or all vectors, of one scalar type, in any memory order. They are not copied;
        the batch holds references.

    Raises
    ------
    TypeError
        If not all are arrays of one type.
    ValueError
        If dimensions differ.

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
    _flat: Array | None = None  # memory of consecutive matrices; None for a user's list
    _arrays: list[Array] | None = None
    _places: np.ndarray | None = None  # addresses of a user's arrays, on the host

    def __init__(self, arrays: Sequence[Array]) -> None:
        self._inspect("arrays", arrays, device_for(arrays, "arrays"))

    @classmethod
    def from_list(cls, name: str, arrays: Matrices, device: Device) -> Batch:
        """Make a batch of a list that a user passed, which messages call ``name``."""
        batch = cls.__new__(cls)
        batch._inspect(name, arrays, device)
        return batch

    def _inspect(self, name: str, arrays: Matrices, device: Device) -> None:
        if not isinstance(arrays, Sequence):
            raise TypeError(_not_arrays(name, arrays))
        self.device, self._arrays = device, list(arrays)
        self.form, self._places = _inspect_arrays(name, self._arrays, device)
        self.pointers = device.upload(self._places)

    @classmethod
    def new(cls, form: Form, device: Device, zero: bool = False) -> Batch:
        """Allocate memory, cleared if ``zero``, for consecutive matrices of a form."""
        flat = (device.xp.zeros if zero else device.xp.empty)(form.entries, form.dtype)
        return cls.at(form, device, flat, placed(device, flat, form.offsets))

    @classmethod
    def at(cls, form: Form, device: Device, flat: Array, pointers: Array) -> Batch:
        """Make a batch of consecutive matrices in memory, with their addresses."""
        batch = cls.__new__(cls)
        batch.form, batch.device, batch._flat, batch.pointers = form, device, flat, pointers
        return batch

    @property
    def memory(self) -> tuple[Array, Array]:
        """Memory of consecutive matrices, and their addresses."""
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

    def with_form(self, form: Form) -> Batch:
        """Return a batch of the same memory with other sizes and strides, as for transposes."""
        batch = copy(self)
        batch.form = form
        return batch

    def halves(self) -> tuple[Batch, Batch]:
        """Return the first and the second half of consecutive matrices."""
        flat, half = self._flat, len(self) // 2
        assert flat is not None
        first, second = self.form.some(slice(half)), self.form.some(slice(half, None))
        end = first.entries
        return (
            Batch.at(first, self.device, flat[:end], self.pointers[:half]),
            Batch.at(second, self.device, flat[end:], self.pointers[half:]),
        )

    def turned(self) -> Batch:
        """Return the transposes, in the same memory."""
        return self.with_form(self.form.turned)

    @property
    def places(self) -> np.ndarray:
        """Addresses of the matrices, on the host."""
        if self._places is not None:
            return self._places
        return self.device.pointer(self._flat) + self.form.offsets

    def __len__(self) -> int:
        return self.form.count

    def _views(self, members: slice) -> list[Array]:
        form, flat = self.form, self._flat
        assert flat is not None
        return self.device.views(
            self.device.memory_of(flat),
            form.starts[members],
            form.shapes[members],
            form.dtype,
            form.order,
        )

    @overload
    def __getitem__(self, index: int) -> Array: ...
    @overload
    def __getitem__(self, index: slice) -> list[Array]: ...
    def __getitem__(self, index: int | slice) -> Array | list[Array]:
        if self._arrays is not None:
            return self._arrays[index]
        if isinstance(index, slice):
            return self._views(index)
        i = range(len(self))[index]
        return self._views(slice(i, i + 1))[0]

    def __iter__(self) -> Iterator[Array]:
        return iter(self[:])

    def __repr__(self) -> str:
        kind = "vectors" if self.form.vectors else "matrices"
        return f"<Batch of {len(self)} {kind} of {self.dtype}>"


Arrays = Array | Batch  # argument of a routine: a matrix, a stack, or an inspected list


def transposed(arrays: Arrays) -> Arrays:
    """Return the transposes of matrices, as views."""
    if isinstance(arrays, Batch):
        return arrays.turned()
    return arrays.swapaxes(-1, -2)


def described(arrays: Arrays, device: Device) -> MatrixBatch:
    """Return arrays as the drivers take them; columns must be contiguous."""
    if not isinstance(arrays, Batch):
        return MatrixBatch.from_array(device, arrays)
    form, ld = arrays.form, arrays.form.ld
    assert ld is not None
    sizes, places = (form.m, form.n, ld), arrays.places
    return MatrixBatch.at(device, form.dtype, arrays.pointers, sizes, (arrays,), places)


def device_for(arrays: Untyped, name: str = "a") -> Device:
    """Return the device that holds the arrays.

    Raises
    ------
    TypeError
        If they are neither an array of a device nor a list.
    """
    current = devices.device_of()
    if isinstance(arrays, current.xp.ndarray):
        return devices.device_of(arrays)
    if isinstance(arrays, Batch):
        return arrays.device
    if isinstance(arrays, Sequence) and not isinstance(arrays, str):
        return device_for(arrays[0], name) if len(arrays) else current
    raise TypeError(_not_arrays(name, arrays))


def _not_arrays(name: str, value: object) -> str:
    return (
        f"{name} must be a cupy.ndarray or a list of them, not {type(value).__name__}. "
        "Try: cupy.asarray(...)"
    )


def _inspect_arrays(name: str, arrays: list[Array], device: Device) -> tuple[Form, np.ndarray]:
    """Return form and addresses of arrays, in one pass over them each."""
    if set(map(type, arrays)) - {device.xp.ndarray}:
        for i, a in enumerate(arrays):
            if not isinstance(a, device.xp.ndarray):
                raise TypeError(f"{name}[{i}] is a {type(a).__name__}. Try: cupy.asarray(...)")
    try:
        form = _form(tuple(map(_ABOUT, arrays)))
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}{error}") from None
    return form, np.array(device.pointers(arrays), np.uint64)


@lru_cache(maxsize=8)
def _form(about: tuple[_About, ...]) -> Form:
    """Return the form of arrays; error messages lack the name of the argument."""
    types, shapes, strides = zip(*about, strict=True) if about else ((np.dtype(float),), (), ())
    if len(set(types)) > 1:
        listing = ", ".join(sorted(map(str, set(types))))
        raise TypeError(f": the matrices of one call must have one dtype, not {listing}")
    dtype, dimensions = types[0], set(map(len, shapes)) or {2}
    if len(dimensions) > 1 or not dimensions <= {1, 2}:
        listing = ", ".join(f"{d}-D" for d in sorted(dimensions))
        raise ValueError(f" must be a list of matrices or one of vectors, not {listing}")
    ndim = dimensions.pop()
    sizes, steps = (np.array(x, np.int64).reshape(-1, ndim) for x in (shapes, strides))
    steps, remainder = np.divmod(steps, dtype.itemsize)
    if remainder.any():
        raise ValueError(" must have strides of whole elements")
    if ndim == 1:
        sizes = np.stack([sizes[:, 0], np.ones(len(sizes), np.int64)], axis=1)
        steps = np.stack([steps[:, 0], np.maximum(sizes[:, 0], 1)], axis=1)
    (m, n), (row, column) = sizes.T, steps.T
    return Form(dtype, m, n, row, column, ndim == 1)
