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
from ..pattern import DevicePattern
from ..storage import ComputedFactor, PivotBlocks
from .entries import PatternEntries


def health_of(method: Method, dtype: np.dtype, numbers: np.ndarray) -> Health:
    """Return the health given by the numbers of an `examination`."""
    loss, largest, size, gap = numbers[:4].tolist()
    if method.scaling:
        loss *= max(largest, _smallest(dtype))
    return Health(1 / loss if loss > 1 else 1.0, math.isfinite(size), gap == 0)


@cache
def _smallest(dtype: np.dtype) -> float:
    return float(np.finfo(dtype).tiny)


def exactly_hermitian(method: Method, dtype: np.dtype, numbers: np.ndarray) -> bool:
    """Return whether an `examination` that compared columns with rows found no difference."""
    return method.one_triangle and (method.adjoint or dtype.kind != "c") and numbers[3] == 0


def is_symmetric(entries: PatternEntries, values: Array) -> bool:
    """Return whether values by columns are symmetric up to the rounding of each row; waits."""
    device, n = entries.device, entries.n
    largest, worst = device.xp.zeros(n, np.float64), device.xp.zeros(1, np.float64)
    arguments = *entries.columns, values, largest
    for name, extra in ("row_sizes", ()), ("asymmetry", (worst,)):
        entries.pattern.system_launch(
            name, values.dtype, n * entries.lanes, *arguments, *extra, LONG=entries.long
        )()
    return float(device.download(worst)[0]) <= roundings_of(np.dtype(values.dtype))


def examination(entries: PatternEntries, factor: ComputedFactor, symmetry: bool) -> Launch:
    """Return the launch that examines the pivots of a factor, and the values of A (by columns).

    `ComputedFactor.numbers` are zero on entry. They receive the input of `health_of`, the largest
    of `largest`, and as an int64 the number of entries of `largest` beyond `structs.LIMIT`. Values
    are examined with the first column.

    Parameters
    ----------
    symmetry : bool
        With one triangle: compare columns with rows.
    """
    pattern, values = factor.pattern, factor.values
    first, last = factor.columns or (0, entries.n)
    lanes = entries.lanes if symmetry and pattern.method.one_triangle and first == 0 else 0
    count = values.size if first == 0 else 0
    work = max(entries.n * max(lanes, 1), count)
    largest: Value = NULL if factor.largest is None else factor.largest
    return pattern.system_launch(
        "health",
        factor.panels.dtype,
        work,
        *_fronts(pattern, factor.panels),
        *(np.int32(first), np.int32(last)),
        *(entries.pointer, entries.index, entries.perm, values),
        *(np.int64(count), np.int32(lanes)),
        *(factor.blocks or (NULL, NULL)),
        *(largest, factor.numbers),
        LONG=entries.long,
    )


def update_growth(
    pattern: DevicePattern,
    panels: Value,
    columns: tuple[int, int],
    entries: PatternEntries,
    values: Array,
    blocks: PivotBlocks | None,
    maxima: Array,
) -> None:
    """Enqueue the update of the largest part of an entry of the factors, and of the 1-norm of A.

    `panels` are those of all fronts, or the address that they would have if all were in memory.
    Only the pivot columns `columns` are read, and A with columns from 0 on; `values` are A's in the
    scalar type of the factors.
    """
    first, last = columns
    n = 0 if first else entries.n
    pivots: Value = NULL
    if blocks:
        pivots = blocks.diagonal if pattern.method.signed else blocks.subdiagonal
    pattern.system_launch(
        "largest",
        np.dtype(values.dtype),
        32 * max(last - first, n),
        *(pattern.struct(np.dtype(values.dtype)), np.int32(len(pattern.k)), np.int32(n), panels),
        *(np.int32(first), np.int32(last), np.int32(entries.lanes), entries.pointer, values),
        *(pivots, maxima),
        LONG=entries.long,
    )()


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
    n = int(pattern.plan.start[-1])
    entries = pattern.device.xp.empty(n, panels.dtype)
    if n:
        arguments = *_fronts(pattern, panels), entries
        pattern.system_launch("diagonal", panels.dtype, n, *arguments)()
    return entries


def _fronts(pattern: DevicePattern, panels: Array) -> tuple[Value, ...]:
    """Return the leading arguments of these kernels."""
    fronts, n = len(pattern.k), int(pattern.plan.start[-1])
    return pattern.struct(panels.dtype), np.int32(fronts), np.int32(n), panels
