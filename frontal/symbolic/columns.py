"""The plan of LU by columns, for matrices so thin that fronts cost more than their arithmetic.

Thin matrices, as of circuits and power systems, have fronts of a few columns. LU by columns then
needs no front, and the entries between the diagonal blocks of a block triangular form cause no
fill. The counts here are those of the symmetric pattern of the diagonal blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..compile.jit import jit
from ..ordering.etree import inverse

if TYPE_CHECKING:
    from ..ordering import Cost
    from .postorder import FrontOrder

MIN_COLUMNS = 256  # smallest n: below, both ways take the time of their Python code
MAX_ENTRIES = 2**31 - 1  # entries of A, for int32 positions
MAX_COLUMN_ENTRIES = (
    24  # mean entries of A in a column of a diagonal block; above, fronts are faster
)
_MAX_FLOPS = 1e9  # above, threads share the fronts
# Seconds of a refactorization on one core, fitted to 12 real matrices.
_ENTRY_SECONDS, _FLOP_SECONDS = 3.6e-9, 0.29e-9
_FRONT_SECONDS, _FRONT_ENTRY_SECONDS, _FRONT_FLOP_SECONDS = 290e-9, 5e-9, 0.06e-9
_UNSYMMETRIC_SHARE = 0.67  # of predicted entries and flops that an unsymmetric pattern has


class ColumnPlan(NamedTuple):
    """The pattern of A in elimination order, for LU by columns.

    Attributes
    ----------
    first : (blocks + 1,) int32 array
        First column of each diagonal block; entries outside of the blocks are above them.
    start : (n + 1,) int64 array
        Extent of each column in `row` and `place`.
    row : (nnz,) int32 array
        Position of each row before the interchanges of pivoting.
    place : (nnz,) int32 array
        Position of an entry among the values of A.
    entries : int
        Predicted entries of L and U, with one diagonal.
    flops : float
        Predicted multiplications and additions.
    """

    first: np.ndarray
    start: np.ndarray
    row: np.ndarray
    place: np.ndarray
    entries: int
    flops: float


def column_plan(
    pattern: tuple[np.ndarray, np.ndarray],
    perm: np.ndarray,
    row_perm: np.ndarray,
    first: np.ndarray,
    size: tuple[int, float],
) -> ColumnPlan:
    """Return the plan for a pattern by columns, its permutations and blocks, and predictions."""
    return ColumnPlan(first, *_permuted(*pattern, perm, inverse(row_perm)), *size)


@jit
def _permuted(indptr, indices, perm, row_rank):
    n = perm.size
    start, size = np.empty(n + 1, np.int64), 0
    row, place = np.empty(indices.size, np.int32), np.empty(indices.size, np.int32)
    for j in range(n):
        start[j] = size
        for p in range(indptr[perm[j]], indptr[perm[j] + 1]):
            row[size], place[size] = row_rank[indices[p]], p
            size += 1
    start[n] = size
    return start, row, place


def may_use_columns(n: int, nnz: int) -> bool:
    """Return whether the sizes of a matrix allow LU by columns."""
    return n >= MIN_COLUMNS and nnz <= MAX_ENTRIES


def may_be_thin(n: int, inside: int) -> bool:
    """Return whether LU by columns may be faster, by the entries of A inside of diagonal blocks."""
    return inside <= MAX_COLUMN_ENTRIES * n


def predicted(n: int, cost: Cost, between: int) -> tuple[int, float]:
    """Return entries of L and U, and flops, with `between` entries of A between blocks."""
    return 2 * cost.nnz - n + between, 2 * cost.flops


def is_faster(entries: int, flops: float, fronts: FrontOrder, symmetric: bool) -> bool:
    """Return whether LU by columns should take less time than LU by these fronts.

    `symmetric` means that the pattern is nearly symmetric, so that the predictions are exact.
    """
    k = np.diff(fronts.start).astype(np.float64)
    m = fronts.updates.astype(np.float64)
    stored = float((k * (k + 2 * m)).sum())
    operations = 2 * float((k * k * k / 3 + k * k * m + k * m * m).sum())
    by_fronts = _FRONT_SECONDS * k.size + _FRONT_ENTRY_SECONDS * stored
    by_fronts += _FRONT_FLOP_SECONDS * operations
    by_columns = _ENTRY_SECONDS * entries + _FLOP_SECONDS * flops
    by_columns *= 1.0 if symmetric else _UNSYMMETRIC_SHARE
    return flops <= _MAX_FLOPS and by_columns < by_fronts
