"""Checks of patterns, permutations and fronts from files before compiled code uses them."""

from __future__ import annotations

import numpy as np

from ..compile.jit import jit
from ..matrix.csc import first_from
from .plan import FrontArrays, Permuted


def check_pattern(n: int, indptr: np.ndarray, indices: np.ndarray) -> None:
    """Raise ValueError unless the arrays are a pattern (n, n) by columns with ascending rows."""
    _check_pointers("indptr", indptr, n, indices.size)
    _check_lists("indices", indptr, indices, np.zeros(n, np.int32), n)


def check_permutation(name: str, perm: np.ndarray, n: int) -> None:
    """Raise ValueError unless `perm` is a permutation of n."""
    _check_size(name, perm, n)
    if n and (perm.min() < 0 or perm.max() >= n or np.bincount(perm, minlength=n).max() > 1):
        raise ValueError(f"{name} is not a permutation: it must contain each of 0 to {n - 1} once")


def check_fronts(n: int, fronts: FrontArrays) -> None:
    """Raise ValueError unless the fronts are valid and in postorder, with rows that parents
    have."""
    start, parent, pointer, rows = fronts
    count = parent.size
    _check_pointers("start", start, count, n)
    _refuse("start", "does not increase at front", start[1:] <= start[:-1])
    late = (parent > np.arange(count)) & (parent < count)
    _refuse("parent", "is not a later front, at front", ~late & (parent != -1))
    _check_pointers("pointer", pointer, count, rows.size)
    _check_lists("rows", pointer, rows, start[1:], n)
    _refuse("rows", "has entries for root front", (parent < 0) & (pointer[1:] > pointer[:-1]))
    for name, what, front in (
        ("parent", "is not in postorder, at front", _out_of_postorder(parent)),
        ("rows", "has entries that the parent lacks, at front", _without_row(*fronts)),
    ):
        if front >= 0:
            raise ValueError(f"{name} {what} {front}")


def check_entries(matrix: Permuted, one_triangle: bool, fronts: FrontArrays) -> None:
    """Raise ValueError if the fronts have no place for an entry of the matrix.

    The parameters are those of `make_plan`; each was checked individually.
    """
    column = _without_entry(matrix, one_triangle, fronts)
    if column >= 0:
        raise ValueError(f"the fronts have no place for an entry of column {column}")


def check_blocks(matrix: Permuted, first: np.ndarray) -> None:
    """Raise ValueError unless `first` holds the first columns of blocks with no entry below them.

    The other arrays were checked.
    """
    n = matrix.perm.size
    if first.size < 2:
        raise ValueError("first names no block")
    _check_pointers("first", first, first.size - 1, n)
    _refuse("first", "does not increase at block", first[1:] <= first[:-1])
    column = _below_blocks(matrix, first)
    if column >= 0:
        raise ValueError(f"an entry of column {column} is below the diagonal blocks")


def _check_size(name: str, values: np.ndarray, size: int) -> None:
    if values.size != size:
        raise ValueError(f"{name} has {values.size} entries, not {size}")


def _refuse(name: str, what: str, wrong: np.ndarray) -> None:
    """Raise for the first index that is wrong."""
    if wrong.any():
        raise ValueError(f"{name} {what} {int(wrong.argmax())}")


def _check_pointers(name: str, pointer: np.ndarray, count: int, end: int) -> None:
    """Raise unless `pointer` holds the extents of `count` lists, from 0 to `end`."""
    _check_size(name, pointer, count + 1)
    if pointer[0] != 0 or pointer[-1] != end:
        raise ValueError(f"{name} goes from {pointer[0]} to {pointer[-1]}, not from 0 to {end}")
    _refuse(name, "decreases after", pointer[1:] < pointer[:-1])


def _check_lists(
    name: str, pointer: np.ndarray, values: np.ndarray, smallest: np.ndarray, end: int
) -> None:
    """Raise unless all lists ascend, from at least `smallest` of the list to below `end`."""
    if not values.size:
        return
    _refuse(name, f"is outside of 0 to {end - 1} at", (values < 0) | (values >= end))
    falls = np.zeros(values.size, np.bool_)
    falls[1:] = values[1:] <= values[:-1]
    filled = pointer[1:] > pointer[:-1]
    first = pointer[:-1][filled]
    falls[first] = values[first] < smallest[filled]
    _refuse(name, "is not ascending at", falls)


@jit
def _out_of_postorder(parent):
    """Return a front that does not directly follow its children's subtrees, or -1."""
    stack = np.empty(parent.size, np.int32)
    top = 0
    for s in range(parent.size):
        while top > 0 and parent[stack[top - 1]] == s:
            top -= 1
        stack[top] = s
        top += 1
    for k in range(top):
        if parent[stack[k]] >= 0:
            return stack[k]
    return np.int32(-1)


@jit
def _without_row(start, parent, pointer, rows):
    """Return the first front with an update row that its parent lacks, or -1."""
    for s in range(parent.size):
        above = parent[s]
        if above < 0:
            continue
        q, last = pointer[above], pointer[above + 1]
        for p in range(pointer[s], pointer[s + 1]):
            row = rows[p]
            if row < start[above]:
                return s
            if row < start[above + 1]:
                continue
            while q < last and rows[q] < row:
                q += 1
            if q == last or rows[q] != row:
                return s
    return -1


@jit
def _without_entry(matrix, one_triangle, fronts):
    """Return the first column with an entry whose later row or column its front lacks, or -1."""
    indptr, indices, perm, row_rank = matrix
    start, _, pointer, rows = fronts
    n = perm.size
    front_of = np.empty(n, np.int32)
    for s in range(start.size - 1):
        front_of[start[s] : start[s + 1]] = s
    for j in range(n):
        for p in range(indptr[perm[j]], indptr[perm[j] + 1]):
            i = row_rank[indices[p]]
            if i < j and one_triangle:
                continue
            s, late = front_of[min(i, j)], max(i, j)
            if late < start[s + 1]:
                continue
            place = first_from(rows, pointer[s], pointer[s + 1], late)
            if place == pointer[s + 1] or rows[place] != late:
                return perm[j]
    return np.int32(-1)


@jit
def _below_blocks(matrix, first):
    """Return the first column with an entry below its diagonal block, or -1."""
    indptr, indices, perm, row_rank = matrix
    for b in range(first.size - 1):
        for j in range(first[b], first[b + 1]):
            for p in range(indptr[perm[j]], indptr[perm[j] + 1]):
                if row_rank[indices[p]] >= first[b + 1]:
                    return perm[j]
    return np.int32(-1)
