"""Augmenting row reduction: matching of free columns before shortest paths are searched.

Reference: R. Jonker and A. Volgenant, "A shortest augmenting path algorithm for dense and sparse
linear assignment problems", Computing 38 (1987), with rows and columns exchanged.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compile.jit import inner, jit

MAX_ROUNDS = 8  # each processes every free column once


class Assignment(NamedTuple):
    """A minimum-cost assignment problem, by columns, and its solution so far.

    Dual variables `u` of rows and `v` of columns obey ``cost - u - v >= 0``, with equality on
    matched entries. `entry` is the position of the matched entry of each column, `cols` the column
    matched to each row, or -1.
    """

    indptr: np.ndarray
    indices: np.ndarray
    cost: np.ndarray
    u: np.ndarray
    v: np.ndarray
    entry: np.ndarray
    cols: np.ndarray


@inner
def _two_cheapest(indptr, indices, cost, u, j):
    """Return least and second least ``cost - u`` of a column with positions, -1 if missing."""
    first = second = np.inf
    place = second_place = np.int64(-1)
    for p in range(indptr[j], indptr[j + 1]):
        reduced = cost[p] - u[indices[p]]
        if reduced < first:
            second, second_place = first, place
            first, place = reduced, p
        elif reduced < second:
            second, second_place = reduced, p
    return first, place, second, second_place


@jit
def augmenting_row_reduction(problem):
    """Match free columns without a search, and move dual variables closer to their final values.

    A column takes its cheapest row, whose u decreases until the second cheapest costs the same. The
    column previously matched to the row is free in the next round. The remaining searches are few
    and short.
    """
    indptr, indices, cost, u, v, entry, cols = problem
    free = np.flatnonzero(entry < 0)
    for _ in range(MAX_ROUNDS):
        count = 0
        for j in free:
            first, place, second, second_place = _two_cheapest(indptr, indices, cost, u, j)
            if second_place < 0:
                free[count] = j
                count += 1
                continue
            if first == second and cols[indices[place]] >= 0:
                place = second_place
            i = indices[place]
            owner = cols[i]
            if first == second and owner >= 0:
                v[j] = first
                free[count] = j
                count += 1
                continue
            u[i] -= second - first
            v[j] = cost[place] - u[i]
            entry[j], cols[i] = place, j
            if owner >= 0:
                entry[owner] = -1
                free[count] = owner
                count += 1
        free = free[:count]
