"""Factorization of small fronts: lists of them by level, and the launches of front_small.cu."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._jit import jit
from ..runtime.graph import Launch
from ..runtime.structs import filled
from . import launch, structs

if TYPE_CHECKING:
    from .factorize import State, Storage
    from .pattern import Pattern

_ROWS = 1 << structs.ENTRY_BITS  # and columns that an entry may be in
_ORDERS = (64, 32, 16)  # rows of fronts of each class


@dataclass(frozen=True)
class SmallTasks:
    """The small fronts of a pattern, by level and class, the largest first.

    Attributes
    ----------
    first : list of int
        Where each level begins among the fronts.
    counts : list of tuple of int
        Fronts of each level with up to 64, 32 and 16 rows.
    fronts, children : device arrays of bytes
        `structs.SMALL_FRONT` and `structs.SMALL_CHILD`.
    maps : device array (children, 64) of bytes
        Positions of a child's rows in its parent.
    entries : device array
        Entries of A: places among the values, rows and columns, as structs.SMALL_FRONTS has them.
    """

    first: list[int]
    counts: list[tuple[int, int, int]]
    fronts: Any
    children: Any
    maps: Any
    entries: Any


def small_tasks(pattern: Pattern) -> SmallTasks:
    """List the small fronts of a pattern with what they are assembled from."""
    plan, schedule, upload = pattern.plan, pattern.schedule, pattern.device.upload
    fronts = np.flatnonzero(schedule.small)
    k, m = pattern.k[fronts], pattern.m[fronts]
    kind = np.searchsorted([-64, -32, -16], -(k + m), side="right") - 1
    order = np.lexsort((-k * (k + m) ** 2, kind, schedule.level[fronts]))
    fronts, kind = fronts[order], kind[order]
    levels = schedule.small_levels
    group = schedule.level[fronts].astype(np.int64) * len(_ORDERS) + kind
    counts = np.bincount(group, minlength=levels * len(_ORDERS)).reshape(levels, len(_ORDERS))
    items = _items(pattern, fronts)
    children, maps = _children(pattern, fronts, items)
    begin, size = items["entry"], items["entries"]
    entries = np.empty(int(size.sum()), np.int64)
    _pack_entries(fronts, begin, plan.entry_pointer, plan.source, plan.row, plan.column, entries)
    return SmallTasks(
        [0, *np.cumsum(counts.sum(axis=1)).tolist()],
        [(large, medium, small) for large, medium, small in counts.tolist()],
        upload(items.view(np.uint8)),
        upload(children.view(np.uint8)),
        upload(maps),
        upload(entries),
    )


def _items(pattern: Pattern, fronts: np.ndarray) -> np.ndarray:
    """Return the struct of each front; entries of A and children follow the order of the list."""
    plan = pattern.plan
    items = np.zeros(fronts.size, structs.SMALL_FRONT.dtype)
    items["front"], items["start"] = fronts, plan.start[fronts]
    items["k"], items["m"] = pattern.k[fronts], pattern.m[fronts]
    items["inverse"], items["block"] = pattern.inverse[fronts], pattern.schedule.block[fronts]
    for one, many, pointer in (
        ("entry", "entries", plan.entry_pointer),
        ("child", "children", plan.child_pointer),
    ):
        items[many] = pointer[fronts + 1] - pointer[fronts]
        items[one] = np.cumsum(items[many], dtype=np.int64) - items[many]
    return items


def _children(
    pattern: Pattern, fronts: np.ndarray, items: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the struct of each child, and where its rows go in its parent."""
    plan, total = pattern.plan, int(items["children"].sum())
    names, maps = np.empty(total, np.int64), np.zeros((total, structs.MAP_BYTES), np.uint8)
    _fill_maps(
        fronts, items["child"], plan.child_pointer, plan.children,
        plan.pointer, plan.relative, names, maps,
    )  # fmt: skip
    children = np.zeros(total, structs.SMALL_CHILD.dtype)
    children["block"], children["m"] = pattern.schedule.block[names], pattern.m[names]
    return children, maps


@jit
def _fill_maps(fronts, begin, child_pointer, children, pointer, relative, names, maps):
    for q in range(fronts.size):
        first = child_pointer[fronts[q]]
        for i in range(first, child_pointer[fronts[q] + 1]):
            at, child = begin[q] + i - first, children[i]
            names[at] = child
            for r in range(pointer[child], pointer[child + 1]):
                maps[at, r - pointer[child]] = relative[r]


@jit
def _pack_entries(fronts, begin, entry_pointer, source, row, column, out):
    """Positions among the values, and rows and columns in the front, of entries of A."""
    for q in range(fronts.size):
        first = entry_pointer[fronts[q]]
        for e in range(first, entry_pointer[fronts[q] + 1]):
            out[begin[q] + e - first] = source[e] * _ROWS**2 + row[e] + _ROWS * column[e]


def _structs(
    pattern: Pattern, storage: Storage, blocks: Any, tiny: float, state: State
) -> tuple[np.ndarray, np.ndarray]:
    """Return the structs `SmallFronts` and `SmallOutputs` of the kernel."""
    device, tasks, dtype = pattern.device, pattern.small_tasks, storage.panels.dtype
    fronts = filled(
        device,
        structs.SMALL_FRONTS,
        fronts=tasks.fronts,
        children=tasks.children,
        maps=tasks.maps,
        entries=tasks.entries,
        finished=state.finished,
    )
    outputs = filled(
        device,
        structs.OUTPUTS,
        dtype,
        factor=storage.panels,
        blocks=blocks,
        inverses=storage.inverses,
        upper_inverses=storage.upper_inverses,
        pivots=storage.pivots,
        outcome=state.outcome,
        tiny=tiny,
    )
    return fronts, outputs


def launches(
    pattern: Pattern, storage: Storage, blocks: Any, values: Any, tiny: float, state: State
) -> list[list[Launch]]:
    """Prepare the factorization of all small fronts; return the launches of each level.

    Parameters
    ----------
    storage : Storage
        Gets the panels, inverses and interchanges of the small fronts.
    blocks : device array
        Arena of contribution blocks.
    values : device array
        A's entries, in the order of the plan.
    tiny : float
        Pivots of LU below this are made that large.
    state : State
        Gets the outcome, and which fronts are finished.
    """
    device, tasks, dtype = pattern.device, pattern.small_tasks, storage.panels.dtype
    lu = int(pattern.method.pivots)
    kernel = device.kernel("front_small.cu", "front_small", dtype, LU=lu, PERTURB=lu)
    tree = pattern.struct(dtype)
    fronts, outputs = _structs(pattern, storage, blocks, tiny, state)
    levels = []
    for first, counts in zip(tasks.first, tasks.counts, strict=False):
        level = []
        for part in launch.small_fronts(dtype, pattern.method, counts, device.limits):
            begin = (np.int32(first + part.first), *map(np.int32, part.counts))
            arguments = (tree, fronts, outputs, *begin, values)
            level.append(Launch(kernel, part.blocks, part.threads, arguments, part.shared))
        levels.append(level)
    return levels
