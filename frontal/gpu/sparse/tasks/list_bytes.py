"""Device memory of the lists of a pattern, counted without making them."""

from __future__ import annotations

import numpy as np

from .. import structs
from ..layout.panels import Fronts, cut_sizes
from .solves import TASK, counted_tasks, rows_of_messages
from .tiles import counted_tiles, left_of_diagonals


def small_bytes(tree: Fronts) -> int:
    """Return the bytes of `small_fronts.SmallTasks`."""
    plan, small = tree.plan, tree.schedule.small
    children = np.diff(plan.child_pointer)[small].sum()
    total = structs.SMALL_FRONT.dtype.itemsize * int(small.sum())
    total += (structs.SMALL_CHILD.dtype.itemsize + structs.MAP_BYTES) * int(children)
    return total + 6 * int(np.diff(plan.entry_pointer)[small].sum())


def placed_bytes(tree: Fronts) -> int:
    """Return the bytes of the result of `Fronts.placed`."""
    return ((3 if tree.method.indefinite else 2) * 8 + 4) * tree.k.size


def index_bytes(tree: Fronts) -> int:
    """Return the bytes of the index arrays of fronts, and of the lists of tasks."""
    plan, schedule = tree.plan, tree.schedule
    fronts, rows, children = tree.k.size, plan.relative.size, plan.children.size
    small, entries = schedule.small, np.diff(plan.entry_pointer)
    total = (3 * 4 + 2 * 8) * (fronts + 1) + 8 * fronts  # first_sent included
    total += 4 * (rows + children + int(cut_sizes(tree).sum()))
    total += placed_bytes(tree) + small_bytes(tree)
    tasks = int(counted_tiles(tree)[~small].sum())
    total += 16 * tasks + 4 * (tasks + 1) + 4 * schedule.epochs + 6 * int(entries[~small].sum())
    total += left_of_diagonals(tree).nbytes
    total += 4 * (int(rows_of_messages(plan)[-1]) + rows)
    total += TASK.itemsize * sum(counted_tasks(tree)[:3])
    return total + 16 * int(tree.pivot_tiles.sum()) * tree.method.unit
