"""The fronts of a pattern on the device: index arrays, lists of each level, dense blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..plan import Plan
from .batch import Batch
from .schedule import make_schedule
from .worklists import work_items

TILE, THREADS = (32, 32), 256  # of front.cu
_FRONTS = np.dtype([(name, "u8") for name in (
    "start", "pointer", "rows", "relative", "child_pointer", "children", "panel", "block", "vector"
)], align=True)  # fmt: skip


class Pattern:
    """The index arrays of a plan on a device, and the lists of each level."""

    def __init__(self, device: Any, plan: Plan, symmetric: bool) -> None:
        self.device, self.plan, self.symmetric = device, plan, symmetric
        self.schedule = make_schedule(plan)
        self.k, self.m = np.diff(plan.start), np.diff(plan.pointer).astype(np.int32)
        arrays = {
            "start": plan.start.astype(np.int32),
            "pointer": plan.pointer.astype(np.int64),
            "rows": plan.rows.astype(np.int32),
            "relative": plan.relative.astype(np.int32),
            "child_pointer": plan.child_pointer.astype(np.int32),
            "children": plan.children.astype(np.int32),
            "panel": plan.panel.astype(np.int64),
            "block": self.schedule.block,
            "vector": self.schedule.vector,
        }
        self._arrays = {name: device.upload(array) for name, array in arrays.items()}
        addresses = tuple(device.pointer(self._arrays[name]) for name in _FRONTS.names or ())
        self.struct = np.array(addresses, dtype=_FRONTS)
        self.lists = [device.upload(level) for level in self.schedule.levels]
        self.tiles = [self._tiles(i) for i in range(len(self.schedule.levels))]
        self.entries = [self._entries(level) for level in self.schedule.levels]
        self.swaps = [] if symmetric else [self._swaps(level) for level in self.schedule.levels]

    def _tiles(self, height: int) -> tuple[Any, int]:
        """Tiles that a level assembles; contribution blocks of leaves begin at nothing."""
        level = self.schedule.levels[height]
        k, m = self.k[level].astype(np.int64), self.m[level].astype(np.int64)
        uplo = "L" if self.symmetric else None
        parts = [work_items(k + m, k, k, TILE, uplo)]
        parts.append(work_items(m, m, m, TILE, uplo) if height else parts[0][:0])
        if not self.symmetric:
            parts.append(work_items(m, k, k, TILE))
        for kind, part in enumerate(parts):
            part[:, 3] = kind
        return self._of_level(level, np.concatenate(parts))

    def _swaps(self, level: np.ndarray) -> tuple[Any, int]:
        """Rows of the transpose of U12, by threads, whose columns are interchanged."""
        k, m = self.k[level].astype(np.int64), self.m[level].astype(np.int64)
        return self._of_level(level, work_items(m, np.minimum(k, 1), k, (THREADS, 1)))

    def _of_level(self, level: np.ndarray, work: np.ndarray) -> tuple[Any, int]:
        """Upload a list that counts the fronts of a level from 0."""
        work[:, 0] = level[work[:, 0]]
        return self.device.upload(work), len(work)

    def _entries(self, level: np.ndarray) -> tuple[Any, Any, int]:
        """Where the entries of A that belong to a level come from and go to."""
        first, last = self.plan.entry_pointer[level], self.plan.entry_pointer[level + 1]
        count = last - first
        total = int(count.sum())
        where = np.repeat(first - (np.cumsum(count) - count), count) + np.arange(total)
        sources = self.plan.source[where], self.plan.target[where]
        return self.device.upload(sources[0]), self.device.upload(sources[1]), total


class Fronts:
    """The dense blocks of the fronts of a level, as batches.

    Attributes
    ----------
    diagonal, below, right : Batch
        L11 and U11, L21, and for LU the transpose of U12.
    """

    def __init__(self, pattern: Pattern, level: np.ndarray, panels: Any) -> None:
        self._device, self.start = pattern.device, pattern.plan.start[level]
        self.k, self.m = pattern.k[level], pattern.m[level]
        panel, order = pattern.plan.panel[level], self.k + self.m
        self.diagonal = self.batch(panels, panel, self.k, self.k, order)
        self.below = self.batch(panels, panel + self.k, self.m, self.k, order)
        if not pattern.symmetric:
            right = panel + self.k.astype(np.int64) * order
            self.right = self.batch(panels, right, self.m, self.k, self.m)

    def interchanges(self, pivots: Any) -> Batch:
        """Row interchanges of the diagonal blocks, as `getrf` takes them."""
        return self.batch(pivots, self.start, self.k, np.int32(1), self.k)

    def batch(self, array: Any, offset: np.ndarray, m: Any, n: Any, ld: Any) -> Batch:
        """Describe matrices that begin at offsets in an array."""
        step = np.uint64(array.itemsize)
        addresses = np.uint64(self._device.pointer(array)) + offset.astype(np.uint64) * step
        return Batch.of_sizes(
            self._device, array.dtype, addresses, m, np.broadcast_to(n, m.shape), np.maximum(ld, 1)
        )
