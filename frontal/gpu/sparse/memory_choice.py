"""Which factor fits into the memory that is given: all on the device, or by segments."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from ...backend.memory_limit import Memory, byte_limit
from ...errors import FactorMemoryError
from ...symbolic.phase import Symbolic
from .footprint import footprint
from .layout.panels import Fronts
from .out_of_core.choice import segmented
from .out_of_core.pattern import StreamedPattern
from .out_of_core.storage import host_bytes
from .storage import working

_BOUND_FACTOR, _BOUND_ROW_BYTES = (
    4,
    1 << 10,
)  # times the panels and the pattern, and bytes a row: more than all takes

Tree = TypeVar("Tree", bound=Fronts)


def resident_or_streamed(
    symbolic: Symbolic,
    tree: Tree,
    dtype: np.dtype,
    values: np.dtype,
    memory: Memory,
    available: int | None,
    index_resident: bool = False,
) -> Tree | StreamedPattern:
    """The fronts as they are, if their factor fits, or else by segments.

    Parameters
    ----------
    dtype, values : numpy.dtype
        Scalar types of the factor and of the matrix.
    memory : str or int
        ``"device"`` for all on the device, ``"streamed"`` for segments in any case; ``"auto"``, or
        bytes that are a limit beside those that are `available`.
    available : int or None
        Bytes that the device has left, if that is known.
    there : bool
        It has the index arrays already.

    Raises
    ------
    FactorMemoryError
        With the least that is needed.
    """
    requested = byte_limit(memory)
    limits = [x for x in (requested, available) if x is not None]
    limit, least = min(limits, default=None), None
    if memory != "streamed" or not tree.k.size:
        if limit is None or _surely(symbolic, tree, dtype) <= limit:
            return tree
        sizes = footprint(symbolic, tree, dtype, values)
        least, needed = sizes["total"], sizes["total"] - sizes["index"] * index_resident
        fits = available is None or needed <= available
        if fits and (requested is None or least <= requested):
            return tree
        if memory == "device":
            raise FactorMemoryError(needed, limit)
    try:
        return segmented(symbolic, tree, dtype, values, limit)
    except FactorMemoryError as error:
        if least is None or error.required <= least:
            raise
        raise FactorMemoryError(least, error.available) from None


def memory_report(
    symbolic: Symbolic,
    tree: Fronts,
    dtype: np.dtype,
    values: np.dtype,
    rhs: int,
    memory: Memory,
    available: int | None,
    index_resident: bool = False,
) -> dict[str, int]:
    """Bytes of a factor in a given memory: see `footprint`, with ``"device"`` and ``"host"``.

    Of what fits nowhere all on the device, unless there is a limit.

    Raises
    ------
    FactorMemoryError
        See `resident_or_streamed`, with a limit.
    """
    fronts: Fronts = tree
    if memory != "device":
        try:
            fronts = resident_or_streamed(
                symbolic, tree, dtype, values, memory, available, index_resident
            )
        except FactorMemoryError:
            if memory != "auto":
                raise
    parts = footprint(symbolic, fronts, dtype, values, rhs)
    host = host_bytes(fronts, dtype) if isinstance(fronts, StreamedPattern) else 0
    return parts | {"device": parts["total"], "host": host}


def _surely(symbolic: Symbolic, tree: Fronts, dtype: np.dtype) -> int:
    """Bytes that are enough: to count them takes time."""
    panels, others = tree.most
    much = (
        _BOUND_FACTOR * (panels * dtype.itemsize + symbolic.indices.nbytes)
        + _BOUND_ROW_BYTES * symbolic.n
    )
    return much + (others + working(tree, dtype)) * dtype.itemsize
