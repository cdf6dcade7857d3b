"""Checks for shared memory among a user's arrays, if one of them is to be overwritten."""

from __future__ import annotations

import numpy as np

from .operands import MatrixBatch


def _extent(batch: MatrixBatch) -> tuple[np.ndarray, np.ndarray]:
    """Return the first byte of each matrix, and the byte past its last entry."""
    start = _addresses(batch)
    size = ((batch.n.astype(np.int64) - 1) * batch.ld + batch.m) * batch.dtype.itemsize
    return start, start + np.where((batch.m > 0) & (batch.n > 0), size, 0)


def _addresses(batch: MatrixBatch) -> np.ndarray:
    """Return the address of each matrix, on the host."""
    if batch.places is not None:
        return batch.places.astype(np.int64)
    base = int(batch.locator["a"])
    stride = int(batch.locator["stride"]) if batch.wrapper == "batched" else 0
    return base + np.arange(batch.count, dtype=np.int64) * stride * batch.dtype.itemsize


def refuse_overlap(name: str, batch: MatrixBatch) -> None:
    """Raise ValueError if two matrices to be written share an entry."""
    begin, end = _extent(batch)
    used = np.flatnonzero(end > begin)
    order = used[np.argsort(begin[used], kind="stable")]
    reach = np.maximum.accumulate(end[order])
    for k in np.flatnonzero(begin[order[1:]] < reach[:-1]) + 1:
        earlier = order[:k]
        for j in earlier[end[earlier] > begin[order[k]]]:
            if _share(_place(batch, begin, j), _place(batch, begin, order[k])):
                raise ValueError(
                    f"{name}: matrices {j} and {order[k]} share memory, and both would be "
                    "overwritten. Try: copies, or another output"
                )


def refuse_alias(name: str, written: MatrixBatch, others: dict[str, MatrixBatch]) -> None:
    """Raise ValueError if an output shares an entry with an input of the same call."""
    begin, end = _extent(written)
    for source, operand in others.items():
        low, high = _extent(operand)
        order = np.argsort(low)
        reach = np.append(0, np.maximum.accumulate(high[order]))  # of the first 0, 1, ...
        meets = reach[np.searchsorted(low[order], end)] > begin
        for i in np.flatnonzero(meets):
            for j in np.flatnonzero((low < end[i]) & (high > begin[i])):
                if _share(_place(written, begin, i), _place(operand, low, j)):
                    raise ValueError(
                        f"{name} would be overwritten and shares memory with {source} (matrices "
                        f"{i} and {j}). Try: a copy of one of them"
                    )


def _place(
    batch: MatrixBatch, begin: np.ndarray, i: int | np.integer
) -> tuple[int, int, int, int, int]:
    """Return address, rows, columns, leading dimension and scalar size of a matrix."""
    m, n, ld = (int(x[i]) for x in (batch.m, batch.n, batch.ld))
    return int(begin[i]), m, n, ld, batch.dtype.itemsize


def _share(first: tuple[int, ...], second: tuple[int, ...]) -> bool:
    """Return whether two matrices whose memory interleaves share an entry.

    Blocks of one larger matrix may share none; the answer is True if leading dimensions differ.
    """
    if first[0] > second[0]:
        first, second = second, first
    (begin, m, n, ld, size), (start, rows, _, second_ld, _) = first, second
    offset, remainder = divmod(start - begin, size)
    if remainder or ld != second_ld:
        return True
    column, row = divmod(offset, ld)
    inside = column < n and row < m
    wraps = row + rows > ld and column + 1 < n  # starts low in a column, wraps into the next
    return inside or wraps
