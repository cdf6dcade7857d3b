"""Gathering fronts between wide parents and their children.

A block adds the contribution blocks of a front's children one after another, in about 1 us each, so
that sums have a fixed order. A gathering front has no pivot columns. It adds the contribution
blocks of up to 32 consecutive children and passes the sum to their parent. Thousands of children
then take a few steps that run in parallel, and so do their messages in the forward sweep of a
solve. The backward sweep does not use gathering fronts.

Only devices have gathering fronts. The other fronts keep their order and their panels, and
gathering fronts have none, so that the panels in the form of the host stay the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....compile.jit import inner, jit
from ....ordering.etree import inverse
from ....ordering.groups import members_of
from ....symbolic.plan import FrontArrays, Plan, relative_rows
from .schedule import TILE

_MAX_CHILDREN = 64  # children that a front adds one after another
_MAX_GROUP = 32  # children of a gathering front
# least mean number of children that add to a tile of the parent, and to an entry of a gathering
# front of several tiles
_MIN_SHARE = 4
_MAX_LEVELS = 6  # levels of gathering fronts: more than 32^6 children are impossible


class _Groups(NamedTuple):
    """Children that share a gathering front."""

    group: np.ndarray  # (f,) int32: group of each front, -1 for none
    last: np.ndarray  # (g,) int32: last front of each group
    end: np.ndarray  # (g + 1,) int64: extent of the rows of each group
    rows: np.ndarray  # ascending union of the update rows of each group


def has_wide_parents(parent: np.ndarray) -> bool:
    """Return whether a front of an assembly tree has so many children that they may be gathered.

    Examples
    --------
    >>> has_wide_parents(np.array([2, 2, -1])), has_wide_parents(np.append(np.full(70, 70), -1))
    (False, True)
    """
    return bool(np.bincount(parent[parent >= 0], minlength=1).max() > _MAX_CHILDREN)


def gathered(plan: Plan) -> Plan:
    """Return the plan with gathering fronts, which are in postorder; the plan itself if none pay.

    Examples
    --------
    >>> import frontal
    >>> from frontal.problems import poisson2d
    >>> plan = frontal.analyze(poisson2d(30)).plan
    >>> gathered(plan) is plan
    True
    """
    for _ in range(_MAX_LEVELS):
        groups = _groups(plan, _wide(plan))
        if not groups.last.size:
            break
        plan = _with_groups(plan, groups)
    return plan


def _wide(plan: Plan) -> np.ndarray:
    """Return the fronts whose children may be gathered, or gathered once more."""
    gathers = np.zeros(plan.parent.size, np.bool_)
    gathers[plan.parent[np.diff(plan.start) == 0]] = True
    most = np.where(gathers, _MAX_GROUP, _MAX_CHILDREN)
    return np.flatnonzero(np.diff(plan.child_pointer) > most)


def _groups(plan: Plan, wide: np.ndarray) -> _Groups:
    """Return groups of the children of wide parents."""
    group = np.full(plan.parent.size, -1, np.int32)
    if not wide.size:
        return _Groups(group, group[:0], np.zeros(1, np.int64), group[:0])
    rows = np.empty(plan.rows.size, np.int32)
    last, end = _find_groups(plan, wide, group, rows)
    before = np.repeat(np.arange(last.size) * np.int64(plan.start[-1]), np.diff(end))
    return _Groups(group, last, end, np.sort(before + rows[: end[-1]]) - before)


@jit
def _find_groups(plan, wide, group, rows):
    """Set the group of each front and the rows of groups; return last fronts and ends of rows.

    The rows of a group are not sorted.
    """
    last, end = np.empty(group.size, np.int32), np.zeros(group.size + 1, np.int64)
    row_mark = np.zeros(plan.start[-1], np.int32)  # number of the trial that has the row
    tile_mark = np.zeros(plan.start[-1] // TILE + 2, np.int32)
    count, trial = 0, np.int32(0)
    for s in wide:
        first, stop = plan.child_pointer[s], plan.child_pointer[s + 1]
        size = _group_size(stop - first)
        while first < stop:
            trial += np.int32(1)
            marks, begin = (row_mark, tile_mark, trial), end[count]
            after, row_count, pays = _extend(
                plan, s, first, min(first + size, stop), marks, rows[begin:]
            )
            if pays:
                group[plan.children[first:after]] = count
                last[count] = plan.children[after - 1]
                end[count + 1] = begin + row_count
                count += 1
            first = after
    return last[:count], end[: count + 1]


@inner
def _group_size(count):
    """Return the children of each gathering front, equal on all of the fewest possible levels."""
    levels, reach = 1, _MAX_GROUP
    while reach < count:
        levels, reach = levels + 1, reach * _MAX_GROUP
    size = 2
    while size**levels < count:
        size += 1
    return size


@inner
def _extend(plan, s, first, stop, marks, rows):
    """Write the union of the rows of children from `first` on, before `stop`, to `rows`.

    The union fits in a tile, or its block has no more entries than those of the children. Return
    the end of the children, the rows of the union, and whether a gathering front pays: most
    additions to each tile of the parent are spared, and most entries of a large block are sums.
    """
    row_mark, tile_mark, trial = marks
    pivots, pointer, relative = plan.start[s + 1] - plan.start[s], plan.pointer, plan.relative
    size, entries, tiles, additions = np.int64(0), np.int64(0), 0, 0
    at = first
    while at < stop:
        c = plan.children[at]
        order, union = pointer[c + 1] - pointer[c], size
        for r in range(pointer[c], pointer[c + 1]):
            union += row_mark[plan.rows[r]] != trial
        if union * union > max(TILE * TILE, entries + order * order):
            break
        previous = -1
        for r in range(pointer[c], pointer[c + 1]):
            row, tile = plan.rows[r], _tile(relative[r], pivots)
            if row_mark[row] != trial:
                row_mark[row], rows[size] = trial, row
                size += 1
            if tile_mark[tile] != trial:
                tile_mark[tile] = trial
                tiles += 1
            additions += tile != previous
            previous = tile
        entries += order * order
        at += 1
    pays = additions >= _MIN_SHARE * tiles
    return at, size, pays and (size <= TILE or entries >= _MIN_SHARE * size * size)


@inner
def _tile(row, pivots):
    """Return the tile of a row of a front."""
    return row // TILE if row < pivots else (pivots + TILE - 1) // TILE + (row - pivots) // TILE


def _with_groups(plan: Plan, groups: _Groups) -> Plan:
    """Return the plan with a front for each group, directly behind the group's last front."""
    fronts, last = plan.parent.size, groups.last
    order = np.argsort(np.append(np.arange(fronts), last), kind="stable").astype(np.int32)
    number = inverse(order)
    above = np.where(groups.group < 0, plan.parent, fronts + groups.group)
    above = np.append(above, plan.parent[last])[order]
    parent = np.where(above < 0, -1, number[above]).astype(np.int32)
    extents, none = np.diff(groups.end), np.zeros(last.size, np.int64)
    start = _pointer(np.append(np.diff(plan.start), none)[order]).astype(np.int32)
    pointer = _pointer(np.append(np.diff(plan.pointer), extents)[order])
    begin = np.append(plan.pointer[:-1], plan.rows.size + groups.end[:-1])[order]
    place = np.repeat(begin - pointer[:-1], np.diff(pointer)) + np.arange(pointer[-1])
    rows = np.concatenate([plan.rows, groups.rows])[place].astype(np.int32)
    entry_pointer = _pointer(np.append(np.diff(plan.entry_pointer), none)[order])
    child_pointer, children = members_of(parent)
    return plan._replace(
        start=start,
        parent=parent,
        pointer=pointer,
        rows=rows,
        relative=relative_rows(FrontArrays(start, parent, pointer, rows)),
        child_pointer=child_pointer,
        children=children,
        entry_pointer=entry_pointer,
    )


def _pointer(counts: np.ndarray) -> np.ndarray:
    return np.append(0, np.cumsum(counts))
