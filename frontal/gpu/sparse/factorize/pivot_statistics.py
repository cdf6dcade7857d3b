"""Statistics of a factor on the device: pivots, growth, symmetry.

Only requested arrays are downloaded; the factor is never examined on the host.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from ....backend.protocol import Health
from ....matrix.symmetry import roundings_of
from ....numeric.method import Method
from ...runtime.array import NULL, Array, Value
from ...runtime.graph import Launch
from .. import launch
from ..pattern import DevicePattern
from ..storage import PivotBlocks, Storage


def health_of(method: Method, dtype: np.dtype, numbers: np.ndarray) -> Health:
    """Return the health given by the numbers of an `examination`."""
    loss, largest, size, gap = numbers[:4].tolist()
    if method.scaling:
        loss *= max(largest, _smallest(dtype))
    return Health(1 / loss if loss > 1 else 1.0, math.isfinite(size), gap == 0)


def is_symmetric(
    pattern: DevicePattern, pointer: Array, index: Array, values: Array, lanes: int
) -> bool:
    """Return whether values by columns are symmetric up to the rounding of each row; waits."""
    device, n = pattern.device, int(pattern.plan.start[-1])
    variant = constants(pattern, LONG=pointer.itemsize > 4)
    sizes, asymmetry = (
        device.kernel("system.cu", f"system_{name}", values.dtype, **variant)
        for name in ("row_sizes", "asymmetry")
    )
    largest, worst = device.xp.zeros(n, np.float64), device.xp.zeros(1, np.float64)
    blocks = launch.system_blocks(n * lanes, device.limits)
    arguments = np.int32(n), np.int32(lanes), pointer, index, values, largest
    sizes((blocks,), (launch.SYSTEM_THREADS,), arguments)
    asymmetry((blocks,), (launch.SYSTEM_THREADS,), (*arguments, worst))
    return float(device.download(worst)[0]) <= roundings_of(np.dtype(values.dtype))


@cache
def _smallest(dtype: np.dtype) -> float:
    return float(np.finfo(dtype).tiny)


def exactly_hermitian(method: Method, dtype: np.dtype, numbers: np.ndarray) -> bool:
    """Return whether an `examination` that compared columns with rows found no difference."""
    return method.one_triangle and (method.adjoint or dtype.kind != "c") and numbers[3] == 0


def constants(pattern: DevicePattern, **others: bool) -> dict[str, int]:
    """Return the constants of a kernel; omit false ones, so that few variants are compiled."""
    return pattern.method.constants | {name: 1 for name, value in others.items() if value}


def examination(
    pattern: DevicePattern,
    panels: Array,
    d: PivotBlocks | None,
    largest: Array | None,
    *,
    pointer: Array,
    index: Array,
    perm: Array,
    values: Array,
    lanes: int,
    numbers: Array,
    columns: tuple[int, int] | None = None,
) -> Launch:
    """Return the launch that examines all pivots of a factor, and the values of A (by columns).

    Parameters
    ----------
    lanes : int
        Threads that read a column of A to compare it with its row. 0: symmetry is not checked.
    numbers : device array (6,) of float64
        Zero on entry; receives the input of `health_of`, the largest of `largest`, and as an int64
        the number of entries of `largest` beyond `structs.LIMIT`.
    columns : two int, optional
        Only pivots from the first position on and before the second; the values if the first is 0.
    """
    n = int(pattern.plan.start[-1])
    first, last = columns or (0, n)
    count, lanes = (values.size, lanes) if first == 0 else (0, 0)
    variant = constants(pattern, LONG=pointer.itemsize > 4)
    kernel = pattern.device.kernel("system.cu", "system_health", panels.dtype, **variant)
    pivots = *(d or (NULL, NULL)), NULL if largest is None else largest
    arguments = pointer, index, perm, values, np.int64(count), np.int32(lanes), *pivots, numbers
    blocks = launch.system_blocks(max(n * max(lanes, 1), count), pattern.device.limits)
    begin = *_fronts(pattern, panels), np.int32(first), np.int32(last)
    return Launch(kernel, blocks, launch.SYSTEM_THREADS, (*begin, *arguments))


def growth(
    pattern: DevicePattern, storage: Storage, pointer: Array, values: Array, lanes: int
) -> tuple[float, float]:
    """Return the largest part of an entry of the factors, and the 1-norm of A, by columns."""
    device, n = pattern.device, int(pattern.plan.start[-1])
    if n == 0:
        return 0.0, 0.0
    maxima = device.xp.zeros(2, np.float64)
    matrix = (
        np.int32(lanes),
        pointer,
        values,
        storage.blocks.subdiagonal if storage.blocks else NULL,
    )
    look_at_entries(pattern, storage.panels.dtype, storage.panels, (0, n), matrix, maxima)
    largest, norm = device.download(maxima).tolist()
    return largest, norm


def look_at_entries(
    pattern: DevicePattern,
    dtype: np.dtype,
    panels: Value,
    columns: tuple[int, int],
    matrix: tuple[np.int32, Array, Array, Value],
    maxima: Array,
) -> None:
    """Enqueue the update of the `maxima` of `growth`; A is read only with columns from 0 on.

    Parameters
    ----------
    panels : device array, or uint64
        Panels of all fronts, or the address that they would have if all were in memory.
    columns : two int
        See `examination`.
    matrix : tuple
        Arguments of the kernel.
    """
    device, (first, last) = pattern.device, columns
    n = np.int32(0 if first else pattern.plan.start[-1])
    variant = constants(pattern, LONG=matrix[1].itemsize > 4)
    kernel = device.kernel("system.cu", "system_largest", dtype, **variant)
    arguments = pattern.struct(dtype), np.int32(len(pattern.k)), n, panels, *map(np.int32, columns)
    blocks = launch.system_blocks(32 * max(last - first, int(n)), device.limits)
    kernel((blocks,), (launch.SYSTEM_THREADS,), (*arguments, *matrix, maxima))


def diagonal(pattern: DevicePattern, panels: Array) -> np.ndarray:
    """Return the diagonal of L, U or D in elimination order, on the host."""
    entries = pattern.device.download(_stored_diagonal(pattern, panels))
    if pattern.method.one_triangle:
        return entries
    with np.errstate(all="ignore"):
        return 1 / entries


def device_diagonal(pattern: DevicePattern, panels: Array) -> Array:
    """Return the diagonal of L, U or D in elimination order, on the device."""
    entries = _stored_diagonal(pattern, panels)
    return entries if pattern.method.one_triangle else pattern.device.xp.reciprocal(entries)


def _stored_diagonal(pattern: DevicePattern, panels: Array) -> Array:
    """Return the stored diagonal; for U it holds reciprocals."""
    device, n = pattern.device, int(pattern.plan.start[-1])
    entries = device.xp.empty(n, panels.dtype)
    if n:
        kernel = device.kernel("system.cu", "system_diagonal", panels.dtype, **constants(pattern))
        blocks = launch.system_blocks(n, device.limits)
        kernel((blocks,), (launch.SYSTEM_THREADS,), (*_fronts(pattern, panels), entries))
    return entries


def _fronts(pattern: DevicePattern, panels: Array) -> tuple[Value, ...]:
    """Return the leading arguments of these kernels."""
    fronts, n = len(pattern.k), int(pattern.plan.start[-1])
    return pattern.struct(panels.dtype), np.int32(fronts), np.int32(n), panels
