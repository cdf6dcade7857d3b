"""Choice between a factor on the device and one by segments, by available memory."""

from __future__ import annotations

import numpy as np

from ...backend.memory_limit import Memory, byte_limit
from ...errors import FactorMemoryError
from ...symbolic.phase import Symbolic
from .footprint import footprint
from .layout.panels import Fronts
from .out_of_core.choice import segmented
from .out_of_core.pattern import StreamedPattern
from .out_of_core.storage import host_bytes
from .pattern import DevicePattern
from .storage import working

# an upper bound of all memory: times panels and pattern, plus bytes for each row
_BOUND_FACTOR, _BOUND_ROW_BYTES = 4, 1 << 10


def resident_or_streamed(
    symbolic: Symbolic,
    tree: DevicePattern,
    dtype: np.dtype,
    values: np.dtype,
    memory: Memory,
) -> DevicePattern:
    """Return the fronts if their factor fits on the device, or else the fronts by segments.

    Parameters
    ----------
    memory : str or int
        ``"device"`` for the whole factor on the device, ``"streamed"`` for segments always;
        ``"auto"``, or a limit in bytes in addition to the free memory of the device.

    Raises
    ------
    FactorMemoryError
        With the least memory that suffices.
    """
    requested = byte_limit(memory)
    available: int | None = tree.device.free_memory()
    limits = [x for x in (requested, available) if x is not None]
    limit, least = min(limits, default=None), None
    if memory != "streamed" or not tree.k.size:
        if limit is None or _surely(symbolic, tree, dtype) <= limit:
            return tree
        sizes = footprint(symbolic, tree, dtype, values)
        least, needed = sizes["total"], sizes["total"] - sizes["index"] * tree.has_arrays
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
    tree: DevicePattern,
    dtype: np.dtype,
    values: np.dtype,
    rhs: int,
    memory: Memory,
) -> dict[str, int]:
    """Return the bytes of a factor in a given memory: `footprint`, ``"device"`` and ``"host"``.

    With ``"auto"``, a factor that fits nowhere is reported as if it were on the device. With a
    limit, raise as `resident_or_streamed`.
    """
    if memory != "device":
        try:
            tree = resident_or_streamed(symbolic, tree, dtype, values, memory)
        except FactorMemoryError:
            if memory != "auto":
                raise
    parts = footprint(symbolic, tree, dtype, values, rhs)
    host = host_bytes(tree, dtype) if isinstance(tree, StreamedPattern) else 0
    return parts | {"device": parts["total"], "host": host}


def _surely(symbolic: Symbolic, tree: Fronts, dtype: np.dtype) -> int:
    """Return an upper bound of the bytes of a factor; an exact count takes time."""
    panels, others = tree.most
    much = (
        _BOUND_FACTOR * (panels * dtype.itemsize + symbolic.indices.nbytes)
        + _BOUND_ROW_BYTES * symbolic.n
    )
    return much + (others + working(tree, dtype)) * dtype.itemsize
