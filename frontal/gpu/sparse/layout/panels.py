"""The fronts of a plan for a device: index arrays and offsets of panels, on the host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar, cast

import numpy as np

from ...._typing import Untyped
from ....compile.jit import jit
from ....errors import FactorMemoryError
from ....numeric.method import Method
from ....symbolic.plan import Plan
from ...runtime.device import Device
from .. import launch
from .interval_packing import Slack
from .offsets import Parts, Places, place
from .schedule import (
    TILE,
    Schedule,
    contribution_entries,
    followed_tiles,
    make_schedule,
    message_entries,
)

Made = TypeVar("Made")
Listed = Untyped  # an array of the host, or of a device after its upload

_MAX_SMALL_ROWS = TILE  # rows of fronts that are factorized in one piece
_SLACK = Slack(1 << 26, 1 << 29)  # bytes that may be spent so that few tasks wait for memory


@dataclass(frozen=True)
class DeviceLayout:
    """Offsets of the blocks of fronts on the device; see sparse/front.cuh."""

    places: Places  # of panels, contribution blocks and products
    # (f,) int64: offsets of L11 and L21 in the panel
    l11_offset: np.ndarray
    below: np.ndarray
    # (f,) int64: leading dimensions of L21 (LU: of the whole panel) and of the transpose of U12
    ld: np.ndarray
    upper_ld: np.ndarray
    # (f,) int64, without LU: leading dimension of the last row of tiles of L11; earlier rows have
    # `TILE`. 0 if only the packed inverse of L11 is stored.
    last_ld: np.ndarray
    size: np.ndarray  # (f,) int64: entries of each front's panels

    @classmethod
    def from_fronts(cls, tree: Fronts, dtype: np.dtype) -> DeviceLayout:
        """Lay out panels, with contribution blocks in the memory of panels written later."""
        shapes = shapes_of(tree, dtype)
        # aligned to a tile: messages and values that begin inside a cache line would take one more
        room = Slack(*(size // dtype.itemsize for size in _SLACK))
        parts = parts_of(tree, shapes[-1], dtype)
        places = place(tree.schedule, tree.plan.parent, parts, room, TILE)
        return cls(places, *shapes)

    @property
    def swept(self) -> np.ndarray:
        """(f,) int64 array: offsets of panels in solves."""
        return self.places.panel


def shapes_of(tree: Fronts, dtype: np.dtype) -> tuple[np.ndarray, ...]:
    """Return the fields of `DeviceLayout` from `l11_offset` on; columns are aligned to 16 bytes."""
    k, m, wide = tree.k, tree.m, max(16 // dtype.itemsize, 1)
    upper_ld, last = -(-m // wide) * wide, np.maximum(-(-k // TILE) - 1, 0)
    last_ld = -(-(k - TILE * last) // wide) * wide
    if tree.method.one_triangle:
        l11_offset, below, ld = k * upper_ld, np.zeros_like(k), upper_ld
        packed = (last == 0) & (not tree.method.indefinite)
        last_ld = np.where(packed, 0, last_ld)
        triangle = -(-k * (k + 1) // (2 * wide)) * wide
        size = l11_offset + np.where(packed, triangle, tile_rows(last) + (k + 1) * last_ld)
    else:
        l11_offset, below = np.zeros_like(k), -(-k // wide) * wide
        ld = below + upper_ld
        size = k * (ld + upper_ld)
    return l11_offset, below, ld, upper_ld, last_ld, size


def parts_of(tree: Fronts, size: np.ndarray, dtype: np.dtype) -> Parts:
    """Return the entries that fronts need, with panels of the given sizes."""
    method, wide = tree.method, max(16 // dtype.itemsize, 1)
    products = np.where(tree.schedule.small | (not method.indefinite), 0, size)
    blocks = -(-contribution_entries(tree.m, method) // wide) * wide
    return Parts(size, blocks, products, message_entries(tree.followed, method))


class Fronts:
    """The fronts of a plan, divided and scheduled for a device.

    Everything except `indices` depends on the fronts alone, not on the rows and entries of the
    plan.

    Parameters
    ----------
    small : int
        Largest number of rows of a front that is factorized in one piece, like all its descendants.
    fewest : int
        Least number of blocks of a level that justifies a launch for its small fronts.
    schedule : Schedule, optional
        Replaces that of `make_schedule`.

    Attributes
    ----------
    k, m : (f,) int64 arrays
        Pivot columns and update rows of each front.
    pivot_tiles, tiles : (f,) int64 arrays
        Tiles of pivot columns, and of all rows.
    tile_row : (f + 1,) int32 array
        Index of each front's first tile of rows among the tiles of all fronts.
    """

    def __init__(
        self,
        device: Device,
        plan: Plan,
        method: Method,
        small: int = _MAX_SMALL_ROWS,
        fewest: int = launch.FEWEST_BLOCKS,
        schedule: Schedule | None = None,
    ) -> None:
        self.device, self.plan, self.method, self.fewest = device, plan, method, fewest
        self._layouts: dict[np.dtype, DeviceLayout] = {}
        self._once: dict[Callable[[Fronts], object], object] = {}
        small = min(small, launch.small_order(method, device.limits))
        self.schedule = schedule or make_schedule(plan, method, small, fewest)
        self.k, self.m = np.diff(plan.start).astype(np.int64), np.diff(plan.pointer)
        self.pivot_tiles = -(-self.k // TILE)
        self.tiles = self.pivot_tiles - (-self.m // TILE)
        self.tile_row = np.append(0, np.cumsum(self.tiles)).astype(np.int32)

    def once(self, make: Callable[[Fronts], Made]) -> Made:
        """Return a result that depends on the fronts alone, computed at the first request."""
        if make not in self._once:
            self._once[make] = make(self)
        return cast(Made, self._once[make])

    def spent(self, make: Callable[[Fronts], Made]) -> Made:
        """Return the same result for the last time, and drop it."""
        value = self.once(make)
        self._once.pop(make, None)
        return value

    def indices(self) -> dict[str, np.ndarray]:
        """Return index arrays by the names of their fields in the struct; some are of the plan."""
        plan, cuts = self.plan, _cuts(self)
        return {
            "start": plan.start.astype(np.int32, copy=False),
            "pointer": plan.pointer.astype(np.int64, copy=False),
            "rows": plan.rows.astype(np.int32, copy=False),
            "child_pointer": plan.child_pointer.astype(np.int32),
            "children": plan.children.astype(np.int32, copy=False),
            "tile_row": self.tile_row,
            "cut_pointer": cuts[0],
            "cuts": cuts[1],
        }

    @property
    def segment(self) -> np.ndarray | None:
        """(f,) int32 array, ascending: segments of the tree, processed one after another."""
        return None

    @cached_property
    def followed(self) -> np.ndarray:
        """See `followed_tiles`."""
        return followed_tiles(self.schedule, self.k, self.m)

    @cached_property
    def most(self) -> tuple[int, int]:
        """Upper bounds of the entries of panels, and of all other blocks, without shared memory."""
        tile = np.minimum(self.k, TILE) + 2  # padding of a column, and an inverse
        panels = self.method.panels * int((self.k * (self.k + self.m + 2 * tile) + tile).sum())
        messages = message_entries(self.followed, self.method)
        others = int((contribution_entries(self.m, self.method) + messages + 2).sum()) + 2 * TILE
        return panels, others + (panels if self.method.indefinite else 0)

    def layout(self, dtype: np.dtype) -> DeviceLayout:
        """Return the layout of panels of this scalar type."""
        if dtype not in self._layouts:
            self._layouts[dtype] = DeviceLayout.from_fronts(self, dtype)
        return self._layouts[dtype]

    def offsets(self, dtype: np.dtype) -> dict[str, np.ndarray]:
        """Return offsets and dependencies of blocks, by the names of fields."""
        names = ["panel", "block", "need"] + ["product"] * self.method.indefinite
        return {name: getattr(self.layout(dtype).places, name) for name in names}


def tile_rows(count: np.ndarray) -> np.ndarray:
    """Return the entries of `count` full rows of tiles of L11, with inverses of diagonal tiles."""
    return TILE * TILE * count * (count + 1) // 2 + TILE * count


def narrow(source: np.ndarray) -> type[np.unsignedinteger]:
    """Return the type of positions among the values of A in lists of a device.

    Raise a FactorMemoryError if they do not fit; no device has memory for such a factor.
    """
    most = np.iinfo(np.uint32).max
    if source.size > most // 2 and source.max() > most:  # a plan may use only half of the values
        raise FactorMemoryError(12 * source.size, 12 * most)
    return np.uint32


def cut_sizes(tree: Fronts) -> np.ndarray:
    """Return the entries of `cuts` for each child of a front that is not small; 0 for others."""
    parent = tree.plan.parent
    has_cuts = (parent >= 0) & ~tree.schedule.small[parent]
    return np.where(has_cuts, tree.m + tree.tiles[parent] + 1, 0)


def _cuts(tree: Fronts) -> tuple[np.ndarray, np.ndarray]:
    """Return offsets and cuts of the children of fronts that are not small.

    For each child: positions of its rows in the parent; then the first row in each tile of the
    parent, and the end.
    """
    plan, pointer = tree.plan, np.append(0, np.cumsum(cut_sizes(tree)))
    cuts = np.empty(int(pointer[-1]), np.int32)
    _fill_cuts(plan, tree.k, pointer, cuts)
    return pointer, cuts


@jit
def _fill_cuts(plan, k, cut_pointer, cuts):
    parent, pointer, relative = plan.parent, plan.pointer, plan.relative
    for s in range(parent.size):
        size = pointer[s + 1] - pointer[s]
        count = cut_pointer[s + 1] - cut_pointer[s] - size
        if count <= 0:
            continue
        at, pivots = cut_pointer[s], k[parent[s]]
        for row in range(size):
            cuts[at + row] = relative[pointer[s] + row]
        at += size
        pivot_tiles, row = -(-pivots // TILE), np.int64(0)
        for t in range(count):
            first = TILE * t if t < pivot_tiles else pivots + TILE * (t - pivot_tiles)
            while row < size and relative[pointer[s] + row] < first:
                row += 1
            cuts[at + t] = row
