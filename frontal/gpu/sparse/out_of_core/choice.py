"""Choice of segments: as few as fit into the available memory."""

from __future__ import annotations

import numpy as np

from ....errors import FactorMemoryError
from ....symbolic.phase import Symbolic
from ..footprint import footprint
from ..layout.panels import parts_of, shapes_of
from ..pattern import DevicePattern
from ..tasks.solves import counted_rows
from .offsets import with_room
from .pattern import StreamedPattern
from .segments import segmentations
from .solve import message_bytes

_COLUMNS = 64, 32, 16, 8  # right-hand sides of a pass; copies dominate its time


def segmented(
    symbolic: Symbolic, tree: DevicePattern, dtype: np.dtype, values: np.dtype, limit: int | None
) -> StreamedPattern:
    """Return the fronts of a plan by segments, with at most `limit` bytes for factor and solve.

    Raises
    ------
    FactorMemoryError
        With the least limit for which segments exist.
    """
    trials: list[StreamedPattern] = []
    parts = parts_of(tree, shapes_of(tree, dtype)[-1], dtype)
    for segment in segmentations(tree.plan, parts):
        trial = StreamedPattern(tree, segment, dtype)
        if limit is None:
            return trial
        if trial.least * dtype.itemsize <= limit and _bytes(symbolic, trial, values) <= limit:
            return _widened(symbolic, trial, values, limit)
        trials.append(trial)
    raise FactorMemoryError(_least(symbolic, tree, trials, values), limit or 0)


def _bytes(symbolic: Symbolic, trial: StreamedPattern, values: np.dtype, rhs: int = 1) -> int:
    """Return the bytes of the device for a factor and a solve."""
    return footprint(symbolic, trial, trial.dtype, values, rhs)["total"]


def _widened(
    symbolic: Symbolic, trial: StreamedPattern, values: np.dtype, limit: int
) -> StreamedPattern:
    """Return the trial with memory for more right-hand sides in a pass, within the limit."""
    narrow, rows = trial.places, counted_rows(trial)
    for columns in _COLUMNS:
        trial.places = with_room(
            narrow, message_bytes(rows, columns, trial.dtype, trial.count), trial.dtype
        )
        if _bytes(symbolic, trial, values, columns) <= limit:
            return trial
    trial.places = narrow
    return trial


def _least(
    symbolic: Symbolic, tree: DevicePattern, trials: list[StreamedPattern], values: np.dtype
) -> int:
    """Return the least limit that a trial meets; that of the tree if there are no segments."""
    least: int | None = None
    for trial in sorted(trials, key=lambda trial: trial.least):
        if least is not None and trial.least * trial.dtype.itemsize >= least:
            break
        total = _bytes(symbolic, trial, values)
        least = total if least is None else min(least, total)
    return footprint(symbolic, tree, values, values)["total"] if least is None else least
