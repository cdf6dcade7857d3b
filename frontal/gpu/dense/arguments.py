"""Conversion of a user's arguments of a batched routine to the batches of the drivers.

An argument is a list of matrices of different sizes, a stack (3-D) or one matrix (2-D), in any
memory order. Kernels require contiguous columns: matrices that have them are used in place, all
others are copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..._typing import Untyped
from ..runtime.device import Device
from ..runtime.jit import SCALARS
from .copies import copied
from .lists import Arrays, Form, described
from .lists import Batch as Listed
from .operands import Matrices, MatrixBatch, leading_dimension
from .overlap import refuse_overlap

M = TypeVar("M", bound=Matrices)  # kind of the arguments and of the result


@dataclass(frozen=True)
class Argument:
    """Matrices with contiguous columns, and how they are returned to the user."""

    arrays: Any  # 2-D, 3-D, or a `lists.Batch` of different sizes
    batch: MatrixBatch
    vectors: bool = False  # the user passed vectors, which are stored as matrices of one column

    @classmethod
    def from_arrays(cls, arrays: Arrays, device: Device, vectors: bool = False) -> Argument:
        """Describe matrices with contiguous columns, or a list of vectors."""
        vectors = arrays.form.vectors if isinstance(arrays, Listed) else vectors
        return cls(arrays, described(arrays, device), vectors)

    @property
    def kind(self) -> str:
        """One of "matrix", "stack" and "list"."""
        return (
            "list" if isinstance(self.arrays, Listed) else ("matrix", "stack")[self.arrays.ndim - 2]
        )

    def result(self) -> Any:
        """Return the arrays in the form that the user passed: matrices or vectors."""
        return self.arrays[..., 0] if self.vectors and self.kind != "list" else self.arrays

    @property
    def sizes(self) -> tuple[Untyped, Untyped]:
        """Rows and columns: integers, or arrays of one number for each matrix of a list."""
        if self.kind == "list":
            return self.batch.m, self.batch.n
        return self.arrays.shape[-2:]

    def new(
        self,
        m: int | np.ndarray,
        n: int | np.ndarray,
        dtype: npt.DTypeLike | None = None,
        zero: bool = False,
        vectors: bool = False,
    ) -> Argument:
        """Return as many new matrices of the same kind; ``zero`` clears their memory."""
        device, dtype = self.batch.device, np.dtype(self.batch.dtype if dtype is None else dtype)
        if isinstance(self.arrays, Listed):
            rows, columns, _ = np.broadcast_arrays(m, n, self.batch.m)
            form = Form.dense(dtype, rows, columns, vectors)
            return Argument.from_arrays(Listed.new(form, device, zero), device)
        make = device.xp.zeros if zero else device.xp.empty
        arrays = make((*self.arrays.shape[:-2], int(n), int(m)), dtype).swapaxes(-1, -2)
        return Argument.from_arrays(arrays, device, vectors)


def argument(
    name: str,
    arrays: Arrays,
    device: Device,
    *,
    like: Argument | None = None,
    write: bool = False,
    overwrite: bool = False,
    vectors: bool | None = False,
) -> Argument:
    """Return a user's argument, ready for a routine.

    Parameters
    ----------
    like : Argument, optional
        Another argument of the same call, of the same kind, count and scalar type.
    write : bool
        The routine writes: to a copy, unless ``overwrite`` permits the user's memory.
    vectors : bool or None
        Whether the arrays are vectors; None: their dimension decides.

    Raises
    ------
    TypeError
        If the arrays are not on this device, or have none of the four scalar types.
    ValueError
        If dimensions or counts do not fit, or matrices to be overwritten share memory.
    """
    kind = check(name, arrays, device, like, vectors)
    matrices, are_vectors = arrays, False
    if not isinstance(arrays, Listed):
        are_vectors = arrays.ndim == {"matrix": 1, "stack": 2}[kind]
        matrices = arrays[..., None] if are_vectors else arrays
    ready = _contiguous(matrices)
    if write and overwrite and ready:
        refuse_overlap(name, described(matrices, device))
    elif write or not ready:
        matrices = copied(matrices, device)
    return Argument.from_arrays(matrices, device, are_vectors)


def source(
    name: str,
    arrays: Arrays,
    device: Device,
    like: Argument | None = None,
    vectors: bool | None = False,
) -> tuple[Argument, bool]:
    """Return matrices that are only read, and whether the argument holds their transposes.

    Matrices with contiguous columns or contiguous rows are used in place. ``like`` and ``vectors``
    are those of `argument`.
    """
    are_vectors = like and like.kind == "stack" and getattr(arrays, "ndim", 0) == 2
    turned = None if are_vectors else _turned(arrays, device)
    matrices = arrays if turned is None else turned
    return argument(name, matrices, device, like=like, vectors=vectors), turned is not None


def product_operand(
    name: str, arrays: Arrays, device: Device, trans: str, like: Argument | None = None
) -> tuple[Argument, str]:
    """Return op(A) as an argument and its op: contiguous rows are columns of the transpose.

    So arrays in NumPy's default order need no copy, except for A^H of a complex type.
    """
    if trans == "C" and not is_real(arrays):
        return argument(name, arrays, device, like=like), trans
    operand, turned = source(name, arrays, device, like)
    return operand, trans if not turned else "N" if trans != "N" else "T"


def result_for(
    name: str, arrays: Arrays, operand: Argument, turned: bool, overwrite: bool
) -> Argument:
    """Return the output for a `source`: its memory, if ``overwrite`` permits, or new memory."""
    if overwrite and not turned and operand.arrays is arrays:
        refuse_overlap(name, operand.batch)
        return operand
    m, n = operand.sizes
    return operand.new(*((n, m) if turned else (m, n)), vectors=operand.vectors)


def is_real(arrays: Arrays) -> bool:
    """Return whether arrays have a real type."""
    return np.dtype(getattr(arrays, "dtype", np.float64)).kind != "c"


def _turned(arrays: Arrays, device: Device) -> Arrays | None:
    """Return the transposes if only they have contiguous columns; else None."""
    if isinstance(arrays, Listed):
        turned = None if arrays.form.vectors else arrays.turned()
    elif isinstance(arrays, device.xp.ndarray) and arrays.ndim in (2, 3):
        turned = arrays.swapaxes(-1, -2)
    else:
        turned = None
    return None if turned is None or _contiguous(arrays) or not _contiguous(turned) else turned


def check(
    name: str,
    arrays: Arrays,
    device: Device,
    like: Argument | None = None,
    vectors: bool | None = False,
) -> str:
    """Return the kind of an argument; raise as `argument` does."""
    _check_types(name, arrays, device, like)
    return _kind(name, arrays, like, vectors)


def _kind(name: str, arrays: Arrays, like: Argument | None, vectors: bool | None) -> str:
    """Return the kind from type and dimension, or from ``like`` if vectors are allowed."""
    dimension = getattr(arrays, "ndim", -1)
    if isinstance(arrays, Listed):
        kind, lowest = "list", 2
    else:
        stacked = like.kind == "stack" if like is not None else dimension == 3
        kind, lowest = ("stack", 3) if stacked else ("matrix", 2)
    allowed = {True: {lowest - 1}, False: {lowest}, None: {lowest - 1, lowest}}[vectors]
    if dimension not in allowed:
        expected = " or ".join(f"{d}-D" for d in sorted(allowed))
        raise ValueError(f"{name} must be {expected} for a {kind}, not {dimension}-D")
    if like is not None:
        count = len(arrays) if kind != "matrix" else 1
        if kind != like.kind or count != like.batch.count:
            raise ValueError(
                f"{name} is a {kind} of {count} but the other operand is a {like.kind} of "
                f"{like.batch.count}; pass both as lists, as stacks or as single matrices"
            )
    return kind


def _check_types(name: str, arrays: Arrays, device: Device, like: Argument | None) -> None:
    if not isinstance(arrays, (Listed, device.xp.ndarray)):
        raise TypeError(f"{name} is a {type(arrays).__name__}. Try: cupy.asarray(...)")
    dtype = arrays.dtype
    if dtype not in SCALARS:
        raise TypeError(
            f"{name} has dtype {dtype}, not float32, float64, complex64 or "
            "complex128. Try: a.astype(numpy.float64)"
        )
    if like is not None and dtype != like.batch.dtype and like.batch.count:
        names = ", ".join(sorted((str(dtype), str(like.batch.dtype))))
        raise TypeError(f"{name}: the matrices of one call must have one dtype, not {names}")


def _contiguous(arrays: Arrays) -> bool:
    """Return whether all matrices have contiguous columns and strides that kernels accept."""
    if isinstance(arrays, Listed):
        return arrays.form.ld is not None
    if any(s < 0 or s % arrays.itemsize for s in arrays.strides):
        return False
    try:
        leading_dimension(arrays)
    except ValueError:
        return False
    return True


def transposition(trans: int | str) -> str:
    """Return N, T or C for SciPy's number or letter."""
    if isinstance(trans, str) and trans.upper() in ("N", "T", "C"):
        return trans.upper()
    if not isinstance(trans, str) and trans in (0, 1, 2):
        return "NTC"[int(trans)]
    raise ValueError(f"trans must be 0, 1, 2, 'N', 'T' or 'C', not {trans!r}")


def require_square(name: str, operand: Argument) -> None:
    """Raise ValueError for a matrix that is not square."""
    wrong = np.flatnonzero(operand.batch.m != operand.batch.n)
    if len(wrong):
        i = int(wrong[0])
        size = f"{operand.batch.m[i]} x {operand.batch.n[i]}"
        raise ValueError(f"{name}: matrix {i} is {size}, but must be square")


def require_sizes(
    name: str, sizes: int | np.ndarray, expected: int | np.ndarray, axis: str, reference: str
) -> None:
    """Raise ValueError if the sizes of two operands do not fit."""
    sizes, expected = np.broadcast_arrays(np.atleast_1d(sizes), expected)
    wrong = np.flatnonzero(sizes != expected)
    if len(wrong):
        i = int(wrong[0])
        raise ValueError(
            f"{name}: matrix {i} has {sizes[i]} {axis}, not {expected[i]}, the {reference}"
        )
