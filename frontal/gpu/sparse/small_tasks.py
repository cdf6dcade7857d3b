"""Lists of the small fronts, by level and by the orders that front_small.cu knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..._jit import jit
from ...parts import in_parts
from . import structs
from .fronts import Fronts, Listed, narrow

_ROWS = 1 << structs.ENTRY_BITS  # and columns that an entry may be in
_ORDERS = (64, 32, 16)  # rows of fronts of each class


class InOrder(NamedTuple):
    """The small fronts of a schedule, by level and class, the largest first.

    Attributes
    ----------
    fronts : (s,) int64 array
    first : list of int
        Where each level begins among them.
    counts : list of tuple of int
        Fronts of each level with up to 64, 32 and 16 rows.
    """

    fronts: np.ndarray
    first: list[int]
    counts: list[tuple[int, int, int]]


@dataclass(frozen=True)
class SmallTasks:
    """The small fronts of a plan, in the order of `InOrder`; on the host or a device.

    Attributes
    ----------
    first, counts : list of int, list of tuple of int
        See `InOrder`.
    fronts, children : arrays of bytes
        `structs.SMALL_FRONT` and `structs.SMALL_CHILD`.
    maps : array (children, 64) of bytes
        Positions of a child's rows in its parent.
    sources, places : arrays
        Entries of A: places among the values, and rows and columns, as structs.SMALL_FRONTS has
        them.
    """

    first: list[int]
    counts: list[tuple[int, int, int]]
    fronts: Listed
    children: Listed
    maps: Listed
    sources: Listed
    places: Listed


def in_order(tree: Fronts) -> InOrder:
    """Put the small fronts in order."""
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
    """List the small fronts of a plan with what they are assembled from, for one scalar type."""
    plan, (fronts, first, counts) = tree.plan, tree.once(in_order)
    items = _items(tree, fronts)
    names, maps = _children(tree, fronts, items)
    begin, size = items["entry"], items["entries"]
    count = int(size.sum())
    listed = np.empty(count, narrow(plan.source)), np.empty(count, np.uint16)
    of = fronts, begin, plan.entry_pointer, plan.source, plan.row, plan.column, *listed
    ends = np.append(0, np.cumsum(size, dtype=np.int64))
    in_parts(lambda *part: _pack_entries(*of, *part), ends)
    layout = tree.layout(dtype)  # last, since it may be on its way
    places = layout.places
    items["panel"], items["block"] = places.panel[fronts], places.block[fronts]
    children = np.zeros(names.size, structs.SMALL_CHILD.dtype)
    children["block"], children["m"] = places.block[names], tree.m[names]
    return SmallTasks(
        first,
        counts,
        items.view(np.uint8),
        children.view(np.uint8),
        maps,
        *listed,
    )


def _items(tree: Fronts, fronts: np.ndarray) -> np.ndarray:
    """The struct of each front, but for its places; entries and children as in the list."""
    plan = tree.plan
    items = np.zeros(fronts.size, structs.SMALL_FRONT.dtype)
    items["front"], items["start"] = fronts, plan.start[fronts]
    items["k"], items["m"] = tree.k[fronts], tree.m[fronts]
    for first, count, pointer in (
        ("entry", "entries", plan.entry_pointer),
        ("child", "children", plan.child_pointer),
    ):
        items[count] = pointer[fronts + 1] - pointer[fronts]
        items[first] = np.cumsum(items[count], dtype=np.int64) - items[count]
    return items


def _children(tree: Fronts, fronts: np.ndarray, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The children of listed fronts, and where their rows go in their parents."""
    plan, total = tree.plan, int(items["children"].sum())
    names, maps = np.empty(total, np.int64), np.zeros((total, structs.MAP_BYTES), np.uint8)
    ends = np.append(items["child"], total).astype(np.int64, copy=False)
    of = fronts, ends, plan.child_pointer, plan.children, plan.pointer, plan.relative, names, maps
    in_parts(lambda *part: _fill_maps(*of, *part), ends)
    return names, maps


@jit
def _fill_maps(
    fronts, begin, child_pointer, children, pointer, relative, names, maps, first_front, last
):
    for q in range(first_front, last):
        first = child_pointer[fronts[q]]
        for i in range(first, child_pointer[fronts[q] + 1]):
            at, child = begin[q] + i - first, children[i]
            names[at] = child
            for r in range(pointer[child], pointer[child + 1]):
                maps[at, r - pointer[child]] = relative[r]


@jit
def _pack_entries(
    fronts, begin, entry_pointer, source, row, column, sources, places, first_front, last
):
    """Positions among the values, and rows and columns in the front, of entries of A."""
    for q in range(first_front, last):
        first = entry_pointer[fronts[q]]
        for e in range(first, entry_pointer[fronts[q] + 1]):
            at = begin[q] + e - first
            sources[at], places[at] = source[e], row[e] + _ROWS * column[e]
