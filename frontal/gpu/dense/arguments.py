"""What a user passes to a batched routine, as the batches that the drivers take.

A list of matrices of different sizes, a stack (3-D) or one matrix (2-D); any memory order. Kernels
want contiguous columns: what has them is used where it lies, all else is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ..runtime import device as devices
from ..runtime.array import Array
from ..runtime.device import Device
from ..runtime.jit import SCALARS
from .copies import copied, copied_batch, empty
from .lists import Batch as Listed
from .lists import Form
from .operands import Batch, Matrices, leading_dimension
from .overlap import refuse_overlap

M = TypeVar("M", bound=Matrices)  # the kind in which a user passes matrices and gets them back


@dataclass(frozen=True)
class Argument:
    """Matrices with contiguous columns, and how to give them back.

    Attributes
    ----------
    kind : {"matrix", "stack", "list"}
    arrays : array or list of arrays
        2-D, 3-D, or a list of 2-D arrays.
    batch : Batch
    vectors : bool
        The user passed vectors; here they are matrices of one column.
    """

    kind: str
    arrays: Any
    batch: Batch
    vectors: bool = False

    def result(self) -> Any:
        """Return the arrays as the user passed them: vectors where they were vectors."""
        if not self.vectors:
            return self.arrays
        if isinstance(self.arrays, Listed):
            return self.arrays.as_vectors()
        if self.kind == "list":
            return [a[:, 0] for a in self.arrays]
        return self.arrays[..., 0]


def device_for(arrays: Matrices, name: str = "a") -> Device:
    """Return the device that holds the arrays.

    Raises
    ------
    TypeError
        For anything but an array of a device, or a list of them.
    """
    if isinstance(arrays, Listed):
        return arrays.device
    is_list = isinstance(arrays, Sequence)
    first = next(iter(arrays), None) if is_list else arrays
    current = devices.device_of()
    if first is None:
        return current
    if not isinstance(first, current.xp.ndarray):
        raise TypeError(
            f"{name} must be a cupy.ndarray or a list of them, not {type(first).__name__}. "
            "Try: cupy.asarray(...)"
        )
    return devices.device_of(first)


def argument(
    name: str,
    arrays: Matrices,
    device: Device,
    *,
    like: Argument | None = None,
    write: bool = False,
    overwrite: bool = False,
    vectors: bool | None = False,
) -> Argument:
    """Return what a user passed, ready for a routine.

    Parameters
    ----------
    like : Argument, optional
        Another argument of the same call: kind, count and scalar type must agree.
    write : bool
        The routine writes here: into a copy, unless ``overwrite`` permits the user's own memory.
    vectors : bool or None
        Whether the arrays are vectors; None: they may be, as their dimension shows.

    Raises
    ------
    TypeError
        Where the arrays are not of this device, or not of one of the four scalar types.
    ValueError
        Where dimensions or counts do not fit, or matrices to be overwritten share memory.
    """
    kind, given = _kind(name, arrays, device, like, vectors)
    flat = [given] if kind != "list" else given
    _check_types(name, flat, device, like)
    if isinstance(given, Listed):
        held = given if given.form.ld is not None and not write else copied_batch(given, device)
        return Argument(kind, held, held.described(device), given.form.vectors)
    dimension = {"matrix": 2, "stack": 3, "list": 2}[kind]
    are_vectors = bool(flat) and flat[0].ndim == dimension - 1
    if are_vectors:
        given = [a[:, None] for a in given] if kind == "list" else given[..., None]
    ready = _contiguous(given)
    if write and overwrite and ready:
        refuse_overlap(name, Batch.of(device, given))
    elif write or not ready:
        given = copied(given, device)
    return Argument(kind, given, Batch.of(device, given), are_vectors)


def factor_of_product(
    name: str, arrays: Matrices, device: Device, trans: str, like: Argument | None = None
) -> tuple[Argument, str]:
    """Return op(A) as an argument and its op: contiguous rows are columns of the transpose.

    So arrays in NumPy's own order need no copy, but for A^H of a complex type.
    """
    if trans != "C" or is_real(arrays):
        turned = _turned(arrays, device)
        if turned is not None:
            return argument(name, turned, device, like=like), "N" if trans != "N" else "T"
    return argument(name, arrays, device, like=like), trans


def source(name: str, arrays: Matrices, device: Device) -> tuple[Argument, bool]:
    """Return matrices that are only read, and whether their transposes are meant.

    What has contiguous columns or contiguous rows is used where it lies.
    """
    held, op = factor_of_product(name, arrays, device, "N")
    return held, op == "T"


def source_of_right_hand_sides(
    name: str, arrays: Matrices, device: Device, like: Argument
) -> tuple[Argument, bool]:
    """Return the same of right-hand sides, which may be vectors, for the matrices ``like``."""
    lowest = 3 if like.kind == "stack" else 2
    if isinstance(arrays, Listed):
        turned = None if arrays.form.vectors else _turned(arrays, device)
        if turned is not None:
            return argument(name, turned, device, like=like), True
        return argument(name, arrays, device, like=like, vectors=None), False
    each = arrays if isinstance(arrays, Sequence) else [arrays]
    if all(getattr(x, "ndim", 0) == lowest for x in each):
        turned = _turned(arrays, device)
        if turned is not None:
            return argument(name, turned, device, like=like), True
    return argument(name, arrays, device, like=like, vectors=None), False


def result_for(
    name: str, arrays: Matrices, held: Argument, turned: bool, overwrite: bool
) -> Argument:
    """Return where the results of a `source` go: its own memory if permitted, or new."""
    batch = held.batch
    if overwrite and not turned and _is_own(arrays, held.arrays):
        refuse_overlap(name, batch)
        return held
    m, n = (batch.m, batch.n) if held.kind == "list" else held.arrays.shape[-2:]
    if turned:
        m, n = n, m
    if isinstance(held.arrays, Listed):
        return listed(Form.dense(batch.dtype, m, n, held.vectors), batch.device)
    made = empty(held.kind, m, n, batch.count, batch.dtype, batch.device)
    return Argument(held.kind, made, Batch.of(batch.device, made), held.vectors)


def listed(form: Form, device: Device, zero: bool = False) -> Argument:
    """Return new matrices of a list."""
    made = Listed.new(form, device, zero)
    return Argument("list", made, made.described(device), form.vectors)


def _is_own(arrays: Matrices, read: Matrices) -> bool:
    """Whether what is read is what the user passed, and not a copy of it."""
    if isinstance(arrays, Sequence) and isinstance(read, Sequence):
        return len(arrays) == len(read) and all(a is b for a, b in zip(arrays, read, strict=True))
    return arrays is read


def is_real(arrays: Matrices) -> bool:
    """Whether arrays, or the first of a list, are of a real type; also for no arrays at all."""
    if isinstance(arrays, Sequence):
        return is_real(arrays[0]) if arrays else True  # a `Batch` has a type, as arrays have
    return np.dtype(getattr(arrays, "dtype", np.float64)).kind != "c"


def _turned(arrays: Matrices, device: Device) -> Matrices | None:
    """The transposes, where those have contiguous columns and the arrays have not."""
    if isinstance(arrays, Listed):
        form = arrays.form
        return arrays.turned() if form.ld is None and form.turned.ld is not None else None
    is_list = isinstance(arrays, Sequence)
    each = arrays if is_list else [arrays]
    if not all(isinstance(a, device.xp.ndarray) and a.ndim in (2, 3) for a in each):
        return None
    turned = [a.swapaxes(-1, -2) for a in each]
    if _contiguous(each) or not _contiguous(turned):
        return None
    return turned if is_list else turned[0]


def _kind(
    name: str, arrays: Matrices, device: Device, like: Argument | None, vectors: bool | None
) -> tuple[str, Any]:
    """Kind of an argument by its type and dimension; that of ``like`` where vectors may be."""
    if isinstance(arrays, Listed):
        kind, given, lowest, dimensions = "list", arrays, 2, {arrays.ndim}
    elif isinstance(arrays, Sequence):
        kind, given, lowest = "list", list(arrays), 2
        dimensions = {a.ndim for a in given if isinstance(a, device.xp.ndarray)} or {2}
    else:
        given, dimensions = arrays, {getattr(arrays, "ndim", -1)}
        stacked = like.kind == "stack" if like is not None else max(dimensions) == 3
        kind, lowest = ("stack", 3) if stacked else ("matrix", 2)
    allowed = {True: {lowest - 1}, False: {lowest}, None: {lowest - 1, lowest}}[vectors]
    if len(dimensions) > 1 or not dimensions <= allowed:
        found = ", ".join(f"{d}-D" for d in sorted(dimensions))
        wanted = " or ".join(f"{d}-D" for d in sorted(allowed))
        raise ValueError(f"{name} must be {wanted} for a {kind}, not {found}")
    if like is not None:
        count = len(given) if kind != "matrix" else 1
        if kind != like.kind or count != like.batch.count:
            raise ValueError(
                f"{name} is a {kind} of {count} and the other operand a {like.kind} of "
                f"{like.batch.count}; pass both as lists, as stacks or as single matrices"
            )
    return kind, given


def kind_of(name: str, arrays: Matrices, device: Device) -> tuple[str, list[Array]]:
    """Return the kind of what a user passed, and its matrices, or its one stack, checked."""
    kind, given = _kind(name, arrays, device, None, False)
    flat = given if kind == "list" else [given]
    _check_types(name, flat, device, None)
    return kind, flat


def _check_types(name: str, flat: Sequence[Array], device: Device, like: Argument | None) -> None:
    each = () if isinstance(flat, Listed) else flat
    for a in each:
        if not isinstance(a, device.xp.ndarray):
            raise TypeError(f"{name} holds a {type(a).__name__}. Try: cupy.asarray(...)")
    found = {flat.dtype} if isinstance(flat, Listed) else {a.dtype for a in flat}
    wrong = found - set(SCALARS)
    if wrong:
        raise TypeError(
            f"{name} has dtype {wrong.pop()}; there are float32, float64, complex64 and "
            "complex128. Try: a.astype(numpy.float64)"
        )
    if like is not None and like.batch.count:
        found |= {like.batch.dtype}
    if len(found) > 1:
        names = ", ".join(sorted(str(x) for x in found))
        raise TypeError(f"{name}: the matrices of one call must have one dtype, not {names}")


def _contiguous(arrays: Matrices) -> bool:
    """Whether all matrices have contiguous columns, and strides that kernels can take."""
    for a in arrays if isinstance(arrays, Sequence) else [arrays]:
        if any(s < 0 or s % a.itemsize for s in a.strides):
            return False
        try:
            leading_dimension(a)
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


def require_square(name: str, held: Argument) -> None:
    """Raise ValueError for a matrix that is not square."""
    wrong = np.flatnonzero(held.batch.m != held.batch.n)
    if len(wrong):
        i = int(wrong[0])
        size = f"{held.batch.m[i]} x {held.batch.n[i]}"
        raise ValueError(f"{name}: matrix {i} is {size}, and should be square")


def require_sizes(name: str, found: np.ndarray, wanted: np.ndarray, what: str, other: str) -> None:
    """Raise ValueError where the sizes of two operands do not fit."""
    wrong = np.flatnonzero(found != wanted)
    if len(wrong):
        i = int(wrong[0])
        raise ValueError(f"{name}: matrix {i} has {found[i]} {what}, not {wanted[i]}, the {other}")
