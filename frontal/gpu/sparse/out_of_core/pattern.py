"""The fronts of a plan by segments, with the task lists of the kernels."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..layout.panels import parts_of, shapes_of
from ..layout.schedule import by_segments
from ..pattern import DevicePattern
from ..tasks.tiles import counted_tiles, left_of_diagonals
from .offsets import Lifetimes, SegmentTimes, StreamedLayout, streamed_layout


class Segment(NamedTuple):
    """A part of the tree."""

    columns: tuple[int, int]  # its first pivot column, and the end of its pivot columns
    levels: slice  # its levels of small fronts, among those of all segments
    # see `TiledFronts`
    tasks: slice
    pieces: slice
    fronts: slice


class StreamedPattern(DevicePattern):
    """See `DevicePattern`; by segments as of `segmentations`, for panels of one scalar type.

    `fronts` are the same fronts without segments.
    """

    def __init__(self, fronts: DevicePattern, segment: np.ndarray, dtype: np.dtype) -> None:
        schedule = by_segments(fronts.schedule, fronts.k, fronts.m, fronts.method, segment)
        super().__init__(
            fronts.device, fronts.plan, fronts.method, fewest=fronts.fewest, schedule=schedule
        )
        self.followed, self.dtype = fronts.followed, dtype  # as without segments, for the same bits
        self._segment = segment
        self.count = int(segment[-1]) + 1
        if fronts.has_arrays:
            self._lists["arrays"] = fronts.arrays

    @property
    def segment(self) -> np.ndarray:
        """See `Fronts`."""
        return self._segment

    @cached_property
    def _clock(self) -> SegmentTimes:
        return SegmentTimes.from_fronts(self, self.segment)

    @cached_property
    def _lives(self) -> Lifetimes:
        parts = parts_of(self, shapes_of(self, self.dtype)[-1], self.dtype)
        return Lifetimes.from_fronts(self._clock, self.plan.parent, parts, self.segment)

    def is_like(self, pattern: StreamedPattern) -> bool:
        """Return whether another pattern of the same fronts has the same segments and memory."""
        same = self.places.places.entries == pattern.places.places.entries
        return same and np.array_equal(self.segment, pattern.segment)

    @property
    def least(self) -> int:
        """Lower bound of the entries of a factorization's memory, computed without offsets."""
        return self._lives.most()

    @cached_property
    def places(self) -> StreamedLayout:
        """Layout of all segments."""
        return streamed_layout(self, self.segment, self._clock, self._lives, self.dtype)

    def layout(self, dtype: np.dtype) -> StreamedLayout:
        """See `Fronts`."""
        self._layouts[dtype] = self.places
        return self.places

    @cached_property
    def segments(self) -> list[Segment]:
        """Columns, levels, tasks, pieces and fronts of each segment."""
        first = np.searchsorted(self.segment, np.arange(self.count + 1))
        levels = self.schedule.small_levels // self.count
        small, fronts = self.schedule.small, self.k.size
        pieces = np.bincount(left_of_diagonals(self)[:, 0], minlength=fronts)
        tasks, pieces, columns = (
            x[first].tolist()
            for x in (
                np.append(0, np.cumsum(np.where(small, 0, counted_tiles(self)))),
                np.append(0, np.cumsum(pieces)),
                self.plan.start,
            )
        )
        return [
            Segment(
                (columns[g], columns[g + 1]),
                slice(levels * g, levels * (g + 1)),
                slice(tasks[g], tasks[g + 1]),
                slice(pieces[g], pieces[g + 1]),
                slice(int(first[g]), int(first[g + 1])),
            )
            for g in range(self.count)
        ]
