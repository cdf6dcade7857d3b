"""Offsets of the segments of a factor: on the device while they are needed, and on the host.

The panels of a segment are one piece, so that one copy moves them. While a segment is factorized,
the panels of the previous one are copied to the host: a piece occupies device memory from the
beginning of its segment to the end of the next one. Contribution blocks live as in
layout/offsets.py, and messages of diagonal tiles while the tiles of their segment are computed.
Solves have the panels of two segments on the device: those of even and of odd segments each in a
window, at the beginning of the same memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..layout.interval_packing import NO_SLACK, Taken, packed
from ..layout.offsets import Parts, Places
from ..layout.panels import DeviceLayout, Fronts, shapes_of
from ..layout.schedule import TILE


@dataclass(frozen=True)
class StreamedLayout(DeviceLayout):
    """See `DeviceLayout`; places are valid during the factorization of a front."""

    inside: np.ndarray  # (f,) int64: offset of panels in the piece of their segment
    length: np.ndarray  # (s,) int64: entries of each piece
    piece: np.ndarray  # (s,) int64: offset of each piece during the factorization of its segment
    window: np.ndarray  # (s,) int64: offset of each piece during solves
    held: np.ndarray  # (s,) int64: offset of each piece on the host
    sent: np.ndarray  # (s,) int64: offset of the messages of diagonal tiles of each segment

    @property
    def swept(self) -> np.ndarray:
        """See `DeviceLayout`."""
        return self.inside


class SegmentTimes(NamedTuple):
    """Times of a factorization: for each segment levels of small fronts, then epochs."""

    time: np.ndarray  # (f,) int64: time of each front
    begin: np.ndarray  # (s + 1,) int64: first time of each segment, and the end of the last one
    tiles: np.ndarray  # (s,) int64: time of the first epoch of each segment
    over: np.ndarray  # int64: number of epochs before each time

    @classmethod
    def from_fronts(cls, tree: Fronts, segment: np.ndarray) -> SegmentTimes:
        """Return the times of a schedule by segments."""
        schedule, small = tree.schedule, tree.schedule.small
        count = int(segment[-1]) + 1
        levels, epoch = schedule.small_levels // count, schedule.time - schedule.small_levels
        ends = np.zeros(count, np.int64)
        np.maximum.at(ends, segment[~small], epoch[~small] + 1)
        ends = np.maximum.accumulate(ends)
        first = ends - np.diff(ends, prepend=0)
        begin = np.append(0, np.cumsum(levels + ends - first))
        tiles = begin[:-1] + levels
        level = begin[segment] + schedule.time - levels * segment.astype(np.int64)
        time = np.where(small, level, tiles[segment] + epoch - first[segment])
        of_tiles = np.arange(begin[-1]) >= np.repeat(tiles, np.diff(begin))
        return cls(time, begin, tiles, np.append(0, np.cumsum(of_tiles)))


class Lifetimes(NamedTuple):
    """Lifetimes of memory on the device: blocks, products, pieces, messages."""

    # int64: times, both included, and entries
    first: np.ndarray
    last: np.ndarray
    size: np.ndarray

    @classmethod
    def from_fronts(
        cls, clock: SegmentTimes, parent: np.ndarray, parts: Parts, segment: np.ndarray
    ) -> Lifetimes:
        """Return the lifetimes of all that fronts need; pieces and messages by segments."""
        time, begin = clock.time, clock.begin
        dies = np.where(parent >= 0, time[parent], time)
        first_of = np.flatnonzero(np.diff(segment, prepend=-1))
        length, sent = (np.add.reduceat(x, first_of) for x in (parts.panels, parts.messages))
        length, sent = _up(length), np.where(sent, sent + TILE, 0)  # starts at a multiple of a tile
        gone = np.append(begin[2:], begin[-1]) - 1
        first = time, time, begin[:-1], clock.tiles
        last = dies, time, gone, begin[1:] - 1
        size = parts.blocks, parts.products, length, sent
        return cls(*map(np.concatenate, (first, last, size)))

    def most(self) -> int:
        """Return the largest number of entries that are alive together."""
        change = np.zeros(int(self.last.max(initial=0)) + 2, np.int64)
        np.add.at(change, self.first, self.size)
        np.add.at(change, self.last + 1, -self.size)
        return int(np.cumsum(change).max())

    def placed(self) -> tuple[np.ndarray, np.ndarray, int]:
        """Return offsets, times that must be over before a write, and the end of the memory."""
        used = np.flatnonzero(self.size)
        times = int(self.last.max(initial=0)) + 1
        nothing = np.zeros(times + 1, np.int64), 0, Taken(np.zeros(1, np.int64), used[:0])
        packing = packed(self.first[used], self.last[used], self.size[used], nothing, NO_SLACK)
        place, waits = np.zeros((2, self.size.size), np.int64)
        place[used], waits[used] = packing.place, packing.waits
        return place, waits, packing.entries


def with_room(layout: StreamedLayout, size: int, dtype: np.dtype) -> StreamedLayout:
    """Return the layout with at least `size` bytes behind the windows."""
    places = layout.places
    entries = places.panels - (-size // dtype.itemsize // TILE) * TILE
    return replace(layout, places=places._replace(entries=max(entries, places.entries)))


def _up(number: np.ndarray) -> np.ndarray:
    return -(-number // TILE) * TILE


def streamed_layout(
    tree: Fronts,
    segment: np.ndarray,
    clock: SegmentTimes,
    lives: Lifetimes,
    dtype: np.dtype,
) -> StreamedLayout:
    """Place all panels, blocks, products and messages of fronts with a schedule by segments."""
    shapes, fronts, count = shapes_of(tree, dtype), tree.k.size, int(segment[-1]) + 1
    ends = np.cumsum([fronts, fronts, count])
    place, waits, end = lives.placed()
    block, product, piece, sent = np.split(place, ends)
    length = lives.size[ends[1] : ends[2]]
    before = np.cumsum(shapes[-1]) - shapes[-1]
    inside = before - before[np.flatnonzero(np.diff(segment, prepend=-1))][segment]
    need = clock.over[np.maximum(waits[:fronts], waits[fronts : 2 * fronts])]
    need = np.where(tree.schedule.small, 0, need).astype(np.int32)
    even, odd = (int(length[way::2].max(initial=0)) for way in (0, 1))
    panel, windows = piece[segment] + inside, even + odd  # multiples of a tile
    entries = max(-(-end // TILE) * TILE, windows)
    return StreamedLayout(
        Places(panel, block, product, need, windows, 0, 0, entries),
        *shapes,
        inside=inside,
        length=length,
        piece=piece,
        window=np.where(np.arange(count) % 2, even, 0),
        held=np.cumsum(length) - length,
        sent=_up(sent),
    )
