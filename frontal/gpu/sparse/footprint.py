"""Memory of a factor with its solves on a device, computed from the plan without any allocation.

The lists of tasks are counted as their modules make them; a test compares both.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np

from ...symbolic.diagonal import mirrored_share
from ...symbolic.phase import Symbolic
from ..runtime.device import Device
from ..runtime.limits import Limits
from . import launch
from .factorize.entries import columns_are_short, position_type
from .layout.gathering import gathered
from .layout.panels import Fronts
from .layout.subset_packing import packed_subset
from .pattern import DevicePattern
from .solve.messages import LAUNCHES, lends, message_sizes
from .solve.one_vector import MAX_GRAPH_UNKNOWNS
from .storage import counter_sizes, more, required
from .tasks.list_bytes import index_bytes
from .tasks.solves import counted_rows

_VECTORS = 3  # vectors beside messages: right-hand side, solution, residual
_REFINED = 2  # another solution and its residual, for refinement with L D L^H
_ROUNDED = 1 << 16  # bytes of many small arrays, counted for a factor by segments
_PROBES = 8  # vectors of a condition estimate, instead of residuals
_WEIGHTS = 1  # vectors of a condition estimate whose probes lie in messages: the weights


def _searched(symbolic: Symbolic) -> bool:
    """Return whether transposed entries have no list; see `PatternEntries.mirrors`."""
    return columns_are_short(symbolic) and mirrored_share(symbolic.indptr, symbolic.indices) == 1


class _Planned(NamedTuple):
    """The attributes of a device that a plan for it needs; free memory is not known."""

    limits: Limits

    def free_memory(self) -> None:
        """See `Device`."""


def on_device_like(limits: Limits, symbolic: Symbolic) -> DevicePattern:
    """Return the fronts of a plan for a device with these limits."""
    device = cast(Device, _Planned(limits))
    return DevicePattern(device, gathered(symbolic.plan), symbolic.method)


def footprint(
    symbolic: Symbolic, tree: Fronts, dtype: np.dtype, values: np.dtype, rhs: int = 1
) -> dict[str, int]:
    """Return the bytes of a factor of scalar type `dtype`, for a matrix of `values`, by purpose.

    Returns
    -------
    dict
        ``"factor"`` with its vectors and values, ``"contribution"`` for additional memory during
        its computation, ``"index"``, ``"solve"`` for vectors or new values, and ``"total"``.
    """
    method, n, nnz = symbolic.method, symbolic.n, int(symbolic.indptr[-1])
    item, places = dtype.itemsize, tree.layout(dtype).places
    separate_count = nnz if method.scaling or dtype != values else 0
    working = required(tree, dtype, separate_count)
    spare = (
        places.entries - places.panels + separate_count + more(tree, dtype, separate_count)
    ) * item
    plan = launch.front_tiles(dtype, method, tree.device.limits)
    counters = 4 * sum(counter_sizes(tree))
    contribution = spare + plan.workspace * plan.blocks * item + counters
    of_pivots = (4 + 4 + 1) * n * method.unit + 2 * n * item * method.indefinite
    of_matrix = nnz * values.itemsize
    wide = np.dtype(position_type(nnz)).itemsize
    index = index_bytes(tree) + wide * (n + 1) + 4 * nnz + 4 * n + 16 * n * method.scaling
    index += 0 if np.array_equal(symbolic.perm, symbolic.row_perm) else 4 * n
    index += 0 if method.one_triangle or _searched(symbolic) else 4 * nnz
    parts = {
        "factor": working - (contribution - counters) + of_pivots + of_matrix,
        "contribution": contribution,
        "index": index,
        "solve": _solve_bytes(tree, dtype, values, nnz, rhs, spare),
    }
    return parts | {"total": sum(parts.values())}


def _solve_bytes(
    tree: Fronts, dtype: np.dtype, values: np.dtype, nnz: int, rhs: int, spare: int
) -> int:
    """Return the bytes of messages outside the spare memory, and of vectors or new values."""
    n, segments = int(tree.plan.start[-1]), tree.segment
    beside = segments is None and dtype == values  # probes beside a right-hand side
    columns = max(rhs, launch.PROBING_WIDTH) if beside else rhs
    width = launch.solve_width(dtype, columns) if segments is None else 1  # 1 by segments
    own_width = _separate_vectors(n, rhs, columns, dtype) if beside else width
    launches = LAUNCHES * (1 if segments is None else int(segments[-1]) + 1)
    sizes = message_sizes(tree.once(counted_rows), width, dtype, launches)
    sizes = sizes if own_width == width else sizes[:3]
    places, end = packed_subset(sizes, spare)
    beyond = sum(size for size, place in zip(sizes, places, strict=True) if place is None)
    if own_width < width:  # vectors are allocated later
        size = own_width * n * dtype.itemsize
        beyond += size if size > spare - end else 0
    beyond += 0 if segments is None else _ROUNDED
    per_rhs = _VECTORS + _REFINED * tree.method.indefinite
    probes = _WEIGHTS if beside else _PROBES
    vectors = n * max(per_rhs * rhs, (_VECTORS - 1) * rhs + probes)
    graph_vectors = _VECTORS * n * (beside and rhs == 1 and n <= MAX_GRAPH_UNKNOWNS)
    return beyond + (graph_vectors + max(vectors, nnz)) * values.itemsize


def _separate_vectors(n: int, rhs: int, columns: int, dtype: np.dtype) -> int:
    """Return the width of vectors of solves and probes outside solutions and messages."""
    width = launch.solve_width(dtype, columns)
    rest = rhs % width
    if rhs < width or not lends(n, width, dtype):
        return width
    last = launch.solve_width(dtype, rest) if rest else 0
    last = 0 if last == rest and lends(n, last, dtype) else last
    count = max(launch.solve_width(dtype, launch.PROBING_WIDTH), last)
    return count if 2 * count > width else 0
