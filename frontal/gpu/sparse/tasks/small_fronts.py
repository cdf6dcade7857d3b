"""Lists of the small fronts, by level and by the size classes of front_small.cu."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from ....compile.jit import jit
from ....machine.threads import parallel_for
from ....symbolic.plan import Plan
from .. import structs
from ..layout.panels import Fronts, Listed, narrow

_ROWS = 1 << structs.ENTRY_BITS  # and columns of a small front, for packed positions of entries
_ORDERS = (64, 32, 16)  # rows of fronts of each class


class InOrder(NamedTuple):
    """The small fronts of a schedule, by level and class, the largest first."""

    fronts: np.ndarray  # (s,) int64
    first: list[int]  # start of each level in `fronts`, and the end
    counts: list[tuple[int, int, int]]  # fronts of each level with up to 64, 32 and 16 rows


@dataclass(frozen=True)
class SmallTasks:
    """The small fronts of a plan, in the order of `InOrder`; on the host or a device."""

    # see `InOrder`
    first: list[int]
    counts: list[tuple[int, int, int]]
    # `structs.SMALL_FRONT` and `structs.SMALL_CHILD`
    fronts: Listed
    children: Listed
    maps: Listed  # (children, 64): positions of a child's rows in its parent
    # entries of A: positions among the values, and rows and columns, as in `structs.SMALL_FRONTS`
    sources: Listed
    places: Listed


def in_order(tree: Fronts) -> InOrder:
    """Sort the small fronts."""
    schedule = tree.schedule
    fronts = np.flatnonzero(schedule.small)
    k, m, level = tree.k[fronts], tree.m[fronts], schedule.level[fronts]
    kind = np.searchsorted([-rows for rows in _ORDERS], -(k + m), side="right") - 1
    order = np.lexsort((-k * (k + m) ** 2, kind, level))
    group = level.astype(np.int64) * len(_ORDERS) + kind
    shape = schedule.small_levels, len(_ORDERS)
    counts = np.bincount(group, minlength=shape[0] * shape[1]).reshape(shape)
    return InOrder(
        fronts[order],
        [0, *np.cumsum(counts.sum(axis=1)).tolist()],
        [(large, medium, small) for large, medium, small in counts.tolist()],
    )


def small_tasks(tree: Fronts, dtype: np.dtype) -> SmallTasks:
    """List the small fronts of a plan, with children and entries, for one scalar type.

    It makes few calls of compiled functions, because each call waits for the GIL while other
    threads make lists.
    """
    plan, (fronts, first, counts) = tree.plan, tree.once(in_order)
    items = np.zeros(fronts.size, structs.SMALL_FRONT.dtype)
    ends, begin = np.zeros(tree.k.size + 1, np.int64), np.zeros(fronts.size + 1, np.int64)
    _describe(tree.schedule.small, fronts, plan, items, ends, begin)
    total = int(begin[-1])
    children = np.zeros(total, structs.SMALL_CHILD.dtype)
    maps = np.zeros((total, structs.MAP_BYTES), np.uint8)
    sources, entry_places = _packed_entries(plan, ends)
    fill_maps = partial(_fill_maps, fronts, begin, plan, maps)
    parallel_for(fill_maps, structs.MAP_BYTES * begin)
    places = tree.layout(dtype).places  # last, since a thread may still be computing it
    _write_places(fronts, begin, plan, places.panel, places.block, items, children)
    lists = items.view(np.uint8), children.view(np.uint8), maps, sources, entry_places
    return SmallTasks(first, counts, *lists)


def _packed_entries(plan: Plan, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return `SmallTasks.sources` and `SmallTasks.places`; `ends` are those of each front."""
    count = int(ends[-1])
    sources, places = np.empty(count, narrow(plan.source)), np.empty(count, np.uint16)
    parallel_for(partial(_pack_entries, ends, plan, sources, places), ends)
    return sources, places


@jit
def _describe(small, fronts, plan, items, ends, begin):
    """Fill in the struct of each front except its offsets; ends of entries and starts of children.

    Entries lie as in the plan, restricted to small fronts; children as in the list.
    """
    start, pointer, entry_pointer = plan.start, plan.pointer, plan.entry_pointer
    for s in range(small.size):
        ends[s + 1] = ends[s] + (entry_pointer[s + 1] - entry_pointer[s] if small[s] else 0)
    for q in range(fronts.size):
        s, item = fronts[q], items[q]
        children = plan.child_pointer[s + 1] - plan.child_pointer[s]
        begin[q + 1] = begin[q] + children
        item.front, item.start = s, start[s]
        item.k, item.m = start[s + 1] - start[s], pointer[s + 1] - pointer[s]
        item.entry, item.entries = ends[s], ends[s + 1] - ends[s]
        item.child, item.children = begin[q], children


@jit
def _pack_entries(ends, plan, sources, places, first_front, last):
    """Compute positions among the values, and rows and columns in the front, of entries of A."""
    source, row, column = plan.source, plan.row, plan.column
    for s in range(first_front, last):
        shift = plan.entry_pointer[s] - ends[s]
        for at in range(ends[s], ends[s + 1]):
            e = at + shift
            sources[at], places[at] = source[e], row[e] + _ROWS * column[e]


@jit
def _fill_maps(fronts, begin, plan, maps, first_front, last):
    """Compute the positions of the children's rows in a range of fronts."""
    child_pointer, children, pointer = plan.child_pointer, plan.children, plan.pointer
    for q in range(first_front, last):
        shift = child_pointer[fronts[q]] - begin[q]
        for at in range(begin[q], begin[q + 1]):
            child = children[at + shift]
            for r in range(pointer[child], pointer[child + 1]):
                maps[at, r - pointer[child]] = plan.relative[r]


@jit
def _write_places(fronts, begin, plan, panel, block, items, listed):
    """Write the offsets of panels and contribution blocks of fronts; describe their children."""
    child_pointer, children, pointer = plan.child_pointer, plan.children, plan.pointer
    for q in range(fronts.size):
        s = fronts[q]
        items[q].panel, items[q].block = panel[s], block[s]
        shift = child_pointer[s] - begin[q]
        for at in range(begin[q], begin[q + 1]):
            child = children[at + shift]
            listed[at].block, listed[at].m = block[child], pointer[child + 1] - pointer[child]
            listed[at].front = child
